"""SQL is put together from texts of the code alone. Rows written as values are all there, in their order, and statements that belong together come to the same, together or one after the other."""

import pytest
from asyncpg.connection import LoggedQuery

from largesse.db.fragments import Fragment, compose, identifier, join
from largesse.db.pool import Database
from largesse.db.scope import OPERATOR
from largesse.db.statements import Part, fetch_together, insert


@pytest.mark.parametrize(
    ("count", "statements"),
    [(0, []), (1, [1]), (6, [4, 2]), (63, [32, 16, 8, 4, 2, 1]), (64, [64]), (129, [64, 64, 1])],
)
async def test_few_statements_write_many_rows(database: Database, count: int, statements: list[int]) -> None:
    rows = [(f"row {number}", None if number % 2 else number, b"\0") for number in range(count)]
    told: list[str] = []

    def note(query: LoggedQuery) -> None:
        told.append(query.query)

    async with database.transaction(OPERATOR) as connection:
        await connection.execute(
            "CREATE TEMPORARY TABLE notes (place serial, said text, number int, kept bytea) ON COMMIT DROP"
        )
        with connection.query_logger(note):
            await insert(connection, "INSERT INTO notes (said, number, kept)", rows)
        written = await connection.fetch("SELECT said, number, kept FROM notes ORDER BY place")
    assert [tuple(row) for row in written] == rows
    assert [query.count("(") - 1 for query in told] == statements


@pytest.mark.parametrize("is_distributed", [False, True])
async def test_parts_keep_their_arguments_and_all_are_run(database: Database, *, is_distributed: bool) -> None:
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


COLUMNS = Fragment("id, '{}'::int[] AS lines")


def test_each_place_of_a_statement_is_filled() -> None:
    composed = compose(
        "SELECT {columns} FROM {table} WHERE {table}.id < {most}", columns=COLUMNS, table=Fragment("orders"), most=5
    )
    assert composed == "SELECT id, '{}'::int[] AS lines FROM orders WHERE orders.id < 5"


@pytest.mark.parametrize("parts", [{}, {"columns": COLUMNS, "table": COLUMNS}, {"table": COLUMNS}])
def test_places_and_parts_fit_each_other(parts: dict[str, Fragment]) -> None:
    with pytest.raises(ValueError, match="places"):
        compose("SELECT {columns} FROM orders", **parts)


def test_parts_are_joined() -> None:
    assert join(Fragment(" AND "), [Fragment("a = 1"), Fragment("b = 2")]) == "a = 1 AND b = 2"


@pytest.mark.parametrize("name", ["id", "orders.id", "line_2"])
def test_a_name_may_be_computed(name: str) -> None:
    assert identifier(name) == name


@pytest.mark.parametrize("name", ["", "id, 1", "id; DROP TABLE orders", "a.b.c", "Id", "2nd", "id--", "id\n"])
def test_nothing_else_may(name: str) -> None:
    with pytest.raises(ValueError, match="not the name"):
        identifier(name)
