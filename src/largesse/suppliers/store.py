"""The SQL of supplier orders and of what was paid for them."""

from collections.abc import Sequence
from datetime import datetime

from largesse.catalogue.model import STOCK
from largesse.db.pool import Connection, Row
from largesse.fulfilment.vouchers import VoucherRequest
from largesse.jobs.leases import Queue
from largesse.jobs.notifier import notify
from largesse.lines.states import LineKey
from largesse.suppliers.model import supplier_order_id

# The statement repeats the condition of the index of due rows, so that the planner uses it.
SUPPLIER_QUEUE = Queue("supplier_orders", "id", "bigint", ready="supplier = $3 AND due_at < 'infinity'", order="due_at")

_ADD = """
    INSERT INTO supplier_orders
        (customer_id, order_id, number, supplier, attempt, supplier_order_id, product_id, value_minor, created_at, due_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9)
"""
# Runs before the order call of a new order. If a worker ends after it, the state `asked` remains, and the next worker polls.
BEGIN_ASKING = """
    UPDATE supplier_orders SET state = 'asked', asked_at = clock_now()
    FROM unnest($1::int[], $2::bigint[]) AS begun (customer_id, id)
    WHERE supplier_orders.customer_id = begun.customer_id AND supplier_orders.id = begun.id AND state = 'new'
"""
_ATTEMPTS = """
    SELECT coalesce(max(attempt), 0) FROM supplier_orders WHERE customer_id = $1 AND order_id = $2 AND number = $3 AND supplier = $4
"""
# Products with suppliers for which lines wait for stock and are due again: all suppliers refused, or there were none then.
PRODUCTS_WAITING = """
    SELECT p.id, p.suppliers FROM products p
    WHERE p.suppliers <> '{stock}' AND (
        SELECT true FROM voucher_waits w WHERE w.product_id = p.id AND NOT w.is_test AND w.ask_at <= (SELECT clock_now()) LIMIT 1)
    ORDER BY p.id
"""
DUE_AGAIN = """
    SELECT customer_id, id, order_id, number, value_minor FROM voucher_waits
    WHERE product_id = $1 AND NOT is_test AND ask_at <= (SELECT clock_now()) ORDER BY ask_at, id LIMIT $2
"""
_COUNT_ORDERS = "SELECT count(*) FROM supplier_orders WHERE customer_id = $1 AND order_id = $2 AND number = $3"
PRODUCTS = "SELECT id, key, currency, countries, suppliers FROM products WHERE id = ANY($1::int[])"
RECIPIENT = "SELECT recipient_email FROM lines WHERE customer_id = $1 AND order_id = $2 AND number = $3"
COUNTRY = "SELECT country FROM orders WHERE customer_id = $1 AND id = $2"
LOCK_HELD = """
    SELECT customer_id, id FROM supplier_orders
    JOIN unnest($1::int[], $2::bigint[], $3::bigint[]) AS held (held_by, held_id, held_fence)
        ON customer_id = held_by AND id = held_id AND fence = held_fence
    WHERE leased_until > '-infinity'
    ORDER BY customer_id, id FOR UPDATE OF supplier_orders
"""
WRITE_OUTCOME = """
    UPDATE supplier_orders SET state = $3, reason = $4, failures = $5, leased_until = '-infinity',
        due_at = CASE WHEN $6::float8 IS NULL THEN 'infinity' ELSE clock_now() + $6::float8 * interval '1 second' END,
        ended_at = CASE WHEN $3 IN ('new', 'asked', 'pending', 'cancelling') THEN NULL
                        WHEN $3 IN ('delivered', 'kept') THEN $7 ELSE coalesce(ended_at, $7) END,
        cost_minor = $8, cost_currency = $9
    WHERE customer_id = $1 AND id = $2
"""
ADD_COSTS = """
    INSERT INTO supplier_costs AS c (supplier, product_id, currency, day, bought, kept, value_minor, cost_minor)
    SELECT supplier, product_id, currency, ($1::timestamptz AT TIME ZONE 'UTC')::date, sum(bought), sum(kept), sum(value_minor), sum(cost_minor)
    FROM unnest($2::text[], $3::int[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[])
        AS new (supplier, product_id, currency, bought, kept, value_minor, cost_minor)
    GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
    ON CONFLICT (supplier, product_id, currency, day) DO UPDATE SET bought = c.bought + excluded.bought,
        kept = c.kept + excluded.kept, value_minor = c.value_minor + excluded.value_minor,
        cost_minor = c.cost_minor + excluded.cost_minor
"""
# The newest supplier orders, filtered by supplier and states if given.
NEWEST = """
    SELECT s.id, s.supplier, s.supplier_order_id, s.attempt, s.state, s.reason, s.failures, s.created_at, s.asked_at, s.ended_at,
           s.cost_minor, s.cost_currency, p.key AS product, s.value_minor, p.currency, o.reference, s.number
    FROM supplier_orders s JOIN products p ON p.id = s.product_id
    JOIN orders o ON o.customer_id = s.customer_id AND o.id = s.order_id
    WHERE ($1::text IS NULL OR s.supplier = $1) AND ($2::text[] IS NULL OR s.state = ANY($2))
    ORDER BY s.id DESC LIMIT $3
"""
COSTS = """
    SELECT c.supplier, p.key AS product, p.currency AS value_currency, c.currency, sum(bought)::bigint AS bought,
           sum(kept)::bigint AS kept, sum(value_minor)::bigint AS value_minor, sum(c.cost_minor)::bigint AS cost_minor
    FROM supplier_costs c JOIN products p ON p.id = c.product_id
    WHERE day >= $1 AND day <= $2 GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 4
"""
WAITING = """
    SELECT supplier, count(*) FILTER (WHERE state <> ALL('{lost,cancelled}')) AS waiting,
           count(*) FILTER (WHERE state = 'late') AS late,
           count(*) FILTER (WHERE failures >= 8 AND state <> ALL('{lost,cancelled}') OR reason = 'not_cancellable') AS stuck
    FROM supplier_orders WHERE due_at < 'infinity' GROUP BY supplier
"""
NAMED = "SELECT key, suppliers FROM products WHERE active AND suppliers <> '{stock}' ORDER BY key"


