"""Writing a batch where customers are spread over nodes: a statement for each table, all for the node of the one customer of the batch.

A statement that writes several tables would be taken apart by the coordinator, and committed in two phases.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from largesse.database.pool import Connection, beside_of
from largesse.delivery.outbox import insert_mail_jobs
from largesse.events.order_created import ORDER_CREATED
from largesse.events.outbox import NEXT_EVENT_ID, EventColumns, insert_events
from largesse.funding.ledger import NEXT_ENTRY_ID, Posting, post_at_home
from largesse.lines.writing import insert_lines
from largesse.orders.horizon import drawn_ids
from largesse.orders.kept import KeptOrder, insert_orders
from largesse.orders.order import Order
from largesse.orders.rows import EVENT_BEFORE_ID, by_reference, event_after_id, lines_of


async def write_at_home(
    connection: Connection,
    orders: Sequence[Order],
    posting: Posting,
    at: datetime,
    ids: Sequence[int] | None,
) -> None:
    """Writes the rows of a batch of one customer: those of its lines only without `ids`, under which they were written before."""
    count = len(orders)
    drawn = await beside_of(connection).fetchrow(_DRAW, 0 if ids else count, count, len(posting.rows))
    assert drawn is not None, "a row of arrays"
    if ids is None:
        ids = drawn["orders"]
        await insert_lines(connection, list(lines_of(zip(ids, orders, strict=True))))
    new = [(ids[place - 1], order.kept) for place, order in by_reference(orders)]
    await insert_events(connection, list(_events(drawn["events"], new, at)))
    await insert_mail_jobs(
        connection,
        [
            (order.customer_id, order_id, order.environment, order.scheduled_for or at)
            for order_id, order in new
            if not order.is_batch
        ],
    )
    await post_at_home(connection, posting, at, drawn["entries"], ids)
    await insert_orders(connection, new, at)


def _events(
    event_ids: Iterable[int], orders: Iterable[tuple[int, KeptOrder]], at: datetime
) -> Iterable[EventColumns]:
    for event_id, (order_id, order) in zip(event_ids, orders, strict=True):
        body = f"{EVENT_BEFORE_ID}{order_id}{event_after_id(order, at)}".encode()
        yield event_id, order_id, order.customer_id, order.environment, ORDER_CREATED.name, body, at


_DRAW = f"""
    SELECT {drawn_ids("$1::int")} AS orders,
           ARRAY(SELECT {NEXT_EVENT_ID} FROM generate_series(1, $2::int)) AS events,
           ARRAY(SELECT {NEXT_ENTRY_ID} FROM generate_series(1, $3::int)) AS entries
"""  # noqa: S608 - constants
