"""The database refuses what the table of moves does."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from itertools import product

import asyncpg
import pytest

from largesse.db.pool import Connection, connect_once
from largesse.db.scope import OPERATOR
from largesse.lines import states

NOW = datetime(2030, 1, 2, 9, tzinfo=UTC)
LINE = states.LineKey(1, 1, 1)
ADD = "INSERT INTO lines (customer_id, order_id, number, code_lookup, sealed) VALUES ($1, $2, $3, $4, 'sealed')"
CLAIMED = [state for state in states.State if state is not states.State.ISSUED]


@pytest.fixture
async def connection(module_database_url: str) -> AsyncIterator[Connection]:
    """One in a transaction that is rolled back."""
    async with connect_once(module_database_url, OPERATOR) as connection:
        transaction = connection.transaction()
        await transaction.start()
        yield connection
        await transaction.rollback()


@pytest.mark.parametrize(("before", "after"), list(product(CLAIMED, CLAIMED)))
async def test_a_state_moves_as_the_table_says(
    connection: Connection, before: states.State, after: states.State
) -> None:
    await connection.execute(
        """
        INSERT INTO line_states (customer_id, order_id, number, state, claimed_at, product_id)
        VALUES (1, 1, 1, $1, $2, 1)
        """,
        before,
        None if before is states.State.CANCELLED else NOW,
    )
    move = connection.execute("UPDATE line_states SET state = $1", after)
    if after in states.MOVES[before] or after is before:
        await move
    else:
        with pytest.raises(asyncpg.InsufficientPrivilegeError, match="only forwards"):
            await move


async def test_a_state_is_never_deleted(connection: Connection) -> None:
    await states.record_claim(connection, LINE, NOW, None, "en")
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await connection.execute("DELETE FROM line_states")


async def test_a_wrong_move_is_raised_and_leaves_no_event(connection: Connection) -> None:
    await states.record_claim(connection, LINE, NOW, None, "en")
    await states.record_move(connection, LINE, states.State.CHOSEN, NOW, product_id=1)
    with pytest.raises(states.WrongMove):
        await states.record_move(connection, LINE, states.State.CHOSEN, NOW, product_id=2)
    events = await connection.fetch("SELECT event FROM line_events ORDER BY event")
    assert [row["event"] for row in events] == ["chosen", "claimed", "opened"]
    assert await connection.fetchval("SELECT product_id FROM line_states") == 1


async def test_what_is_done_to_a_line_is_done_to_it_alone(connection: Connection) -> None:
    """Each of the others differs from it in one part of its key."""
    others = [states.LineKey(1, 1, 2), states.LineKey(1, 2, 1), states.LineKey(2, 1, 1)]
    await connection.executemany(ADD, [(*line, at) for at, line in enumerate([LINE, *others])])
    assert await states.lock_issued(connection, 1, 1) == [1, 2]
    await states.record_claim(connection, LINE, NOW, None, "en")
    assert [await states.lock_issued(connection, *order) for order in ((1, 1), (1, 2), (2, 1))] == [[2], [1], [1]]
    for other in others:
        await states.record_claim(connection, other, NOW, None, "en")
    await states.record_language(connection, LINE, "de")
    await states.record_email(connection, LINE, b"sealed")
    await states.record_move(connection, LINE, states.State.CHOSEN, NOW, product_id=7)
    rows = await connection.fetch("SELECT * FROM line_states ORDER BY customer_id, order_id, number")
    assert [(row["state"], row["language"], row["sealed_email"], row["product_id"]) for row in rows] == [
        ("chosen", "de", b"sealed", 7),
        *[("claimed", "en", None, None)] * 3,
    ]
    assert [await states.has_left_email(connection, line) for line in (LINE, *others)] == [True, False, False, False]


async def test_the_lines_of_an_order_that_are_cancelled_are_those_that_are_named(connection: Connection) -> None:
    keys = [(1, 1, 1), (1, 1, 2), (1, 1, 3), (1, 2, 1), (2, 1, 1)]
    await connection.executemany(ADD, [(*key, at) for at, key in enumerate(keys)])
    await states.record_cancelled(connection, 1, 1, [1, 3], NOW)
    for table in ("line_states WHERE state = 'cancelled'", "line_events WHERE event = 'cancelled'"):
        rows = await connection.fetch(f"SELECT customer_id, order_id, number FROM {table} ORDER BY number")
        assert [tuple(row) for row in rows] == [(1, 1, 1), (1, 1, 3)]
    assert await states.lock_issued(connection, 1, 1) == [2]
