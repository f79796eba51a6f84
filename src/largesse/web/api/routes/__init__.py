"""All operations of the API, in the order the documentation shows them."""

from collections.abc import Sequence

from largesse.web.api.operation import Operation
from largesse.web.api.routes import catalogue, contacts, deliveries, events, funding, identity, orders, quotes, webhooks

OPERATIONS = (
    *orders.OPERATIONS,
    *quotes.OPERATIONS,
    *catalogue.OPERATIONS,
    *contacts.OPERATIONS,
    *funding.OPERATIONS,
    *webhooks.OPERATIONS,
    *deliveries.OPERATIONS,
    *events.OPERATIONS,
    *identity.OPERATIONS,
)


def operations_of(environment: str) -> Sequence[Operation]:
    """Returns the operations that a process of an environment serves: staging has those of the test lab too."""
    if environment != "staging":
        return OPERATIONS
    from largesse.web.api.routes import lab

    return (*OPERATIONS, *lab.OPERATIONS)
