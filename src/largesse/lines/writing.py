"""Writing the lines of placed orders: within the statement that writes the orders, or before it where they are many."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from largesse.database.inserting import insert
from largesse.database.pool import Connection

# Customer and order by id, number, the recipient's address and name, the number the code is found by, code and PIN sealed.
LineColumns = tuple[int, int, int, str | None, str | None, int, bytes]


class LineRow(msgspec.Struct, gc=False):
    """A row of `lines`, but that the place of its order stands for the order's id."""

    customer_id: int
    place: int
    number: int
    recipient_email: str | None
    recipient_name: str | None
    code_lookup: int
    sealed: bytes


_INTO = (
    "INSERT INTO lines (customer_id, order_id, number, recipient_email, recipient_name, code_lookup, sealed)"
)
_WRITE_COLUMNS = f"""
    {_INTO}
    SELECT * FROM unnest($1::int[], $2::int[], $3::int[], $4::text[], $5::text[], $6::bigint[], $7::bytea[])
"""  # noqa: S608 - a constant


def new_lines(lines: str, *, order_id: str) -> str:
    """SQL that writes lines: a statement, or part of one.

    `lines` is the placeholder of the `LineRow`s as a JSON array; `order_id` is SQL for the id of the order at a `place`.
    """
    return f"""
        {_INTO}
        SELECT customer_id, {order_id}, number, recipient_email, recipient_name, code_lookup, decode(sealed, 'base64')
        FROM json_to_recordset({lines}::json) AS new (
            customer_id integer, place integer, number integer, recipient_email text, recipient_name text, code_lookup bigint,
            sealed text)
    """  # noqa: S608 - placeholders


async def write_columns(connection: Connection, lines: Sequence[LineColumns]) -> None:
    """Writes lines that know their orders' ids, by arrays of columns: COPY is refused where row-level security holds."""
    await connection.execute(_WRITE_COLUMNS, *map(list, zip(*lines, strict=True)))


async def insert_lines(connection: Connection, lines: Sequence[LineColumns]) -> None:
    """Writes lines that know their orders' ids, of one customer, on its node."""
    await insert(connection, _INTO, lines)


async def readdress_lines(
    connection: Connection, customer_id: int, order_id: int, numbers: Sequence[int], email: str
) -> None:
    """Has lines of an order be to another address. Call it inside a transaction that has locked them."""
    await connection.execute(
        "UPDATE lines SET recipient_email = $4 WHERE customer_id = $1 AND order_id = $2 AND number = ANY($3::int[])",
        customer_id,
        order_id,
        numbers,
        email,
    )
