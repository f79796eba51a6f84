"""The stock for the people who look after it: levels, warnings, and which order took which number. No number is ever shown."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from itertools import groupby

import msgspec

from largesse.base.errors import InvalidRequest, NotFound
from largesse.customers.actor import Actor
from largesse.customers.staff_roles import StaffRight
from largesse.db.pool import Connection, Row
from largesse.db.statements import members_of, plan_by_index
from largesse.fulfilment import stock_store
from largesse.fulfilment.store import read_references

EXPIRES_SOON_DAYS = 30
TAKEN_DAYS = 30
MOST_BELOW = 100_000
MOST_COUNTED = stock_store.MOST_COUNTED
_NOTED_AT_ONCE = 500


class StockLevel(msgspec.Struct, frozen=True):
    """The stock at one value of a product, counted up to MOST_COUNTED + 1, and up to the level of a warning. `value_minor` is None for a product with
    a range of amounts: then it counts each value so far, and adds them up.
    """

    value_minor: int | None
    free: int
    expiring: int  # the free numbers that expire within EXPIRES_SOON_DAYS
    expired: int  # past their use-by date, and never handed out
    waiting: int  # recipients who wait


class StockedProduct(msgspec.Struct, frozen=True):
    """A digital gift with its levels. With fewer numbers than `below` there is a warning; None if there is never one."""

    id: int
    key: str
    name: str
    currency: str
    active: bool
    below: int | None
    levels: tuple[StockLevel, ...]

    def is_low(self, level: StockLevel) -> bool:
        """Returns whether fewer numbers are left than `below`. Always False for a gift that is not on sale."""
        return self.active and self.below is not None and level.free < self.below


class TakenNumber(msgspec.Struct, frozen=True):
    """A number that was handed out to a line of an order. Pages of the list continue after its `id`."""

    id: int
    value_minor: int
    customer: str
    order_reference: str
    line: int
    handed_at: datetime
    added_at: datetime


class LowStock(msgspec.Struct, frozen=True):
    """A product with fewer numbers at a value than its warning level, `below`."""

    product: str
    name: str
    currency: str
    value_minor: int | None
    free: int
    below: int


class CountedStock(msgspec.Struct, frozen=True):
    """A product at a value: how many numbers are left, and how many recipients wait, each counted up to MOST_COUNTED + 1."""

    product: str
    currency: str
    value_minor: int
    free: int
    waiting: int


async def list_stock(connection: Connection, words: str, after: int | None, most: int) -> list[StockedProduct]:
    """Returns digital products sorted by key, after the one with the id `after`. If `words` are given, the key or name must contain them."""
    rows = await connection.fetch(stock_store.STOCKED, None, words.lower(), after, most, EXPIRES_SOON_DAYS)
    return [_stocked(list(of_one)) for _, of_one in groupby(rows, key=lambda row: row["id"])]


async def find_stocked(connection: Connection, product_id: int) -> StockedProduct:
    """Returns a digital product with its levels. Raises NotFound."""
    rows = await connection.fetch(stock_store.STOCKED, product_id, "", None, 1, EXPIRES_SOON_DAYS)
    if not rows:
        raise NotFound("There is no such digital gift.")
    return _stocked(rows)


def _stocked(rows: Sequence[Row]) -> StockedProduct:
    """Builds a product from its rows. There is one for each level: six columns of the product, then the columns of the level."""
    id_, key, name, currency, active, below = tuple(rows[0])[:6]
    levels = tuple(StockLevel(*tuple(row)[6:]) for row in rows)
    return StockedProduct(id_, key, name, currency, active, below, levels)


async def count_taken(connection: Connection, product_id: int) -> int:
    """Returns how many numbers of a product were handed out in the last TAKEN_DAYS, counted up to MOST_COUNTED + 1."""
    return int(await connection.fetchval(stock_store.COUNT_TAKEN, product_id, TAKEN_DAYS, MOST_COUNTED + 1))


async def list_taken(connection: Connection, product_id: int, before: int | None, most: int) -> list[TakenNumber]:
    """Returns which lines got numbers of a product, newest first. `before` is the last id of the previous page."""
    rows = await connection.fetch(stock_store.TAKEN, product_id, before, most)
    references = await read_references(connection, rows)
    return [
        TakenNumber(
            **members_of(TakenNumber, row),
            order_reference=references.get((row["customer_id"], row["order_id"]), ""),
            line=row["number"],
        )
        for row in rows
    ]


async def note_low_stock(connection: Connection) -> None:
    """Notes which stocks are below their warnings. `list_low_stock` reads these alone."""
    last = 0
    while last is not None:
        last = await connection.fetchval(stock_store.NOTE_LOW, last, _NOTED_AT_ONCE)


async def list_low_stock(connection: Connection, most: int) -> list[LowStock]:
    """Returns products with fewer numbers than their warning level, the fewest numbers first. A worker must have noted them."""
    return [LowStock(*row) for row in await connection.fetch(stock_store.LOW, most)]


async def count_stock(connection: Connection) -> list[CountedStock]:
    """Returns each product and value that is in stock or that recipients wait for, counted up to MOST_COUNTED + 1."""
    async with connection.transaction():
        await plan_by_index(connection)
        free = await _count(connection, stock_store.COUNT_FREE, date.min)
        waiting = await _count(connection, stock_store.COUNT_WAITING, datetime.min.replace(tzinfo=UTC))
    levels = sorted(key for key in free.keys() | waiting.keys() if free.get(key) or waiting.get(key))
    rows = await connection.fetch(stock_store.PRODUCTS, list({product_id for product_id, _ in levels}))
    products = {row["id"]: row for row in rows}
    return [
        CountedStock(
            products[product_id]["key"],
            products[product_id]["currency"],
            value_minor,
            free.get((product_id, value_minor), 0),
            waiting.get((product_id, value_minor), 0),
        )
        for product_id, value_minor in levels
    ]


async def _count(connection: Connection, statement: str, first: date) -> dict[tuple[int, int], int]:
    """Returns by product and value how many rows there are, counted up to MOST_COUNTED + 1. Reads no more rows of each."""
    counted: dict[tuple[int, int], int] = {}
    after, left = (0, 0, first, 0), MOST_COUNTED + 1
    while rows := await connection.fetch(statement, *after, left):
        for row in rows:
            level = row["product_id"], row["value_minor"]
            counted[level] = counted.get(level, 0) + row["counted"]
        if sum(row["read"] for row in rows) < left:
            break
        after, left = (*level, rows[-1]["since"], rows[-1]["id"]), MOST_COUNTED + 1 - counted[level]
        if left == 0:
            after, left = (level[0], level[1] + 1, first, 0), MOST_COUNTED + 1
    return counted


async def warn_below(actor: Actor, product_id: int, below: int | None) -> None:
    """Sets the warning level of a product; None removes it. Raises NotFound, and InvalidRequest for a level outside 1 to MOST_BELOW."""
    if below is not None and not 1 <= below <= MOST_BELOW:
        raise InvalidRequest(f"The level of a warning must be from 1 to {MOST_BELOW:,} numbers.")
    async with actor.transaction(StaffRight.STOCK) as transaction:
        connection = transaction.connection
        product = await find_stocked(connection, product_id)
        if below == product.below:
            return
        if below is None:
            await connection.execute(stock_store.END_WARNING, product_id)
        else:
            await connection.execute(stock_store.SET_WARNING, product_id, below)
            await connection.execute(stock_store.NOTE_LOW, product_id - 1, 1)
        before, after = {"below": product.below}, {"below": below}
        await transaction.record("stock.warned", f"gift {product.key}"[:200], before=before, after=after)
