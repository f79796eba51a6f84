"""GET /wrappings."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from largesse.branding.service import read_brand
from largesse.customers.restrictions import READ
from largesse.orders.options import ALIASES, WRAPPINGS
from largesse.web.api.operation import Call, Operation
from largesse.web.kit.replies import Reply, encode_json
from largesse.web.kit.services import Services


class WrappingShape(msgspec.Struct, rename="camel"):
    """A gift wrapping: one for all customers, or one of the customer's own."""

    key: Annotated[str, Meta(description="Pass as `wrappingKey` when sending")]
    label: Annotated[str, Meta(description="Display label")]
    aliases: Annotated[list[str], Meta(description="Other keys that name the same wrapping")]


_KNOWN = [
    WrappingShape(
        key, key.replace("-", " ").capitalize(), sorted(alias for alias, named in ALIASES.items() if named == key)
    )
    for key in WRAPPINGS
]


async def _wrappings(services: Services, call: Call) -> Reply:
    principal = call.principal
    async with services.database.connection(principal.scope) as connection:
        brand = await read_brand(connection, principal.customer_id)
    own = [WrappingShape(one.key, one.name, []) for one in brand.wrappings]
    return Reply(encode_json(own + _KNOWN))


OPERATIONS = (
    Operation(
        "GET",
        "/wrappings",
        "listWrappings",
        "List the known wrappings",
        _wrappings,
        "Catalogue",
        scope=READ,
        shape=list[WrappingShape],
        description="How a gift can be wrapped: first the wrappings of your own, then those of everybody. Any other key is kept with the order, and looks like `default`. "
        "An addition to the specification.",
        example=[
            {"key": "default", "label": "Default", "aliases": []},
            {"key": "confetti", "label": "Confetti", "aliases": ["celebration", "congratulations"]},
        ],
    ),
)
