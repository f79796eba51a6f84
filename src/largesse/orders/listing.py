"""The orders of a customer, for callers that poll: lists asked for at once are read together.

Who asks for the same list at the same time gets the same answer, read and told once. Each read begins after all
who wait for it have asked, so nobody misses an order that was placed before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from largesse.base.batching import Batcher
from largesse.base.errors import InvalidRequest
from largesse.database.distribution import at_node
from largesse.database.pool import Database
from largesse.database.scope import for_customers
from largesse.events.order_created import OrderRecord
from largesse.identity.principal import Principal
from largesse.orders.horizon import read_horizon
from largesse.orders.record import TOLD_COLUMNS, order_record
from largesse.orders.request import read_reference

_LISTS_AT_ONCE = 100
# What makes of a list what callers are told; it goes to all of them as it is.
Tell = Callable[[list[OrderRecord]], bytes]


class _List(NamedTuple):
    """What a list is of: at most `length` orders, the newest, or the next after an id."""

    customer_id: int
    environment: str
    length: int
    after: int = 0


class OrderLists:
    """Reads lists of orders, and has each told once: `tell` makes of it what callers get."""

    def __init__(self, database: Database, tell: Tell) -> None:
        self._database = database
        self._tell = tell
        self._newest: Batcher[_List, bytes] = Batcher(
            self._read_newest, tasks=1, max_items=_LISTS_AT_ONCE, max_waiting=5_000
        )
        self._next: Batcher[_List, bytes] = Batcher(
            self._read_next, tasks=1, max_items=_LISTS_AT_ONCE, max_waiting=5_000
        )

    async def newest(self, principal: Principal, *, limit: int) -> bytes:
        """The newest orders of the principal's customer and environment, newest first, as it is told.

        Raises Unavailable when too many wait, and one of DATABASE_AWAY.
        """
        return await self._newest.submit(_List(principal.customer_id, principal.environment, limit))

    async def after(self, principal: Principal, order_id: int, *, limit: int) -> bytes:
        """The first orders of the principal's customer and environment whose ids are above `order_id`, in the same form.

        Oldest first, and none that an order with a lower id may still come before: whoever goes on from the last id misses
        none. Raises Unavailable on a standby and when too many wait, and one of DATABASE_AWAY.
        """
        return await self._next.submit(_List(principal.customer_id, principal.environment, limit, order_id))

    async def of_reference(self, principal: Principal, reference: str, *, after: int | None) -> bytes:
        """A list of the one order that holds a caller's reference, and whose id is above `after`; else an empty one. In the same form.

        The reference is read as a send reads it. Raises InvalidRequest for one that no order can hold, and one of DATABASE_AWAY.
        """
        wanted = read_reference(reference)
        if wanted is None:
            raise InvalidRequest("`external_reference` must not be blank.")
        rows = await self._database.fetch(
            principal.scope,
            _OF_REFERENCE,
            principal.customer_id,
            principal.environment,
            wanted,
            after or 0,
        )
        return self._tell([order_record(order_id, told, created_at) for order_id, created_at, *told in rows])

    async def close(self) -> None:
        """Answers who waits, then ends."""
        await self._newest.close()
        await self._next.close()

    async def _read_newest(self, wanted: list[_List]) -> Sequence[bytes]:
        return await self._read(wanted, _NEWEST)

    async def _read_next(self, wanted: list[_List]) -> Sequence[bytes]:
        return await self._read(wanted, _NEXT, await read_horizon(self._database))

    async def _read(
        self, wanted: list[_List], queries: Mapping[bool, str], *arguments: int
    ) -> Sequence[bytes]:
        lists = list(dict.fromkeys(wanted))
        records: list[list[OrderRecord]] = []
        # Where customers are spread, each list is asked of its customer's node.
        for at_once in [[each] for each in lists] if self._database.is_spread else [lists]:
            scope = for_customers((each.customer_id, each.environment) for each in at_once)
            pin = (at_once[0].customer_id,) if self._database.is_spread else ()
            rows = await self._database.fetch(
                scope, queries[bool(pin)], *map(list, zip(*at_once, strict=True)), *arguments, *pin
            )
            read: list[list[OrderRecord]] = [[] for _ in at_once]
            for list_at, order_id, created_at, *told in rows:
                read[list_at - 1].append(order_record(order_id, told, created_at))
            records += read
        answers = dict(zip(lists, map(self._tell, records), strict=True))
        return [answers[each] for each in wanted]


def _reading(which: str, pin: str) -> str:
    """SQL for the orders of lists, `which` of them each; with a `pin`, the placeholder of the customer of all, of its node.

    `orders_newest` is an index of the expressions `customer_id::bigint` and `id::bigint`, so that only who writes these is planned by it.
    An index of the columns would attract other queries before the first ANALYZE, and those read all orders of a customer. A cast cannot fail, and so is
    looked up in an index under row-level security, too.
    """
    return f"""
        SELECT list.at, o.id, o.created_at, {", ".join(f"o.{name}" for name in TOLD_COLUMNS)}
        FROM unnest($1::int[], $2::text[], $3::int[], $4::int[]) WITH ORDINALITY
            AS list (customer_id, environment, length, after, at)
        CROSS JOIN LATERAL (
            SELECT * FROM orders
            WHERE customer_id::bigint = list.customer_id AND environment = list.environment {at_node("customer_id", pin)} {which}
            LIMIT list.length
        ) AS o
    """  # noqa: S608 - constants


# As a range, in order, so that no other index than that of references fits, whatever is known of the table (`reading`).
_OF_REFERENCE = f"""
    SELECT id, created_at, {", ".join(TOLD_COLUMNS)} FROM (
        SELECT * FROM orders
        WHERE customer_id = $1 AND environment = $2 AND external_reference >= $3 AND external_reference <= $3
        ORDER BY external_reference LIMIT 1) AS found
    WHERE id > $4
"""  # noqa: S608 - constants
# By whether customers are spread over nodes.
_NEWEST = {
    spread: f"{_reading('ORDER BY id::bigint DESC', '$5' if spread else '')} ORDER BY list.at, o.id DESC"
    for spread in (False, True)
}
_AFTER = "AND id::bigint > list.after AND id::bigint <= $5 ORDER BY id::bigint"
_NEXT = {
    spread: f"{_reading(_AFTER, '$6' if spread else '')} ORDER BY list.at, o.id" for spread in (False, True)
}
