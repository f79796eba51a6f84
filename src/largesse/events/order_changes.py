"""The table `order_changes`: which orders have changed since the read models last read them.

A row does not say what changed: the read models read the order as it is now, so several changes count as one. A row is written in the
transaction that changes the order. When an order is placed, its event is enough.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from largesse.db.fragments import Fragment, compose, grouped
from largesse.db.pool import Connection
from largesse.db.shard_groups import Customers
from largesse.db.sharding import arguments
from largesse.db.statements import Part

# The customers among $1 with the newest changes of orders.
CUSTOMERS_CHANGED = """
    SELECT customer_id FROM order_changes WHERE customer_id = ANY($1::int[]) ORDER BY id DESC LIMIT 500
"""
_CHANGED = "INSERT INTO order_changes (customer_id, order_id, changed_at) VALUES ($1, $2, clock_now())"
_RECORD = """
    INSERT INTO order_changes (customer_id, order_id, texts, changed_at)
    SELECT customer_id, order_id, $3, (SELECT clock_now())
    FROM unnest($1::int[], $2::int[]) AS changed (customer_id, order_id)
"""
_NEWEST = grouped(
    """
    SELECT id, customer_id, order_id, texts FROM order_changes
    WHERE (texts OR NOT $2) {within customer_id} ORDER BY id DESC LIMIT $1
    """,
    "$3",
)
# BETWEEN bounds the scan of the index. If VACUUM last found the queue empty, the planner takes it for empty.
# Then it would compare each id of a list with each waiting row. `+ 0` prevents that.
_REMOVE = """
    DELETE FROM order_changes WHERE customer_id = ANY($1::int[]) AND id BETWEEN $3 AND $4 AND id + 0 = ANY($2::bigint[])
"""
# For changes with texts that still wait, such as after an interrupted `rebuild-reports`: every order is about to be recorded again.
_FORGET_TEXTS = "DELETE FROM order_changes WHERE texts"
_CHANGE_ALL = """
    INSERT INTO order_changes (customer_id, order_id, texts, changed_at)
    SELECT customer_id, id, true, (SELECT clock_now()) FROM orders ORDER BY id
"""
_LAST = "SELECT max(id) FROM order_changes WHERE id <= $1 AND texts"
_LAST_OF_ALL = "SELECT coalesce(max(id), 0) FROM order_changes"


class Change(NamedTuple):
    """An order that has changed; with `texts`, its names and texts may have changed too."""

    id: int
    customer_id: int
    order_id: int
    texts: bool


def changed_cte(orders: Fragment) -> Fragment:
    """Returns the part of a statement that records changes of orders. `orders` is a query of constants for their `customer_id` and `order_id`."""
    return compose(
        """
        changed_orders AS (
            INSERT INTO order_changes (customer_id, order_id, changed_at)
            SELECT customer_id, order_id, (SELECT clock_now()) FROM ({orders}) AS changed)
    """,
        orders=orders,
    )


def changed(customer_id: int, order_id: int) -> Part:
    """Returns the part of a statement that records the change of an order."""
    return Part(_CHANGED, customer_id, order_id)


async def record_changes(connection: Connection, orders: Iterable[tuple[int, int]], *, texts: bool = False) -> None:
    """Records that orders have changed, each by the ids of customer and order. Call it inside the transaction that changes them."""
    wanted = sorted(orders)
    customer_ids, order_ids = [customer_id for customer_id, _ in wanted], [order_id for _, order_id in wanted]
    await connection.execute(_RECORD, customer_ids, order_ids, texts)


async def read_changes(
    connection: Connection, limit: int, customers: Customers = None, *, texts: bool = False
) -> list[Change]:
    """Returns the newest changes, at most `limit`, so that recent changes do not wait behind a backlog. With `texts`, only changes with texts."""
    rows = await connection.fetch(_NEWEST.of(customers), limit, texts, *arguments(customers))
    return [Change(*row) for row in rows]


async def remove_changes(connection: Connection, changes: Sequence[Change]) -> None:
    """Deletes changes. Call it inside the transaction that updates the read models."""
    customer_ids, ids = {change.customer_id for change in changes}, [change.id for change in changes]
    await connection.execute(_REMOVE, sorted(customer_ids), ids, min(ids), max(ids))


async def last_change(connection: Connection, *, up_to: int) -> int | None:
    """Returns the id of the last change with texts and an id up to `up_to`; None if there is none."""
    last_id: int | None = await connection.fetchval(_LAST, up_to)
    return last_id


async def change_all_orders(connection: Connection) -> tuple[int, int]:
    """Records every order as changed. Returns how many orders there are, and the id of the last change."""
    await connection.execute(_FORGET_TEXTS)
    done = await connection.execute(_CHANGE_ALL)
    return int(done.split()[-1]), await connection.fetchval(_LAST_OF_ALL)
