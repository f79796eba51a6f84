"""Rewriting what an event tells of an order, where somebody's data had to go."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from largesse.database import Connection


async def rewrite_event(
    connection: Connection, order: tuple[int, int], told: Mapping[str, str | None]
) -> None:
    """Gives members of the events of an order other values, as far as they have them. Reads all events."""
    rows = await connection.fetch(
        "SELECT id, body FROM events WHERE customer_id = $1 AND order_id = $2", *order
    )
    for row in rows:
        body = msgspec.json.decode(row["body"])
        rewritten = {member: told.get(member, value) for member, value in body.items()}
        await connection.execute(
            "UPDATE events SET body = $3 WHERE customer_id = $1 AND id = $2",
            order[0],
            row["id"],
            msgspec.json.encode(rewritten),
        )
