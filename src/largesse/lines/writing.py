"""Writing the lines of placed orders: within the statement that writes the orders, or by COPY where they are many."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from largesse.database import Connection

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


_COLUMNS = ("customer_id", "order_id", *LineRow.__struct_fields__[2:])


def lines_cte(lines: str, *, order_id: str) -> str:
    """SQL that writes lines, as a common table expression of a larger statement.

    `lines` is the placeholder of the `LineRow`s as a JSON array; `order_id` is SQL for the id of the order at a `place`.
    """
    return f"""
        new_lines AS (
            INSERT INTO lines (customer_id, order_id, number, recipient_email, recipient_name, code_lookup, sealed)
            SELECT customer_id, {order_id}, number, recipient_email, recipient_name, code_lookup, decode(sealed, 'base64')
            FROM json_to_recordset({lines}::json) AS new (
                customer_id integer, place integer, number integer, recipient_email text, recipient_name text, code_lookup bigint,
                sealed text)
        )
    """  # noqa: S608 - placeholders


async def copy_lines(connection: Connection, lines: Sequence[LineColumns]) -> None:
    """Writes lines by COPY, which for many rows takes less time than any INSERT."""
    await connection.copy_records_to_table("lines", records=lines, columns=_COLUMNS)


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
