"""The database refuses what the table of moves does."""

from datetime import UTC, datetime
from itertools import product

import asyncpg
import pytest

from largesse.database import OPERATOR, connect_once
from largesse.lines.states import MOVES, LineKey, State, WrongMove, record_claim, record_move

NOW = datetime(2030, 1, 2, 9, tzinfo=UTC)
LINE = LineKey(1, 1, 1)
CLAIMED = [state for state in State if state is not State.ISSUED]


@pytest.mark.parametrize(("before", "after"), list(product(CLAIMED, CLAIMED)))
async def test_a_state_moves_as_the_table_says(module_database_url: str, before: State, after: State) -> None:
    async with connect_once(module_database_url, OPERATOR) as connection:
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute(
            """
            INSERT INTO line_states (customer_id, order_id, number, state, claimed_at, product_id)
            VALUES (1, 1, 1, $1, $2, 1)
            """,
            before,
            None if before is State.CANCELLED else NOW,
        )
        move = connection.execute("UPDATE line_states SET state = $1", after)
        if after in MOVES[before] or after is before:
            await move
        else:
            with pytest.raises(asyncpg.InsufficientPrivilegeError, match="only forwards"):
                await move
        await transaction.rollback()


async def test_a_state_is_never_deleted(module_database_url: str) -> None:
    async with connect_once(module_database_url, OPERATOR) as connection:
        transaction = connection.transaction()
        await transaction.start()
        await record_claim(connection, LINE, NOW, None, "en")
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute("DELETE FROM line_states")
        await transaction.rollback()


async def test_a_wrong_move_is_raised_and_leaves_no_event(module_database_url: str) -> None:
    async with connect_once(module_database_url, OPERATOR) as connection:
        transaction = connection.transaction()
        await transaction.start()
        await record_claim(connection, LINE, NOW, None, "en")
        await record_move(connection, LINE, State.CHOSEN, NOW, product_id=1)
        with pytest.raises(WrongMove):
            await record_move(connection, LINE, State.CHOSEN, NOW, product_id=2)
        events = await connection.fetch("SELECT event FROM line_events ORDER BY event")
        assert [row["event"] for row in events] == ["chosen", "claimed", "opened"]
        assert await connection.fetchval("SELECT product_id FROM line_states") == 1
        await transaction.rollback()
