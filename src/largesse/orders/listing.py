"""Lists of orders: for callers that poll, and for the operator.

Callers that request the same list at the same time share one read and one serialization. The read begins after all their requests, so no
caller misses an order that was placed before its request.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from operator import itemgetter
from typing import NamedTuple

import msgspec

from largesse.base.batching import Batcher, Receiver
from largesse.base.errors import InvalidRequest
from largesse.customers.principal import Principal
from largesse.db.fragments import Fragment, compose, each, grouped, names
from largesse.db.pool import Connection, Database, Row, is_distributed
from largesse.db.scope import Place, Planning, for_customers
from largesse.db.shard_groups import list_shard_groups
from largesse.db.sharding import arguments, at_node
from largesse.events.kinds import OrderRecord
from largesse.orders.ids import read_watermark
from largesse.orders.order import RESPONSE_COLUMNS, order_record
from largesse.orders.request import read_reference


class OrderOverview(msgspec.Struct, frozen=True):
    """An order as an operator sees it: no codes, names or addresses."""

    id: int
    created_at: datetime
    customer: str
    environment: str
    reference: str
    external_reference: str | None
    gift: str  # the key of the product or collection
    code_count: int
    delivery_mode: str  # send or manual
    scheduled_for: datetime | None
    source: str
    service_account: str | None
    account: str | None  # the key of the funding account; None when invoiced
    total_minor: int
    currency: str


async def list_newest_orders(
    connection: Connection, customer_id: int | None, *, before: int, limit: int
) -> list[OrderOverview]:
    """Returns the `limit` newest orders with ids below `before`, newest first, of one customer or of all."""
    rows: list[Row] = []
    for customers in await list_shard_groups(connection, None if customer_id is None else [customer_id]):
        rows += await connection.fetch(_NEWEST_OF_CUSTOMERS.of(customers), before, limit, *arguments(customers))
    newest = sorted(rows, key=itemgetter("id"), reverse=True)[:limit]
    gifts = {
        (row["product_id"], row["collection_id"]): row["key"]
        for row in await connection.fetch(
            _GIFTS, [row["product_id"] for row in newest], [row["collection_id"] for row in newest]
        )
    }
    orders = []
    for row in newest:
        columns = dict(row)
        gift = gifts[columns.pop("product_id"), columns.pop("collection_id")]
        orders.append(OrderOverview(gift=gift, **columns))
    return orders


# The newest orders of several customers, each customer's by the primary key.
_NEWEST_OF_CUSTOMERS = grouped(
    """
    SELECT o.id, o.created_at, c.key AS customer, o.environment, o.reference, o.external_reference, o.product_id,
           o.collection_id, o.code_count, o.delivery_mode, o.scheduled_for, o.source, s.key AS service_account,
           a.key AS account, o.total_minor, o.currency
    FROM customers c CROSS JOIN LATERAL (
        SELECT * FROM orders
        WHERE customer_id = c.id AND id < $1 {within customer_id} ORDER BY id DESC LIMIT $2) AS o
    LEFT JOIN service_accounts s ON s.id = o.service_account_id
    LEFT JOIN accounts a ON a.customer_id = o.customer_id AND a.id = o.account_id {within a.customer_id}
    WHERE true {within c.id}
    ORDER BY o.id DESC LIMIT $2
    """,
    "$3",
)
# The keys of the products and collections of orders, from two arrays of their ids.
_GIFTS = """
    SELECT id AS product_id, NULL::int AS collection_id, key FROM products WHERE id = ANY($1::int[])
    UNION ALL SELECT NULL, id, key FROM collections WHERE id = ANY($2::int[])
