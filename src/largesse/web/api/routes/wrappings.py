"""GET /wrappings."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from largesse.customers.restrictions import READ
from largesse.orders.options import ALIASES, WRAPPINGS
from largesse.web.api.operation import Call, Operation
from largesse.web.kit.replies import Reply, encode_json
from largesse.web.kit.services import Services


class WrappingShape(msgspec.Struct, rename="camel"):
    """A known wrapping of gifts."""

    key: Annotated[str, Meta(description="Pass as `wrappingKey` when sending")]
    label: Annotated[str, Meta(description="Display label")]
    aliases: Annotated[list[str], Meta(description="Other keys that name the same wrapping")]


_KNOWN = [
    WrappingShape(
        key, key.replace("-", " ").capitalize(), sorted(alias for alias, named in ALIASES.items() if named == key)
    )
    for key in WRAPPINGS
]
_JSON = encode_json(_KNOWN)


async def _wrappings(services: Services, call: Call) -> Reply:
    return Reply(_JSON)


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
        description="How a gift can be wrapped. Any other key is kept with the order, and looks like `default`. "
        "An addition to the specification.",
        example=[
            {"key": "default", "label": "Default", "aliases": []},
            {"key": "confetti", "label": "Confetti", "aliases": ["celebration", "congratulations"]},
        ],
    ),
)
