"""How the lines of an order stand, for whoever sent it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from largesse.database import Connection
from largesse.lines.states import State


class LineRecord(msgspec.Struct, kw_only=True, rename="camel"):
    """How far a line has come, and when; null for what has not happened."""

    number: Annotated[int, Meta(description="Counts the order's lines from 1", examples=[1])]
    state: Annotated[
        str,
        Meta(
            description="`issued` (nobody has claimed it), `claimed` (the recipient has yet to choose), `chosen` (waits for a "
            "voucher, an address or a parcel), `fulfilled`, `expired` or `cancelled`",
            examples=["claimed"],
        ),
    ]
    opened_at: (
        Annotated[datetime, Meta(tz=True, description="When a person first did something with its link")]
        | None
    )
    claimed_at: Annotated[datetime, Meta(tz=True)] | None
    chosen_at: Annotated[datetime, Meta(tz=True)] | None
    fulfilled_at: Annotated[datetime, Meta(tz=True)] | None
    expired_at: Annotated[datetime, Meta(tz=True)] | None
    cancelled_at: Annotated[datetime, Meta(tz=True)] | None


async def read_line_records(
    connection: Connection, order_id: int
) -> list[tuple[str | None, str | None, LineRecord]]:
    """Each line of the order by number, with the address and name of its recipient; None in a code batch."""
    rows = await connection.fetch(
        """
        SELECT l.number, recipient_email, recipient_name, coalesce(s.state, $2) AS state, e.*
        FROM lines l LEFT JOIN line_states s USING (order_id, number)
        LEFT JOIN LATERAL (
            SELECT max(at) FILTER (WHERE event = 'opened') AS opened_at,
                   max(at) FILTER (WHERE event = 'claimed') AS claimed_at,
                   max(at) FILTER (WHERE event = 'chosen') AS chosen_at,
                   max(at) FILTER (WHERE event = 'fulfilled') AS fulfilled_at,
                   max(at) FILTER (WHERE event = 'expired') AS expired_at,
                   max(at) FILTER (WHERE event = 'cancelled') AS cancelled_at
            FROM line_events WHERE line_events.order_id = l.order_id AND line_events.number = l.number
        ) AS e ON true
        WHERE l.order_id = $1 ORDER BY l.number
        """,
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