async def begin_buying(connection: Connection, wanted: VoucherRequest, at: datetime) -> bool:
    """Makes an order due at the first supplier of a product, and wakes the workers. Returns False if the product comes from stock alone."""
    first = next((name for name in wanted.suppliers if name != STOCK), None)
    if first is None:
        return False
    await add_order(connection, wanted.line, wanted.product_id, wanted.value_minor, first, 1, at)
    await notify(connection)
    return True


async def add_order(
    connection: Connection, line: LineKey, product_id: int, value_minor: int, supplier: str, attempt: int, at: datetime
) -> None:
    """Stores the order of an attempt at a supplier, before the first call."""
    of_supplier = supplier_order_id(line, supplier, attempt, at)
    await connection.execute(_ADD, *line, supplier, attempt, of_supplier, product_id, value_minor, at)


async def next_attempt(connection: Connection, line: LineKey, supplier: str) -> int:
    """Returns the number of the next attempt for a line at a supplier."""
    attempts: int = await connection.fetchval(_ATTEMPTS, *line, supplier)
    return attempts + 1


async def count_orders(connection: Connection, line: LineKey) -> int:
    """Returns how many orders were placed for a line, at all suppliers."""
    return int(await connection.fetchval(_COUNT_ORDERS, *line))


async def list_naming(connection: Connection) -> list[Row]:
    """Returns the active products that do not come from stock alone: their keys and their suppliers."""
    return await connection.fetch(NAMED)


async def list_newest(
    connection: Connection, supplier: str | None, states: Sequence[str] | None, limit: int
) -> list[Row]:
    """Returns the newest supplier orders, without any voucher."""
    return await connection.fetch(NEWEST, supplier, states, limit)
