"""All operations, in the order the documentation shows them.

One file for each group of paths: `orders` (sending and reading back), `quotes`, `catalogue`, `wrappings`, `templates`, `funding`,
`webhooks`, `deliveries` (what became of webhooks and mail), `identity`, `health`. Each ends with its `OPERATIONS`.
"""

from largesse.web.api.routes import (
    catalogue,
    deliveries,
    funding,
    health,
    identity,
    orders,
    quotes,
    templates,
    webhooks,
    wrappings,
)

OPERATIONS = (
    *orders.OPERATIONS,
    *quotes.OPERATIONS,
    *catalogue.OPERATIONS,
    *wrappings.OPERATIONS,
    *templates.OPERATIONS,
    *funding.OPERATIONS,
    *webhooks.OPERATIONS,
    *deliveries.OPERATIONS,
    *identity.OPERATIONS,
    *health.OPERATIONS,
)

__all__ = ["OPERATIONS"]
