"""Statements: months that follow each other hold every entry once, also where times are not in the entries' order."""

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import asyncpg
import pytest
from tests.closing import closing
from tests.distributed import IS_DISTRIBUTED

from largesse.db.pool import Database
from largesse.db.roles import Role
from largesse.db.scope import OPERATOR
from largesse.db.session import Limits
from largesse.ledger.statements import (
    Statement,
    StatementEntry,
    month_of,
    order_entries,
    read_history,
    read_statement,
    statement_entries,
)

MONTHS = [datetime(2026, month, 1, tzinfo=UTC) for month in range(1, 8)]


async def _entries(database: Database, statement: Statement) -> list[StatementEntry]:
    return [entry async for piece in statement_entries(database, OPERATOR, statement) for entry in piece]


@pytest.mark.parametrize("count", [1, 2, 7, 5_000])
async def test_months_hold_every_entry_once(database: Database, count: int) -> None:
    """Entries from February to May; each bears a time up to 100 s before or after its place, as waiting makes it."""
    begin, end = MONTHS[1], MONTHS[5]
    await database.execute(
        OPERATOR,
        """
        INSERT INTO entries (customer_id, account_id, movement_id, kind, amount_minor, balance_minor, created_at)
        SELECT 1, account_id, n, 'top_up', n, n * (n + 1) / 2,
               $1::timestamptz + ($2::timestamptz - $1::timestamptz) / $3::int * (n - 1)
               + ((n * 37 % 200) - 100) * interval '1 second'
        FROM generate_series(1, $3) AS n CROSS JOIN (VALUES (1), (2)) AS a (account_id)
        """,
        begin + timedelta(seconds=100),
        end - timedelta(seconds=200),
        count,
    )
    async with database.connection(OPERATOR) as connection:
        whole = await read_statement(connection, 1, 1)
        months = [await read_statement(connection, 1, 1, since, until) for since, until in pairwise(MONTHS)]
    everything = await _entries(database, whole)
    assert (whole.opening_minor, whole.closing_minor) == (0, count * (count + 1) // 2)
    assert [entry.amount_minor for entry in everything] == list(range(1, count + 1))
    pieces = [await _entries(database, month) for month in months]
    assert [entry for piece in pieces for entry in piece] == everything
    assert pieces[0] == pieces[-1] == []
    for month, piece in zip(months, pieces, strict=True):
        assert month.closing_minor - month.opening_minor == sum(entry.amount_minor for entry in piece)
    for month, following in pairwise(months):
        assert month.closing_minor == following.opening_minor
    for (since, until), piece in zip(pairwise(MONTHS), pieces, strict=True):
        slack = timedelta(seconds=200)
        assert all(since - slack <= entry.at < until + slack for entry in piece)
        if piece:
            assert piece[0].at >= since


@pytest.mark.skipif(IS_DISTRIBUTED, reason="rows of nodes are not counted here")
async def test_the_last_entry_is_found_without_reading_the_others(connection: asyncpg.Connection) -> None:
    """By a plan for any arguments, from the sixth page on, a million entries were read for a page of a hundred, and for a chart."""
    await connection.execute("SET session_replication_role = replica")
    await connection.execute(
        """
        INSERT INTO entries (customer_id, account_id, movement_id, kind, amount_minor, balance_minor, created_at)
        SELECT of, of, n, 'top_up', 1, 1, now() - (6000 - n) * interval '1 hour'
        FROM generate_series(2, 6000) AS n CROSS JOIN LATERAL (SELECT CASE WHEN n > 4000 THEN 1 ELSE n END) AS o (of)
        """
    )
    await connection.execute("ANALYZE entries")
    # As after a VACUUM while nothing else runs.
    await connection.execute("UPDATE pg_class SET relallvisible = relpages WHERE relname = 'entries'")
    read = "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'entries'"
    month = month_of(datetime.now(UTC))
    async with connection.transaction():
        await connection.execute(
            f"SET LOCAL ROLE {Role.APP}; SET LOCAL largesse.customers = '{{1}}'; SET LOCAL largesse.environments = '{{production}}'"
        )
        await connection.execute("SET LOCAL plan_cache_mode = force_generic_plan; SET LOCAL random_page_cost = 4")
        for begin, end in ((None, None), month):
            await read_statement(connection, 1, 1, begin, end)
        await read_history(connection, 1, [1])
        assert await connection.fetchval(read) < 1_000


@pytest.mark.long
@pytest.mark.parametrize("rests_s", [0.1, 2.5])
async def test_who_takes_a_statement_slowly_gets_it_whole(database_url: str, rests_s: float) -> None:
    """Resting for less and for longer than a transaction may be left alone; what is written meanwhile is not of it."""
    limits = Limits(statement_s=7, lock_s=3, idle_in_transaction_s=1)
    async with closing(Database.connect(database_url, max_connections=1, limits=limits)) as database:
        await database.execute(OPERATOR, _TOP_UPS, 1, 4_500)
        async with database.connection(OPERATOR) as connection:
            statement = await read_statement(connection, 1, 1)
        taken: list[int] = []
        async for entries in statement_entries(database, OPERATOR, statement):
            taken += [entry.amount_minor for entry in entries]
            await asyncio.sleep(rests_s)
            await database.execute(OPERATOR, _TOP_UPS, 4_501, 4_502)  # on the only connection there may be
        assert taken == list(range(1, 4_501))
        assert statement.closing_minor == 4_500


_TOP_UPS = """
    INSERT INTO entries (customer_id, account_id, movement_id, kind, amount_minor, balance_minor, created_at)
    SELECT 1, 1, n, 'top_up', n, n, now() FROM generate_series($1::int, $2::int) AS n
"""


@pytest.mark.parametrize("skew_s", [0, 1, 50])
async def test_an_order_s_entries_are_found_about_their_times(database: Database, skew_s: int) -> None:
    """A hundred orders a second, each with two entries: its own, and a refund ten minutes later; times waver by the skew."""
    begin = MONTHS[1]
    await database.execute(
        OPERATOR,
        """
        INSERT INTO entries (customer_id, account_id, movement_id, kind, order_id, amount_minor, balance_minor, created_at)
        SELECT 1, 1, 0, kind, n, 1, 1,
               $1::timestamptz + n * interval '10 milliseconds' + later + ((n * 37 % 100) - 50) * $2 * interval '20 milliseconds'
        FROM generate_series(1, 4000) AS n
        CROSS JOIN (VALUES ('order', interval '0'), ('refund', interval '10 minutes')) AS of (kind, later)
        ORDER BY later, n
        """,
        begin,
        skew_s,
    )
    async with database.connection(OPERATOR) as connection:
        for order_id in (1, 2, 1_777, 4_000):
            rows = await connection.fetch(
                "SELECT id, created_at FROM entries WHERE order_id = $1 ORDER BY id", order_id
            )
            wanted = [(row["id"], row["created_at"]) for row in rows]
            moments = [at for _, at in wanted]
            found = await order_entries(connection, 1, 1, order_id, moments)
            assert [(entry.id, entry.at) for entry in found] == wanted
            found = await order_entries(connection, 1, 1, order_id, moments[:1])
            assert [entry.kind for entry in found] == ["order"]
        assert await order_entries(connection, 1, 1, 4_001, [begin]) == []
        assert await order_entries(connection, 1, 2, 1, [begin]) == []
