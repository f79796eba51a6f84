"""How the lines of an order stand, for whoever sent it."""

from __future__ import annotations

from datetime import datetime

import msgspec

from largesse.database.pool import Connection
from largesse.lines.states import State


class LineRecord(msgspec.Struct, frozen=True, kw_only=True):
    """How far a line has come, and when; None for what has not happened."""

    number: int  # counts the order's lines from 1
    state: str
    opened_at: datetime | None  # when a person first did something with its link
    claimed_at: datetime | None
    chosen_at: datetime | None
    fulfilled_at: datetime | None
    expired_at: datetime | None
    cancelled_at: datetime | None


async def read_line_records(
    connection: Connection, customer_id: int, order_id: int
) -> list[tuple[str | None, str | None, LineRecord]]:
    """Each line of the order by number, with the address and name of its recipient; None in a code batch."""
    rows = await connection.fetch(
        """
        SELECT l.number, recipient_email, recipient_name, coalesce(s.state, $3) AS state, e.*
        FROM lines l LEFT JOIN line_states s USING (customer_id, order_id, number)
        LEFT JOIN LATERAL (
            SELECT max(at) FILTER (WHERE event = 'opened') AS opened_at,
                   max(at) FILTER (WHERE event = 'claimed') AS claimed_at,
                   max(at) FILTER (WHERE event = 'chosen') AS chosen_at,
                   max(at) FILTER (WHERE event = 'fulfilled') AS fulfilled_at,
                   max(at) FILTER (WHERE event = 'expired') AS expired_at,
                   max(at) FILTER (WHERE event = 'cancelled') AS cancelled_at
            FROM line_events
            WHERE line_events.customer_id = l.customer_id AND line_events.order_id = l.order_id
              AND line_events.number = l.number
        ) AS e ON true
        WHERE l.customer_id = $1 AND l.order_id = $2 ORDER BY l.number
        """,
        customer_id,
        order_id,
        State.ISSUED,
    )
    return [
        (
            row["recipient_email"],
            row["recipient_name"],
            LineRecord(**{name: row[name] for name in LineRecord.__struct_fields__}),
        )
        for row in rows
    ]
