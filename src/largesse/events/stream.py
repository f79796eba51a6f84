"""The stream of a customer's events, for callers that pull: every event of the last 30 days, in the order in which it was recorded.

A cursor is the position of an event in the stream. A caller who continues after the last one misses none, as positions are given in order.
"""

from __future__ import annotations

import base64
import binascii
from datetime import datetime
from typing import NamedTuple

from largesse.base.errors import InvalidRequest
from largesse.db.fragments import Fragment, compose
from largesse.db.pool import Connection

START = "start"  # the cursor before the oldest event
DAYS = 30
_BYTES = 8


class StreamedEvent(NamedTuple):
    """An event of the stream. `body` is what receivers of webhooks get."""

    position: int
    event: str
    created_at: datetime
    body: bytes

    @property
    def cursor(self) -> str:
        """Returns the position of the event for callers."""
        return base64.urlsafe_b64encode(self.position.to_bytes(_BYTES)).rstrip(b"=").decode()


def read_cursor(text: str) -> int:
    """Returns the position of a cursor. Raises InvalidRequest for anything that `StreamedEvent.cursor` does not return."""
    if text == START:
        return 0
    try:
        position = base64.b64decode(text + "=", altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        position = b""
    if len(position) != _BYTES or position[0] & 0x80:
        raise InvalidRequest(f"`after` must be the `cursor` of an event, or `{START}`.")
    return int.from_bytes(position)


def _page(order: Fragment) -> Fragment:
    return compose(
        """
        SELECT position, event, created_at, body FROM events
        WHERE customer_id = $1 AND environment = $2 AND position > $3
          AND created_at > (SELECT clock_now()) - $5 * interval '1 day'
        ORDER BY position {order} LIMIT $4
        """,
        order=order,
    )


_AFTER, _NEWEST = _page(Fragment("ASC")), _page(Fragment("DESC"))


async def read_stream(
    connection: Connection, customer_id: int, environment: str, *, after: int | None, limit: int
) -> list[StreamedEvent]:
    """Returns the events after a position, oldest first; without one, the newest first."""
    query = _NEWEST if after is None else _AFTER
    rows = await connection.fetch(query, customer_id, environment, after or 0, limit, DAYS)
    return [StreamedEvent(*row) for row in rows]
