"""Rewriting what an event tells of an order, where somebody's data had to go."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from largesse.database.pool import Connection
from largesse.events.order_created import OrderRecord

_FIELDS = {field.encode_name: field.name for field in msgspec.structs.fields(OrderRecord)}


async def rewrite_event(
    connection: Connection, order: tuple[int, int], told: Mapping[str, str | None]
) -> None:
    """Gives members of the events of an order other values, as far as they have them. Reads all events.

    `told` has the values by the names of the fields of OrderRecord.
    """
    rows = await connection.fetch(
        "SELECT id, body FROM events WHERE customer_id = $1 AND order_id = $2", *order
    )
    for row in rows:
        body = msgspec.json.decode(row["body"])
        rewritten = {member: told.get(_FIELDS.get(member, ""), value) for member, value in body.items()}
        await connection.execute(
            "UPDATE events SET body = $3 WHERE customer_id = $1 AND id = $2",
            order[0],
            row["id"],
            msgspec.json.encode(rewritten),
        )
