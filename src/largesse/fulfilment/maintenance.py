"""Maintenance, from time to time: late gifts expire, and the voucher inventory is measured."""

from __future__ import annotations

from prometheus_client import Gauge

from largesse.base.money import canonical
from largesse.database import Connection
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


async def expire_late(connection: Connection) -> bool:
    """Moves gifts whose time is over to `expired`; True when there may be more. Call it inside a transaction.

    Only gifts whose recipient still has something to do: one that waits for a voucher or a parcel is late through no
    fault of theirs. Lines that somebody is busy with are left for the next time.
    """
    rows = await connection.fetch(
        """
        SELECT l.customer_id, l.order_id, l.number FROM line_states s JOIN lines l USING (customer_id, order_id, number)
        WHERE s.state IN ('claimed', 'chosen') AND s.expires_at <= (SELECT clock_now())
        AND NOT EXISTS (
            SELECT FROM voucher_waits w
            WHERE w.customer_id = s.customer_id AND w.order_id = s.order_id AND w.number = s.number)
        AND NOT EXISTS (
            SELECT FROM shipments p
            WHERE p.customer_id = s.customer_id AND p.order_id = s.order_id AND p.number = s.number)
        ORDER BY s.expires_at LIMIT $1 FOR UPDATE OF l SKIP LOCKED
        """,
        _EXPIRED_AT_ONCE,
    )
    now = await connection.fetchval("SELECT clock_now()")
    for row in rows:
        key = LineKey(*row)
        # What the locks waited for may have moved the line on.
        if await connection.fetchval(
            """
            SELECT state IN ('claimed', 'chosen')
               AND NOT EXISTS (
                   SELECT FROM voucher_waits WHERE customer_id = $1 AND order_id = $2 AND number = $3)
               AND NOT EXISTS (SELECT FROM shipments WHERE customer_id = $1 AND order_id = $2 AND number = $3)
            FROM line_states WHERE customer_id = $1 AND order_id = $2 AND number = $3
            """,
            *key,
        ):
            await record_move(connection, key, State.EXPIRED, now)
    return len(rows) == _EXPIRED_AT_ONCE


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
