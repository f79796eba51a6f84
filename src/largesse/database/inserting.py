"""Rows written as values, by `INSERT … VALUES`: how a node is handed rows of its customers.

An engine that spreads tables plans such a statement for the one part of the table that its rows belong to. What is selected (`INSERT … SELECT`)
it plans for every part, and asks leave of every part, one that is being moved as well. Elsewhere one JSON array a statement costs less.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import chain

from largesse.database.pool import Connection

# Rows of a statement at most. Each count is a statement of its own, which a session keeps: so there are few, the powers of two.
_ROWS_AT_ONCE = 64


async def insert(
    connection: Connection, into: str, rows: Sequence[Sequence[object]], *, conflict: str = ""
) -> None:
    """Writes rows, in their order, by as few statements as there are ones in the binary number of rows, and one more for every 64.

    `into` is the beginning of the statement, up to its columns, and `conflict` its end, if it has one; each row has a value for each column. Where customers are spread, rows of
    several customers are written by several nodes, and committed in two phases.
    """
    first = 0
    while left := len(rows) - first:
        count = min(1 << (left.bit_length() - 1), _ROWS_AT_ONCE)
        some = rows[first : first + count]
        await connection.execute(
            f"{into} {_values(count, len(some[0]))} {conflict}", *chain.from_iterable(some)
        )
        first += count


@cache
def _values(rows: int, columns: int) -> str:
    numbers = iter(range(1, rows * columns + 1))
    row = ", ".join(["${}"] * columns)
    return "VALUES " + ", ".join([f"({row})"] * rows).format(*numbers)
