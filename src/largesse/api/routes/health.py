"""GET /health."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from largesse import __version__
from largesse.api.operation import Call, Operation, Reply, Services, encode_json
from largesse.database import DATABASE_AWAY


class Health(msgspec.Struct, omit_defaults=True):
    """Whether the service can work."""

    status: Annotated[str, Meta(description="`pass` or `fail`", examples=["pass"])]
    version: Annotated[str, Meta(examples=["0.1.0"])] | None = None


async def _health(services: Services, call: Call) -> Reply:
    try:
        await services.database.fetchval("SELECT 1")
    except DATABASE_AWAY:
        return Reply(encode_json(Health("fail")), 503, headers=(("retry-after", "1"),))
    return Reply(encode_json(Health("pass", __version__)))


OPERATIONS = (
    Operation(
        "GET",
        "/health",
        "getHealth",
        "Tell whether the service can work",
        _health,
        "Service",
        shape=Health,
        example={"status": "pass", "version": __version__},
        description='Needs no key. 503 with `{"status": "fail"}` while the database is away.',
        also={503: {"status": "fail"}},
        needs_key=False,
    ),
)
