"""Statements that belong together come to the same, whether they are one or run one after the other."""

import pytest

from largesse.db.pool import Database
from largesse.db.scope import OPERATOR
from largesse.db.statements import Part, fetch_together


@pytest.mark.parametrize("is_distributed", [False, True])
async def test_parts_keep_their_arguments_and_all_are_run(database_url: str, *, is_distributed: bool) -> None:
    database = await Database.connect(database_url)
    database.is_distributed = is_distributed
    async with database.transaction(OPERATOR) as connection:
        await connection.execute("CREATE TEMPORARY TABLE notes (place int, said text) ON COMMIT DROP")
        rows = await fetch_together(
            connection,
            Part("INSERT INTO notes VALUES ($1, $2), ($1 + 1, $2)", 1, "first"),
            Part("INSERT INTO notes VALUES ($1, $2)", 3, "second"),
            Part("INSERT INTO notes VALUES ($2, $1) RETURNING place, said", "last", 4),
        )
        assert [tuple(row) for row in rows] == [(4, "last")]
        written = await connection.fetch("SELECT place, said FROM notes ORDER BY place")
    assert [tuple(row) for row in written] == [(1, "first"), (2, "first"), (3, "second"), (4, "last")]
    await database.close()
