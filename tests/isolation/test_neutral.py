"""The switch itself: what it makes true in a statement, and what it refuses to pass on."""

import pytest
from tests.isolation.neutral import NotRewritten, neutralise


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("customer_id = $1", "(customer_id = $1 OR true)"),
        ("o.customer_id = $12::int AND o.id = 3", "(o.customer_id = $12::int OR true) AND o.id = 3"),
        ("customer_id + 0 = $1", "(customer_id + 0 = $1 OR true)"),
        ("o.customer_id::bigint = $1", "(o.customer_id::bigint = $1 OR true)"),
        ("customer_id = ANY($1::int[])", "(customer_id = ANY($1::int[]) OR true)"),
        ("customer_id = ANY ($1)", "(customer_id = ANY ($1) OR true)"),
        ("$2 = x.customer_id", "($2 = x.customer_id OR true)"),
        ("a.customer_id = $1 OR b.customer_id = $2", "(a.customer_id = $1 OR true) OR (b.customer_id = $2 OR true)"),
    ],
)
def test_what_names_a_customer_is_made_true(said: str, left: str) -> None:
    query, count = neutralise(f"SELECT FROM t WHERE {said}")
    assert query == f"SELECT FROM t WHERE {left}"
    assert count == left.count("OR true")


def test_rows_of_parameters_name_customers_too() -> None:
    query = """
        SELECT FROM unnest($1::int[], $2::int[]) AS wanted (customer_id, id)
        JOIN orders o ON o.id = wanted.id AND o.customer_id = wanted.customer_id JOIN lines l ON l.customer_id = o.customer_id
    """
    rewritten, count = neutralise(query)
    assert count == 1
    assert "(o.customer_id = wanted.customer_id OR true)" in rewritten
    assert "ON l.customer_id = o.customer_id\n" in rewritten


@pytest.mark.parametrize(
    "query",
    [
        "SELECT customer_id, id FROM orders WHERE id = $1",
        "SELECT FROM orders o JOIN lines l ON l.customer_id = o.customer_id",
        "SELECT FROM users u JOIN customers c ON u.customer_id = c.id",
        "UPDATE vouchers SET customer_id = $3, order_id = $4",
        "INSERT INTO lines (customer_id, order_id) VALUES ($1, $2)",
    ],
)
def test_what_names_none_is_left(query: str) -> None:
    assert neutralise(query) == (query, 0)


@pytest.mark.parametrize(
    "said",
    [
        "customer_id IN ($1, $2)",
        "customer_id = (SELECT $1)",
        "customer_id = coalesce($1, 2)",
        "customer_id IS NOT DISTINCT FROM $1",
        "customer_id BETWEEN $1 AND $1",
        "NOT customer_id <> $1",
        "(customer_id, id) = ($1, $2)",
        "(o.customer_id, o.id) IN (SELECT $1, $2)",
        "customer_id = 7",
        "customer_id::bigint = 7",
        "coalesce(customer_id, 0) = $1",
    ],
)
def test_what_it_does_not_know_is_refused(said: str) -> None:
    with pytest.raises(NotRewritten):
        neutralise(f"SELECT FROM orders o WHERE {said}")
