"""GET /health."""

from typing import Annotated

import msgspec
from msgspec import Meta

from largesse import __version__
from largesse.db.pool import DATABASE_AWAY
from largesse.orders.ids import FEW_IDS, read_capacity
from largesse.web.api.operation import Call, Operation
from largesse.web.kit.replies import Reply, encode_json
from largesse.web.kit.services import Services


class Health(msgspec.Struct, omit_defaults=True):
    """Whether the service can work."""

    status: Annotated[str, Meta(description="`pass`, `warn` or `fail`", examples=["pass"])]
    version: Annotated[str, Meta(examples=["0.2.0"])] | None = None
    notes: Annotated[list[str], Meta(description="The reasons, unless `status` is `pass`")] = []


async def _health(services: Services, call: Call) -> Reply:
    try:
        ids_left, takes_writes = await read_capacity(services.database)
    except DATABASE_AWAY:
        return Reply(encode_json(Health("fail")), 503, headers=(("retry-after", "1"),))
    if services.database.disk.is_full:
        said = "The disk of the database is full: nothing can be written."
        return Reply(encode_json(Health("fail", __version__, [said])), 503, headers=(("retry-after", "10"),))
    if ids_left <= 0:
        said = "The ids of orders are used up: no order can be placed any more."
        return Reply(encode_json(Health("fail", __version__, [said])), 503)
    if not takes_writes:
        said = "The database is a standby or read-only: no order can be placed here."
        return Reply(encode_json(Health("warn", __version__, [said])))
    if ids_left < FEW_IDS:
        said = f"Ids for {ids_left:,} more orders are left, fewer than a tenth."
        return Reply(encode_json(Health("warn", __version__, [said])))
    return Reply(encode_json(Health("pass", __version__)))


OPERATIONS = (
    Operation(
        "GET",
        "/health",
        "getHealth",
        "Check whether the service works",
        _health,
        "Service",
        shape=Health,
        example={"status": "pass", "version": __version__},
        description='Needs no key. 503 with `{"status": "fail"}` while the service cannot work; if the cause is known, such as a full disk, `notes` says it. With `warn`, `notes` says '
        "what the operator must do; reading works.",
        also={503: {"status": "fail"}},
        needs_key=False,
    ),
)
