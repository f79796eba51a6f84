"""The newest orders of a customer, for callers that poll: lists asked for at once are read together.

Who asks for the same list at the same time gets the same answer, read and encoded once. Each read begins after all
who wait for it have asked, so nobody misses an order that was placed before.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from largesse.batching import Batcher
from largesse.database import Database, Row
from largesse.identity import Principal
from largesse.money import to_number
from largesse.orders.shapes import ORDER_CREATED, OrderRecord

# What a list is of: customer, environment, and how many orders at most.
_List = tuple[int, str, int]

_LISTS_AT_ONCE = 100
_encode = msgspec.json.Encoder().encode


class OrderLists:
    """Reads lists of orders."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._reads: Batcher[_List, bytes] = Batcher(
            self._read, tasks=1, max_items=_LISTS_AT_ONCE, max_waiting=5_000
        )

    async def newest(self, principal: Principal, *, limit: int) -> bytes:
        """The newest orders of the principal's customer and environment, newest first: JSON, a list of OrderRecord.

        Raises Unavailable when too many wait, and one of DATABASE_AWAY.
        """
        return await self._reads.submit((principal.customer_id, principal.environment, limit))

    async def close(self) -> None:
        """Answers who waits, then ends."""
        await self._reads.close()

    async def _read(self, wanted: list[_List]) -> Sequence[bytes]:
        """Reads by `orders_newest`, which is what the `+ 0` are for."""
        lists = list(dict.fromkeys(wanted))
        rows = await self._database.fetch(
            """
            SELECT list.at, o.id, o.reference, o.customer_id, o.value_minor, o.currency, o.country, o.source,
                   o.external_reference, o.gift_selection, o.product_id, o.collection_id, o.wrapping_key, o.from_name,
                   o.delivery_mode, o.code_count, o.service_account_id, o.created_at
            FROM unnest($1::int[], $2::text[], $3::int[]) WITH ORDINALITY
                AS list (customer_id, environment, length, at)
            CROSS JOIN LATERAL (
                SELECT * FROM orders
                WHERE customer_id + 0 = list.customer_id AND environment = list.environment
                ORDER BY id + 0 DESC LIMIT list.length
            ) AS o
            ORDER BY list.at, o.id DESC
            """,
            [customer_id for customer_id, _, _ in lists],
            [environment for _, environment, _ in lists],
            [length for _, _, length in lists],
        )
        records: list[list[OrderRecord]] = [[] for _ in lists]
        for row in rows:
            records[row["at"] - 1].append(_record(row))
        answers = dict(zip(lists, map(_encode, records), strict=True))
        return [answers[each] for each in wanted]


def _record(row: Row) -> OrderRecord:
    return OrderRecord(
        id=row["id"],
        event=ORDER_CREATED,
        reference=row["reference"],
        customer_id=row["customer_id"],
        value=to_number(row["value_minor"], row["currency"]),
        currency=row["currency"],
        country=row["country"],
        source_type=row["source"],
        external_reference=row["external_reference"],
        gift_selection_type=row["gift_selection"],
        gift_product_id=row["product_id"],
        gifts_collection_id=row["collection_id"],
        wrapping_key=row["wrapping_key"],
        from_name=row["from_name"],
        delivery_mode=row["delivery_mode"],
        line_count=row["code_count"],
        created_by=row["service_account_id"],
        creation_date=row["created_at"],
    )
