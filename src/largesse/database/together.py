"""Statements that belong together: one where one server has all tables, and one after the other where customers are spread over nodes.

A statement that writes several tables saves round trips; a coordinator would take it apart, and pass rows through itself that a node
can write alone.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from largesse.database.pool import Connection, Row, is_spread


class Part:
    """A statement with its arguments, `$1` being the first. It neither needs nor minds what the parts beside it write."""

    __slots__ = ("arguments", "sql")

    def __init__(self, sql: str, *arguments: Any) -> None:
        self.sql = sql
        self.arguments = arguments


async def fetch_together(connection: Connection, *parts: Part) -> list[Row]:
    """Runs all parts; the rows of the last."""
    *first, last = parts
    if not is_spread(connection):
        sql = _one_statement(tuple((part.sql, len(part.arguments)) for part in parts))
        return await connection.fetch(sql, *(argument for part in parts for argument in part.arguments))
    for part in first:
        await connection.execute(part.sql, *part.arguments)
    return await connection.fetch(last.sql, *last.arguments)


@lru_cache(maxsize=64)
def _one_statement(parts: tuple[tuple[str, int], ...]) -> str:
    """The parts as one statement, their placeholders counted through."""
    counted, passed = [], 0
    for sql, arguments in parts:
        counted.append(_count_from(passed, sql))
        passed += arguments
    *first, last = counted
    beside = ", ".join(f"part_{at} AS ({sql})" for at, sql in enumerate(first, 1))
    return f"WITH {beside} {last}" if beside else last


def _count_from(passed: int, sql: str) -> str:
    return _PLACEHOLDER.sub(lambda found: f"${int(found[1]) + passed}", sql)


_PLACEHOLDER = re.compile(r"\$(\d+)")