"""


_LISTS_AT_ONCE = 100
Serialize = Callable[[list[OrderRecord]], bytes]


class _List(NamedTuple):
    """A requested list: at most `length` orders, the newest ones or those after an id."""

    customer_id: int
    environment: str
    length: int
    after: int = 0


class OrderLists:
    """Reads lists of orders, and serializes each once."""

    def __init__(self, database: Database, serialize: Serialize) -> None:
        self._database = database
        self._serialize = serialize
        self._newest: Batcher[_List, bytes] = Batcher(
            self._read_newest, tasks=1, max_items=_LISTS_AT_ONCE, max_waiting=5_000
        )
        self._next: Batcher[_List, bytes] = Batcher(
            self._read_next, tasks=1, max_items=_LISTS_AT_ONCE, max_waiting=5_000
        )

    async def newest(self, principal: Principal, *, limit: int) -> bytes:
        """Returns the newest orders of the principal's customer and environment, newest first, serialized.

        Raises Unavailable when too many wait, and one of DATABASE_AWAY.
        """
        return await self._newest.submit(_List(principal.customer_id, principal.environment, limit))

    def newest_for(self, receiver: Receiver[bytes], principal: Principal, *, limit: int) -> None:
        """Gives the result of `newest`, or an error, to `receiver`. Raises Unavailable if too many wait."""
        self._newest.submit_for(receiver, _List(principal.customer_id, principal.environment, limit))

    async def after(self, principal: Principal, order_id: int, *, limit: int) -> bytes:
        """Returns the first orders of the principal's customer and environment with ids above `order_id`, oldest first, serialized.

        Ends at the watermark of `ids`, so that a caller who continues from the last id misses none.
        Raises Unavailable on a standby and when too many wait, and one of DATABASE_AWAY.
        """
        return await self._next.submit(_List(principal.customer_id, principal.environment, limit, order_id))

    async def of_reference(self, principal: Principal, reference: str, *, after: int | None) -> bytes:
        """Returns a list of the one order with a caller's reference and an id above `after`, or an empty list, serialized.

        The reference is read as a send reads it. Raises InvalidRequest for one that no order can have, and one of DATABASE_AWAY.
        """
        found = read_reference(reference)
        if found is None:
            raise InvalidRequest("`external_reference` must not be blank.")
        rows = await self._database.fetch(
            principal.scope, _OF_REFERENCE, principal.customer_id, principal.environment, found, after or 0
        )
        return self._serialize([order_record(order_id, values, created_at) for order_id, created_at, *values in rows])

    async def close(self) -> None:
        """Serves the callers that wait, then ends."""
        await self._newest.close()
        await self._next.close()

    async def _read_newest(self, requested: list[_List]) -> Sequence[bytes]:
        return await self._read(requested, _NEWEST)

    async def _read_next(self, requested: list[_List]) -> Sequence[bytes]:
        return await self._read(requested, _NEXT, await read_watermark(self._database))

    async def _read(self, requested: list[_List], queries: Mapping[bool, str], *arguments: int) -> Sequence[bytes]:
        lists = list(dict.fromkeys(requested))
        records: list[list[OrderRecord]] = []
        # On a cluster, each list is read from its customer's node.
        for at_once in [[one] for one in lists] if self._database.is_distributed else [lists]:
            scope = for_customers(((one.customer_id, one.environment) for one in at_once), Planning.IN_ORDER)
            pin = (at_once[0].customer_id,) if self._database.is_distributed else ()
            rows = await self._database.fetch(
                scope, queries[bool(pin)], *map(list, zip(*at_once, strict=True)), *arguments, *pin
            )
            read: list[list[OrderRecord]] = [[] for _ in at_once]
            for list_at, order_id, created_at, *values in rows:
                read[list_at - 1].append(order_record(order_id, values, created_at))
            records += read
        answers = dict(zip(lists, map(self._serialize, records), strict=True))
        return [answers[one] for one in requested]


def _reading(which: Fragment, pin: str) -> Fragment:
    """Returns SQL for the orders of lists, selected by `which`. With a `pin`, the placeholder of the one customer, it runs on the customer's node.

    The index `orders_newest` is of the expressions `customer_id::bigint` and `id::bigint`, so that no other queries use it. Before the first
    ANALYZE, they would use an index of the columns, and read all orders of a customer. A cast cannot fail, so the index works under row-level
    security too.
    """
    return compose(
        """
        SELECT list.at, o.id, o.created_at, {columns}
        FROM unnest($1::int[], $2::text[], $3::int[], $4::int[]) WITH ORDINALITY
            AS list (customer_id, environment, length, after, at)
        CROSS JOIN LATERAL (
            SELECT * FROM orders
            WHERE customer_id::bigint = list.customer_id AND environment = list.environment {node} {which}
            LIMIT list.length
        ) AS o
    """,
        columns=each("o.{name}", RESPONSE_COLUMNS),
        node=at_node("customer_id", pin),
        which=which,
    )


# A sorted range, so that the planner must use the index of references (see `_holders` in `reading_store`).
_OF_REFERENCE = compose(
    """
    SELECT id, created_at, {columns} FROM (
        SELECT * FROM orders
        WHERE customer_id = $1 AND environment = $2 AND external_reference >= $3 AND external_reference <= $3
        ORDER BY external_reference LIMIT 1) AS found
    WHERE id > $4
""",
    columns=names(RESPONSE_COLUMNS),
)
_DOWN = Fragment("ORDER BY id::bigint DESC")
# The key says whether customers are distributed over nodes.
_NEWEST = {
    is_distributed: compose(
        "{lists} ORDER BY list.at, o.id DESC", lists=_reading(_DOWN, "$5" if is_distributed else "")
    )
    for is_distributed in (False, True)
}
_AFTER = Fragment("AND id::bigint > list.after AND id::bigint <= $5 ORDER BY id::bigint")
_NEXT = {
    is_distributed: compose("{lists} ORDER BY list.at, o.id", lists=_reading(_AFTER, "$6" if is_distributed else ""))
    for is_distributed in (False, True)
}


# The key says whether customers are distributed over nodes.
_OF_END = {
    is_distributed: compose(
        """
        SELECT created_at, id FROM (
            SELECT created_at, id, reference FROM orders
            WHERE customer_id::bigint = $1 AND environment = $2 {node} ORDER BY id::bigint DESC LIMIT $4) AS newest
        WHERE right(reference, 6) = $3
        """,
        node=at_node("customer_id", "$1" if is_distributed else ""),
    )
    for is_distributed in (False, True)
}


async def find_by_end(connection: Connection, place: Place, end: str, looked_at: int) -> list[Row]:
    """Returns creation times and ids of the orders whose reference ends in six characters, among the newest `looked_at`."""
    return await connection.fetch(_OF_END[is_distributed(connection)], *place, end, looked_at)
