"""All operations of the API, in the order the documentation shows them."""

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
