"""Finding the lines of a recipient by address, and erasing who that is.

No index leads from an address to its lines: each line would have to be written into it when its order is placed, for something that is
wanted a few times a year. All lines are read instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from largesse.base.email import email_key, erased_email, is_erased
from largesse.database.pool import Connection
from largesse.lines.states import LineKey


class Erased(NamedTuple):
    """What stands for each address from now on, by its key, and the addresses and names that are gone.

    Lines of one address go on having something in common, and those of two have not.
    """

    stand_ins: Mapping[str, str]
    told: Sequence[tuple[str, str | None]]


def may_be(column: str, key: str) -> str:
    """SQL for whether an address may be the one of a key (`email_key`); whoever asks compares what was found.

    Of addresses beyond ASCII all may, as databases differ in what the small form of a letter is.
    """
    return f"""
        CASE WHEN {key}::text ~ '^[[:ascii:]]*$' THEN lower({column} COLLATE "C") = {key}::text
             ELSE {column} ~ '[^[:ascii:]]' END
    """


async def find_recipient_lines(connection: Connection, email: str) -> list[LineKey]:
    """The lines whose gift was sent to that address, letter case ignored. Reads all lines."""
    rows = await connection.fetch(
        f"""
        SELECT customer_id, order_id, number, recipient_email FROM lines
        WHERE recipient_email IS NOT NULL AND {may_be("recipient_email", "$1")}
        """,  # noqa: S608 - made of constants
        email_key(email),
    )
    return [
        LineKey(row["customer_id"], row["order_id"], row["number"])
        for row in rows
        if email_key(row["recipient_email"]) == email_key(email)
    ]


async def read_left_emails(connection: Connection, after: LineKey, limit: int) -> list[tuple[LineKey, bytes]]:
    """The next lines whose recipient left an address, and what is sealed of it."""
    rows = await connection.fetch(
        """
        SELECT customer_id, order_id, number, sealed_email FROM line_states
        WHERE (customer_id, order_id, number) > ($1, $2, $3) AND sealed_email IS NOT NULL
        ORDER BY customer_id, order_id, number LIMIT $4
        """,
        *after,
        limit,
    )
    return [(LineKey(*tuple(row)[:3]), row["sealed_email"]) for row in rows]


async def erase_recipients(connection: Connection, order: tuple[int, int], numbers: Sequence[int]) -> Erased:
    """Erases address and name of those lines of an order (customer and id), and addresses that were left there; locks the lines."""
    rows = await connection.fetch(
        """
        SELECT number, recipient_email, recipient_name FROM lines
        WHERE customer_id = $1 AND order_id = $2 AND number = ANY($3::int[]) ORDER BY number FOR UPDATE
        """,
        *order,
        list(numbers),
    )
    stand_ins: dict[str, str] = {}
    told: list[tuple[str, str | None]] = []
    erased = []
    for row in rows:
        email = row["recipient_email"]
        if email is not None and not is_erased(email):
            erased.append(
                (row["number"], stand_ins.setdefault(email_key(email), erased_email(row["number"])))
            )
            told.append((email, row["recipient_name"]))
    await connection.execute(
        """
        UPDATE lines SET recipient_email = erased.email, recipient_name = NULL
        FROM unnest($3::int[], $4::text[]) AS erased (number, email)
        WHERE lines.customer_id = $1 AND lines.order_id = $2 AND lines.number = erased.number
        """,
        *order,
        [number for number, _ in erased],
        [email for _, email in erased],
    )
    await connection.execute(
        """
        UPDATE line_states SET sealed_email = NULL
        WHERE customer_id = $1 AND order_id = $2 AND number = ANY($3::int[]) AND sealed_email IS NOT NULL
        """,
        *order,
        list(numbers),
    )
    return Erased(stand_ins, told)
