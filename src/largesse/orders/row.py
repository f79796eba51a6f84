"""The order record: what GET /orders and the order.created event tell of an order, from its columns.

An order as the database keeps it: a row of `orders`, and what is told of it.

The columns are named here alone; what writes or reads the table takes their names from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec
from msgspec.structs import astuple

from largesse.base.money import to_number
from largesse.db.pool import Connection, Row
from largesse.db.statements import insert
from largesse.events.kinds import ORDER_CREATED, OrderRecord
from largesse.lines.codes import GivenCode
from largesse.orders.options import Options

# Members of a record that are columns of another name.
_COLUMN_OF = {
    "value": "value_minor",
    "source_type": "source",
    "gift_selection_type": "gift_selection",
    "gift_product_id": "product_id",
    "gifts_collection_id": "collection_id",
    "line_count": "code_count",
    "created_by": "service_account_id",
}
_, _, *_told, _ = OrderRecord.__struct_fields__  # but the id, the event and the time
# The columns of an order that its record tells, in the order of the record.
RESPONSE_COLUMNS = tuple(_COLUMN_OF.get(member, member) for member in _told)


def order_record(order_id: int, told: Sequence[Any], created_at: datetime) -> OrderRecord:
    """The order record of what an order has in `RESPONSE_COLUMNS`."""
    reference, customer_id, value_minor, currency, *rest = told
    value = to_number(value_minor, currency)
    members = [order_id, ORDER_CREATED.name, reference, customer_id, value, currency, *rest, created_at]
    return OrderRecord(*members)


Inet = Annotated[str, "inet"]
_SQL_TYPES = {str: "text", int: "bigint", datetime: "timestamptz"}


class OrderRow(Options, frozen=True, kw_only=True, omit_defaults=True):
    """A row of `orders` but for its id and the time it was placed, which are known only then; its options are columns too."""

    reference: str
    customer_id: int
    environment: str
    service_account_id: int | None  # none of what a person placed
    source: str
    external_reference: str | None
    gift_selection: str  # gift: one product; gifts: a collection
    product_id: int | None
    collection_id: int | None
    template_id: int | None
    country: str
    currency: str
    value_minor: int
    total_minor: int
    code_count: int
    recipient_count: int
    delivery_mode: str  # send or manual
    scheduled_for: datetime | None
    expiry_after_days: int | None
    account_id: int | None
    api_key_id: int | None
    address: Inet | None
    user_id: int | None = None  # the person who placed it

    @property
    def is_batch(self) -> bool:
        """Whether its codes were handed to the caller, and mailed to nobody."""
        return self.delivery_mode == "manual"


class Receipt(msgspec.Struct, frozen=True):
    """What whoever placed an order gets: the order, and the codes of a batch in clear."""

    order: OrderRow
    codes: list[GivenCode]


COLUMNS = OrderRow.__struct_fields__


def order_row(row: Row) -> OrderRow:
    """The order in a row that has all columns of `orders`."""
    kept = {name: row[name] for name in COLUMNS}
    address = kept.pop("address")
    return OrderRow(**kept, address=None if address is None else str(address))


def sql_columns() -> str:
    """The columns with their types, for a record that is read from JSON."""
    hints = get_type_hints(OrderRow, include_extras=True)
    return ", ".join(f"{name} {_sql_type(hints[name])}" for name in COLUMNS)


def new_orders(orders: str, beside: str, *, order_id: str) -> str:
    """SQL for orders as they are to be written, from two placeholders of JSON arrays: of theirs, and of what goes beside each.

    `order_id` is SQL for the id of the order at a `place`.
    """
    return f"""
        SELECT {order_id} AS id, new.* FROM ROWS FROM (
            json_to_recordset({orders}::json) AS ({sql_columns()}),
            json_to_recordset({beside}::json) AS (place integer, event_after_id text)) AS new
    """  # noqa: S608 - placeholders


def written_orders(orders: str, at: str) -> str:
    """SQL that writes `orders` as of a time: a statement, or the end of one."""
    return f"{_INTO} SELECT id, {at}, {_COLUMNS} FROM {orders}"  # noqa: S608 - placeholders


async def insert_orders(connection: Connection, orders: Iterable[tuple[int, OrderRow]], at: datetime) -> None:
    """Writes orders under these ids as of a time, of one customer, on its node."""
    await insert(connection, _INTO, [(order_id, at, *astuple(order)) for order_id, order in orders])


_COLUMNS = ", ".join(COLUMNS)
_INTO = f"INSERT INTO orders (id, created_at, {_COLUMNS})"


def _sql_type(hint: Any) -> str:
    """The type of PostgreSQL that holds what a field is declared to be; of every integer the larger, as JSON has but one."""
    if inner := [part for part in get_args(hint) if part is not type(None)]:
        if get_origin(hint) is Annotated:
            return next((part for part in inner if isinstance(part, str)), None) or _sql_type(inner[0])
        return _sql_type(inner[0])
    return _SQL_TYPES[hint]
