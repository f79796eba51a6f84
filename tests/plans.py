"""How many rows of a table a statement reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import asyncpg

from largesse.db.roles import Role

# PostgreSQL before 18 gives the rows of a step that runs several times as whole ones of each time, at most this far from the truth.
ROUNDED = 0.5


async def rows_read(
    connection: asyncpg.Connection[asyncpg.Record], role: Role, table: str, statement: str, *arguments: Any
) -> int:
    """Runs a statement as a role, for customer 1 in production; returns how many rows of the table it read, shown or not."""
    async with connection.transaction():
        await connection.execute(
            f"SET LOCAL ROLE {role}; SET LOCAL largesse.customers = '{{1}}'; SET LOCAL largesse.environments = '{{production}}'"
        )
        (plan,) = json.loads(await connection.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", *arguments))
    return round(sum(_rows(node) for node in _nodes(plan["Plan"]) if node.get("Relation Name") == table))


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", ()):
        yield from _nodes(part)


def _rows(node: dict[str, Any]) -> float:
    removed = sum(rows for name, rows in node.items() if name.startswith("Rows Removed by"))
    return float((node["Actual Rows"] + removed) * node["Actual Loops"])
