"""SQL is put together from texts of the code alone."""

import pytest

from largesse.db.fragments import Fragment, compose, identifier, join

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
