"""Erasing recipients from the texts of orders: the personal options and the external reference."""

from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

from largesse.base.email import address_pattern, email_key
from largesse.db.fragments import Fragment, compose, each, holds_address, identifier, join, names, placeholder
from largesse.db.pool import Connection
from largesse.events.store import rewrite_event
from largesse.orders.options import PERSONAL

_TEXTS = (*PERSONAL, "external_reference")  # columns of `orders`
_COLUMNS = names(_TEXTS)
_ERASE = each("{name} = NULL", PERSONAL)
_BEFORE = each("before.{name}", PERSONAL)
_ERASED = "…"
_HOLDS_ADDRESS = r"[^\s@]@[^\s@]"  # a regular expression of PostgreSQL

# Replaces the external reference of an order; null if a caller gave the replacement to another order.
# The COLLATE is needed for the index of external references, as `reference` has another collation.
_ERASED_REFERENCE = Fragment("""
    CASE WHEN NOT EXISTS (
        SELECT FROM orders AS other WHERE other.customer_id = $1 AND other.environment = orders.environment
        AND other.external_reference = ('erased-' || orders.reference) COLLATE "default" AND other.id <> orders.id
    ) THEN 'erased-' || orders.reference END
""")
_LOCK = compose(
    """
    SELECT {columns}, created_at, {erased_reference} AS erased_reference FROM orders WHERE customer_id = $1 AND id = $2 FOR UPDATE
    """,
    columns=_COLUMNS,
    erased_reference=_ERASED_REFERENCE,
)
_WRITE = compose(
    "UPDATE orders SET {assigned} WHERE customer_id = $1 AND id = $2",
    assigned=join(
        Fragment(", "),
        (
            compose("{name} = {value}", name=identifier(name), value=placeholder(f"${at}"))
            for at, name in enumerate(_TEXTS, 3)
        ),
    ),
)
# Few texts have an @, and looking for one takes a third of the time that changing a text to small letters takes.
_MENTIONING = compose(
    """
    SELECT customer_id, id FROM orders WHERE ({has_sign}) AND {holds} AND ($2::int IS NULL OR customer_id = $2) ORDER BY id
    """,
    has_sign=join(Fragment(" OR "), (compose("{name} LIKE '%@%'", name=identifier(name)) for name in _TEXTS)),
    holds=holds_address(compose("lower(concat_ws(' ', {columns}))", columns=_COLUMNS)),
)
_ERASE_TEXTS = compose(
    """
    WITH before AS (
        SELECT id, {columns}, external_reference ~ $3 AS is_renamed FROM orders
        WHERE customer_id = $1 AND id = ANY($2::int[]) AND erased_at IS NULL ORDER BY id FOR UPDATE SKIP LOCKED)
    UPDATE orders SET erased_at = (SELECT clock_now()), {erase}, external_reference =
        CASE WHEN is_renamed THEN {erased_reference} ELSE orders.external_reference END
    FROM before WHERE orders.customer_id = $1 AND orders.id = before.id
    RETURNING before.id, CASE WHEN is_renamed THEN before.external_reference END AS external_reference, {before}
    """,
    columns=_COLUMNS,
    erase=_ERASE,
    before=_BEFORE,
    erased_reference=_ERASED_REFERENCE,
)


class Texts(NamedTuple):
    """The texts of an order before it was erased."""

    order_id: int
    external_reference: str | None
    written: tuple[str | None, ...]  # the personal texts


async def find_orders_mentioning(connection: Connection, email: str, customer_id: int | None) -> list[tuple[int, int]]:
    """Returns customer and id of each order with that address in a text, of one customer or of all. Reads all orders."""
    rows = await connection.fetch(_MENTIONING, email_key(email), customer_id)
    return [(row["customer_id"], row["id"]) for row in rows]


async def erase_mentions(connection: Connection, order: tuple[int, int], email: str) -> Texts | None:
    """Removes an address from the texts of an order and of its event. Returns the texts as they were.

    An external reference that contains the address is replaced as a whole, so the caller's reference no longer finds the order. If
    another order has the replacement already, the reference is removed.
    """
    row = await connection.fetchrow(_LOCK, *order)
    if row is None:
        return None
    address = address_pattern(email)
    texts = {name: None if row[name] is None else address.sub(_ERASED, row[name]) for name in _TEXTS}
    if texts["external_reference"] != row["external_reference"]:
        texts["external_reference"] = row["erased_reference"]
    await connection.execute(_WRITE, *order, *texts.values())
    await rewrite_event(connection, order, row["created_at"], texts)
    return Texts(order[1], row["external_reference"], tuple(row[name] for name in PERSONAL))


async def erase_texts(connection: Connection, customer_id: int, order_ids: Sequence[int]) -> list[Texts]:
    """Erases the personal texts of a customer's orders, and references that contain an address. Returns the erased texts.

    Marks the orders as erased. Leaves out orders that are marked already or locked by another transaction. Does not
    change their events, which are deleted earlier.
    """
    rows = await connection.fetch(_ERASE_TEXTS, customer_id, list(order_ids), _HOLDS_ADDRESS)
    texts = (Texts(order_id, reference, tuple(written)) for order_id, reference, *written in map(tuple, rows))
    return sorted(texts, key=attrgetter("order_id"))
