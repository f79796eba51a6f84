"""Writing a batch where customers are spread over nodes: a statement for each table, all for the node of the one customer of the batch.

A statement that writes several tables would be taken apart by the coordinator, and committed in two phases.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from largesse.database import Connection, Home, beside_of
from largesse.delivery.outbox import new_mail_jobs
from largesse.events import NEXT_EVENT_ID, ORDER_CREATED, new_events
from largesse.funding import NEXT_ENTRY_ID, new_balances, new_entries
from largesse.lines.writing import new_lines
from largesse.orders.horizon import drawn_ids
from largesse.orders.kept import new_orders, written_orders
from largesse.orders.rules import Decided

# The body of an event of an order, which begins with the order's id, drawn in the same breath.
EVENT_BODY = """'{"id":' || id || event_after_id"""


class Rows(msgspec.Struct, frozen=True):
    """What a batch is written from: JSON arrays of rows, and columns of balances."""

    at: datetime
    orders: str
    beside: str
    lines: str
    entries: str
    balances: Sequence[object]


async def write_at_home(
    connection: Connection, decided: Decided, rows: Rows, ids: Sequence[int] | None
) -> None:
    """Writes the rows of a batch of one customer: those of its lines only without `ids`, under which they were written before."""
    first = decided.placed[0]
    home = (first.kept.customer_id, first.account_ids[1])
    count = len(decided.placed)
    drawn = await beside_of(connection).fetchrow(_DRAW, 0 if ids else count, count, len(decided.entries))
    assert drawn is not None, "a row of arrays"
    if ids is None:
        ids = drawn["orders"]
        await connection.execute(_LINES, *home, rows.lines, ids)
    orders = (rows.orders, rows.beside, ids, rows.at)
    await connection.execute(_EVENTS, *home, *orders, ORDER_CREATED.name, drawn["events"])
    await connection.execute(_MAIL_JOBS, *home, *orders)
    await connection.execute(_ENTRIES, *home, rows.at, rows.entries, ids, drawn["entries"])
    await connection.execute(_BALANCES, *rows.balances, first.kept.customer_id)
    await connection.execute(_ORDERS, *home, *orders)


_HOME = Home("$1", "$2")
_DRAW = f"""
    SELECT {drawn_ids("$1::int")} AS orders,
           ARRAY(SELECT {NEXT_EVENT_ID} FROM generate_series(1, $2::int)) AS events,
           ARRAY(SELECT {NEXT_ENTRY_ID} FROM generate_series(1, $3::int)) AS entries
"""  # noqa: S608 - constants
_NEW = f"({new_orders('$3', '$4', order_id='($5::int[])[place]')}) AS new"
_LINES = new_lines("$3", order_id="($4::int[])[place]", home=_HOME)
_EVENTS = new_events(
    _NEW, order_id="id", event="$7", body=EVENT_BODY, at="$6", id_="($8::bigint[])[place]", home=_HOME
)
_MAIL_JOBS = new_mail_jobs(_NEW, "$6", _HOME)
_ENTRIES = new_entries("$3", "$4", order_id="($5::int[])[order_id]", id_="($6::bigint[])[place]", home=_HOME)
_BALANCES = new_balances("$1", "$2", "$3", "$4", pin="$5")
_ORDERS = written_orders(_NEW, "$6", _HOME)
