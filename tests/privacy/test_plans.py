"""Erasing reads the rows that it changes, whatever the planner expects of a customer."""

import asyncpg
import pytest
from tests.closing import closing
from tests.distributed import IS_DISTRIBUTED

from largesse.audit.service import Who
from largesse.db.pool import Database
from largesse.db.roles import Role
from largesse.db.scope import OPERATOR
from largesse.events import store as events
from largesse.mail import store as mail
from largesse.orders import marks
from largesse.privacy import erasing_store
from largesse.privacy.erasing_store import FoundOrder

# 3,000 rows of customer 1, and 20 of each of 300 others.
_OWNER = "CASE WHEN n <= 3000 THEN 1 ELSE 1000 + n / 20 END"
_ROWS = {
    "orders": f"""
        INSERT INTO orders (id, reference, customer_id, environment, service_account_id, source, gift_selection, country, currency,
            value_minor, total_minor, code_count, recipient_count, delivery_mode, wrapping_key, created_at)
        SELECT n, 'R' || n, {_OWNER}, 'production', 1, 'api', 'gift', 'GB', 'GBP', 100, 100, 1, 1, 'send', 'default', clock_now()
        FROM generate_series(1, 9000) AS n
    """,
    "messages": f"""
        INSERT INTO messages (id, order_id, environment, email, line_numbers, state, due_at, rank_at, created_at, customer_id)
        SELECT n, n, 'production', n || '@many.example', '{{1}}', 'held', clock_now(), clock_now(), clock_now(), {_OWNER}
        FROM generate_series(1, 9000) AS n
    """,
    "events": f"""
        INSERT INTO events (id, order_id, customer_id, environment, event, body, created_at, position)
        SELECT n, n, {_OWNER}, 'production', 'order.created', '{{}}', clock_now(), n FROM generate_series(1, 9000) AS n
    """,
}


@pytest.mark.skipif(IS_DISTRIBUTED, reason="the rows are read on a node")
@pytest.mark.parametrize(
    ("table", "statement", "values"),
    [("orders", marks._MARK, 2), ("messages", mail.ERASE_MAIL, 1), ("events", events._REWRITE_ALL, 1)],
)
async def test_a_plan_for_any_customer_reads_the_named_rows(
    database_url: str, table: str, statement: str, values: int
) -> None:
    """Among many customers with few rows, each statement read all rows of a large one, from the sixth time on."""
    named = list(range(1000, 1050))
    value = [str(one) for one in named] if table == "messages" else [b"new"] * len(named)
    so_far = "SELECT (seq_tup_read + idx_tup_fetch)::int FROM pg_stat_xact_user_tables WHERE relname = $1"
    async with closing(asyncpg.connect(database_url)) as connection:
        await connection.execute(f"SET session_replication_role = replica; {_ROWS[table]}; ANALYZE {table}")
        async with connection.transaction():
            await connection.execute(
                f"SET LOCAL ROLE {Role.WORKER}; SET LOCAL largesse.customers = '{{1}}'; SET LOCAL largesse.environments = '{{production}}'"
            )
            for _ in range(7):
                before = await connection.fetchval(so_far, table)
                await connection.execute(statement, 1, named, *[value] * values)
                assert await connection.fetchval(so_far, table) - before <= 3 * len(
                    named
                )  # and earlier versions of them


async def test_a_step_of_an_erasure_reads_one_of_the_orders_that_were_found(database: Database) -> None:
    """And not a document of all of them, four times, from the table beside erasure_jobs where long values are."""
    found = [FoundOrder(1, order_id, [1], [1], False) for order_id in range(10_000)]
    who = Who("worker", None, "privacy")
    so_far = """
        SELECT sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::int FROM pg_stat_xact_all_tables
        WHERE relname ~ '^erasure_' OR relid = (SELECT reltoastrelid FROM pg_class WHERE oid = 'erasure_jobs'::regclass)
    """
    async with database.transaction(OPERATOR) as connection:
        assert await erasing_store.add_job(connection, 1, None, None, b"sealed", who)
        await erasing_store.note_found(connection, 1, found, 0)
        before = await connection.fetchval(so_far)
        job = await erasing_store.read_job(connection, 1, lock=True)
        assert await erasing_store.read_next(connection, job) == found[0]
        await erasing_store.advance(connection, 1, (1, 0, 0, 0, 0))
        assert (await erasing_store.read_job(connection, 1)).done == 1
        assert await connection.fetchval(so_far) - before <= 5
