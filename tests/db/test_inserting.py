"""Rows written as values are all there, in their order, however many they are."""

import pytest
from asyncpg.connection import LoggedQuery

from largesse.db.pool import Database
from largesse.db.scope import OPERATOR
from largesse.db.statements import insert


@pytest.mark.parametrize(
    ("count", "statements"),
    [(0, []), (1, [1]), (6, [4, 2]), (63, [32, 16, 8, 4, 2, 1]), (64, [64]), (129, [64, 64, 1])],
)
async def test_few_statements_write_many_rows(database_url: str, count: int, statements: list[int]) -> None:
    rows = [(f"row {number}", None if number % 2 else number, b"\0") for number in range(count)]
    told: list[str] = []

    def note(query: LoggedQuery) -> None:
        told.append(query.query)

    database = await Database.connect(database_url)
    async with database.transaction(OPERATOR) as connection:
        await connection.execute(
            "CREATE TEMPORARY TABLE notes (place serial, said text, number int, kept bytea) ON COMMIT DROP"
        )
        with connection.query_logger(note):
            await insert(connection, "INSERT INTO notes (said, number, kept)", rows)
        written = await connection.fetch("SELECT said, number, kept FROM notes ORDER BY place")
    await database.close()
    assert [tuple(row) for row in written] == rows
    assert [query.count("(") - 1 for query in told] == statements
