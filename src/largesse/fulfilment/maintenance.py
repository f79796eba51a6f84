"""Maintenance, from time to time: late gifts expire, and the voucher inventory is measured."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import Gauge

from largesse.base.money import canonical
from largesse.database.distribution import arguments, within
from largesse.database.pool import Connection, commit_as_one
from largesse.database.rounds import Customers, places
from largesse.lines.states import LineKey, State, record_move

STOCK_FREE = Gauge(
    "largesse_stock_free", "Voucher numbers that can be handed out.", ["product", "value", "currency"]
)
STOCK_WAITING = Gauge(
    "largesse_stock_waiting",
    "Claimed gifts that wait for a voucher number.",
    ["product", "value", "currency"],
)

_EXPIRED_AT_ONCE = 500


async def expire_late(connection: Connection, customers: Customers = None) -> bool:
    """Moves gifts whose time is over to `expired`, of those customers, else of all; True when there may be more. Call it inside a transaction.

    Only gifts whose recipient still has something to do: one that waits for a voucher or a parcel is late through no
    fault of theirs. Lines that somebody is busy with are left for the next time.
    """
    await commit_as_one(connection)
    expired = [
        await _expire_late(connection, neighbours) for neighbours in await places(connection, customers)
    ]
    return _EXPIRED_AT_ONCE in expired


async def _expire_late(connection: Connection, neighbours: Customers) -> int:
    if neighbours is None:
        rows = await connection.fetch(_LATE, _EXPIRED_AT_ONCE)
    else:
        waiting = await connection.fetch(_WAITING_OF, neighbours)
        columns = ([key[at] for key in waiting] for at in range(3))
        rows = await connection.fetch(_LATE_BUT, _EXPIRED_AT_ONCE, *columns, neighbours)
    if not rows:
        return 0
    keys = [LineKey(*row) for row in rows]
    by_column = tuple([key[at] for key in keys] for at in range(3))
    # What the locks waited for may have moved the lines on.
    still = await connection.fetch(_still_there(neighbours), *by_column, *arguments(neighbours))
    waiting = await connection.fetch(_WAITING_AMONG, *by_column)
    now = await connection.fetchval("SELECT clock_now()")
    for key in sorted({LineKey(*row) for row in still} - {LineKey(*row) for row in waiting}):
        await record_move(connection, key, State.EXPIRED, now)
    return len(rows)


def _late(waiting: Iterable[str], of: str = "") -> str:
    """SQL for the first $1 lines whose recipient's time is over, locked; none of those in `waiting`."""
    left_out = "".join(
        f" AND NOT EXISTS (SELECT FROM {lines} WHERE w.customer_id = s.customer_id AND w.order_id = s.order_id AND w.number = s.number)"
        for lines in waiting
    )
    return f"""
        SELECT l.customer_id, l.order_id, l.number FROM line_states s JOIN lines l USING (customer_id, order_id, number)
        WHERE s.state IN ('claimed', 'chosen') AND s.expires_at <= (SELECT clock_now()) {left_out} {of}
        ORDER BY s.expires_at LIMIT $1 FOR UPDATE OF l SKIP LOCKED
    """  # noqa: S608 - constants


def _still_there(neighbours: Customers) -> str:
    return f"""
        SELECT customer_id, order_id, number
        FROM unnest($1::int[], $2::int[], $3::int[]) AS late (customer_id, order_id, number)
        JOIN line_states s USING (customer_id, order_id, number)
        WHERE s.state IN ('claimed', 'chosen') {within("s.customer_id", "$4", neighbours)}
    """  # noqa: S608 - a placeholder


_LATE = _late(("voucher_waits AS w", "shipments AS w"))
# Where lines lie on nodes and what they wait for does not: those of customers $5.
_LATE_BUT = _late(
    ("unnest($2::int[], $3::int[], $4::int[]) AS w (customer_id, order_id, number)",),
    within("s.customer_id", "$5", ()) + " " + within("l.customer_id", "$5", ()),
)
_WAITING_OF = """
    SELECT customer_id, order_id, number FROM voucher_waits WHERE customer_id = ANY($1::int[])
    UNION ALL SELECT customer_id, order_id, number FROM shipments WHERE customer_id = ANY($1::int[]) AND shipped_at IS NULL
"""
_WAITING_AMONG = """
    SELECT customer_id, order_id, number
    FROM unnest($1::int[], $2::int[], $3::int[]) AS late (customer_id, order_id, number)
    WHERE EXISTS (SELECT FROM voucher_waits w WHERE (w.customer_id, w.order_id, w.number) = (late.customer_id, late.order_id, late.number))
       OR EXISTS (SELECT FROM shipments w WHERE (w.customer_id, w.order_id, w.number) = (late.customer_id, late.order_id, late.number))
"""
# Of the customers in $1, those of the gifts that are late.
CUSTOMERS_LATE = """
    SELECT DISTINCT customer_id FROM line_states
    WHERE state IN ('claimed', 'chosen') AND expires_at <= (SELECT clock_now()) AND customer_id = ANY($1::int[])
"""


async def measure_inventory(connection: Connection) -> None:
    """Sets the gauges of the voucher inventory. Numbers already allocated are not counted: there may be millions."""
    rows = await connection.fetch(
        """
        WITH free AS (SELECT product_id, value_minor, count(*) AS free FROM vouchers WHERE order_id IS NULL GROUP BY 1, 2),
        waits AS (SELECT product_id, value_minor, count(*) AS waiting FROM voucher_waits GROUP BY 1, 2)
        SELECT p.key, value_minor, p.currency, coalesce(free, 0) AS free, coalesce(waiting, 0) AS waiting
        FROM free FULL JOIN waits USING (product_id, value_minor) JOIN products p ON p.id = product_id
        """
    )
    STOCK_FREE.clear()
    STOCK_WAITING.clear()
    for row in rows:
        labels = (row["key"], canonical(row["value_minor"], row["currency"]), row["currency"])
        STOCK_FREE.labels(*labels).set(row["free"])
        STOCK_WAITING.labels(*labels).set(row["waiting"])
