"""What the worker asks the database for all the time, on queues with a long backlog: it must read what it takes, not what waits.

Counted in rows and blocks, not in seconds: with nothing due and with everything due, before the first ANALYZE, after one
that came too early, and after one at the right time. PLAN_ROWS makes the backlog longer (docs/testing.md).
"""

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest
from tests.conftest import CloneFactory
from tests.distributed import IS_DISTRIBUTED
from tests.plans import ROUNDED, rows_read

from largesse.db.roles import Role
from largesse.db.statements import plan_by_index
from largesse.encryption.vault import Vault
from largesse.events.store import read_changes, remove_changes
from largesse.housekeeping import measure, prune
from largesse.jobs import outbox
from largesse.jobs.leases import Lease
from largesse.mail import messages
from largesse.mail.messages import fan_out as fan_out_messages
from largesse.mail.outcomes import Sent
from largesse.mail.outcomes import record as record_sent
from largesse.webhooks import outcomes, queues
from largesse.webhooks.outcomes import AttemptResult, Verdict
from largesse.webhooks.store import cancel_rest
from largesse.webhooks.tasks import end_previous_secrets

ROWS = int(os.environ.get("PLAN_ROWS", "50000"))
SUBSCRIPTIONS = 50
VAULT = Vault((bytes(range(32)),))

# Everything waits for an hour, and is due together when the clock has moved on. Deliveries are twice as many: from 80,000 on, a planner that knows
# nothing of them expects two or more to wait in each queue, and takes another plan for as good as their index.
FILL = f"""
    INSERT INTO customers (key, name, plan, funding) VALUES ('acme', 'Acme', 'pro', 'invoiced');
    INSERT INTO service_accounts (customer_id, key, name) VALUES (1, 'bot', 'Bot');
    INSERT INTO webhook_subscriptions
        (id, customer_id, environment, event, target_url, sealed_secret, service_account_id)
    SELECT gen_random_uuid(), 1, 'production', 'order.created', 'https://hooks.example.com/', '', 1
    FROM generate_series(1, {SUBSCRIPTIONS});
    INSERT INTO deliveries (customer_id, subscription_id, event, sample, due_at, created_at)
    SELECT customer_id, id, 'order.created', '', now() + interval '1 hour', now()
    FROM generate_series(1, {2 * ROWS // SUBSCRIPTIONS}), webhook_subscriptions;
    INSERT INTO subscription_queues (customer_id, subscription_id, due_at, failing)
    SELECT customer_id, id, now() + interval '1 hour', true FROM webhook_subscriptions;
    INSERT INTO orders (id, reference, customer_id, environment, service_account_id, source, gift_selection, country,
        currency, value_minor, total_minor, code_count, recipient_count, delivery_mode, wrapping_key, created_at)
    SELECT n, n, 1, 'staging', 1, 'api', 'gift', 'GB', 'GBP', 100, 100, 1, 1, 'send', 'default', now()
    FROM generate_series(1, {ROWS}) AS n;
    INSERT INTO messages (customer_id, order_id, environment, email, line_numbers, due_at, rank_at, created_at)
    SELECT customer_id, id, 'staging', 'a@example.com', '{{1}}', at, at + {messages.SPREAD_S} * interval '1 second', now()
    FROM orders, (SELECT now() + interval '1 hour') AS later (at);
    INSERT INTO mail_jobs (customer_id, order_id, environment, due_at)
    SELECT customer_id, id, 'staging', now() + interval '1 hour' FROM orders;
    INSERT INTO events (order_id, customer_id, environment, event, body, created_at)
    SELECT id, 1, 'staging', 'order.created', '', now() FROM orders
"""

# What was there long ago, when somebody last looked.
FINISHED = """
    INSERT INTO deliveries (customer_id, subscription_id, event, sample, state, due_at, created_at)
    SELECT 1, gen_random_uuid(), 'order.created', '', 'delivered', now(), now() FROM generate_series(1, 300);
    INSERT INTO messages (customer_id, order_id, environment, email, line_numbers, state, due_at, rank_at, created_at)
    SELECT 1, -n, 'staging', 'a@example.com', '{1}', 'sent', now(), now(), now() FROM generate_series(1, 300) AS n;
    INSERT INTO mail_jobs (customer_id, order_id, environment, due_at, fanned_out_at)
    SELECT 1, -n, 'staging', now(), now() FROM generate_series(1, 300) AS n;
    INSERT INTO events (order_id, customer_id, environment, event, body, created_at, fanned_out_at)
    SELECT -n, 1, 'staging', 'order.created', '', now(), now() FROM generate_series(1, 300) AS n;
    ANALYZE
"""

Step = Callable[[asyncpg.Connection], Awaitable[Any]]


@dataclass(frozen=True)
class Read:
    """What a step read, in rows of tables and entries of indexes, and in blocks."""

    rows: int
    blocks: int


async def take_queues(connection: asyncpg.Connection) -> None:
    await queues.take_queues(connection, 32, 8, failing=True)


async def take_messages(connection: asyncpg.Connection) -> None:
    await messages.take(connection, 100, VAULT, str)


async def fan_out_mail(connection: asyncpg.Connection) -> None:
    await fan_out_messages(connection, 100)


async def fan_out_events(connection: asyncpg.Connection) -> None:
    await queues.fan_out(connection, 100)


async def write_deliveries_down(connection: asyncpg.Connection) -> None:
    """As if the first of a few queues were attempted, and failed."""
    rows = await connection.fetch(
        """
        SELECT subscription_id, fence, (
            SELECT id FROM deliveries WHERE deliveries.subscription_id = queues.subscription_id ORDER BY id DESC LIMIT 1)
        FROM subscription_queues AS queues LIMIT 3
        """
    )
    attempted = []
    for row in rows:
        queue = queues.SubscriptionQueue(Lease(1, row["subscription_id"], row["fence"]), True, 1, "", b"", None, [])
        job = queues.Job(row["id"], "order.created", None, b"", datetime.now(UTC), 0, 12)
        answer = AttemptResult(500, None, None, b"", 0.1)
        attempted.append(outcomes.Attempted(queue, job, 0.0, answer, Verdict("retry", 60.0)))
    await outcomes.record(connection, attempted)


async def give_queues_back(connection: asyncpg.Connection) -> None:
    rows = await connection.fetch("SELECT subscription_id, fence FROM subscription_queues LIMIT 30")
    await outcomes.record(connection, [], [Lease(1, row["subscription_id"], row["fence"]) for row in rows])


async def write_messages_down(connection: asyncpg.Connection) -> None:
    """As if a few were under way: their leases are renewed, what became of them is written, the rest goes back."""
    rows = await connection.fetch("SELECT id, fence FROM messages WHERE state = 'pending' LIMIT 3")
    leases = [Lease(1, row["id"], row["fence"]) for row in rows]
    await messages.MESSAGES.renew(connection, leases)
    message = messages.Message(leases[0], 1, datetime.now(UTC), 0.0, 0, [1], letter=None)  # type: ignore[arg-type]
    await record_sent(connection, [Sent(message, "pending", delay_s=60.0)])
    await messages.MESSAGES.give_back(connection, leases[1:])


# Each with the most it may read when nothing is due or one thing is, and when everything is.
STEPS: dict[Step, tuple[Read, Read]] = {
    take_queues: (Read(60, 200), Read(1_500, 3_000)),
    take_messages: (Read(60, 200), Read(1_500, 4_000)),
    fan_out_mail: (Read(60, 200), Read(2_000, 4_000)),
    fan_out_events: (Read(1_500, 3_000), Read(1_500, 3_000)),
    write_deliveries_down: (Read(400, 1_000), Read(400, 1_000)),
    give_queues_back: (Read(500, 1_500), Read(500, 1_500)),
    cancel_rest: (Read(200, 500), Read(200, 500)),
    write_messages_down: (Read(500, 300), Read(500, 300)),
    measure: (Read(42_000, 60_000), Read(42_000, 60_000)),
}

# What has come to pass: nothing yet, one thing of each kind, all.
MOMENTS = {
    "nothing due": "UPDATE clock SET ahead_by = '0'",
    "one due": """
        UPDATE deliveries SET due_at = now() WHERE id = (SELECT max(id) FROM deliveries);
        UPDATE subscription_queues SET due_at = now() WHERE subscription_id = (SELECT subscription_id FROM deliveries ORDER BY id DESC LIMIT 1);
        UPDATE messages SET due_at = now(), rank_at = now() WHERE id = (SELECT max(id) FROM messages);
        UPDATE mail_jobs SET due_at = now() WHERE order_id = (SELECT max(order_id) FROM mail_jobs)
    """,
    "all due": "UPDATE clock SET ahead_by = '2 hours'",
}


@pytest.fixture
async def connection(clone_database: CloneFactory) -> AsyncIterator[asyncpg.Connection]:
    """As the worker's pool has them; on a database in which only the test analyzes, so that nobody else's reading is counted."""
    connection = await asyncpg.connect(clone_database(), server_settings={"jit": "off"})
    for table in await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'"):
        await connection.execute(f"ALTER TABLE {table['tablename']} SET (autovacuum_enabled = off)")
    yield connection
    await connection.close()


@pytest.mark.skipif(IS_DISTRIBUTED, reason="what a node reads is not among what its coordinator explains")
@pytest.mark.parametrize("statistics", ["none", pytest.param("outdated, then new", marks=pytest.mark.long)])
async def test_a_long_backlog_is_not_read(connection: asyncpg.Connection, statistics: str) -> None:
    if statistics != "none":
        await connection.execute(FINISHED)
    await connection.execute(FILL)
    await check(connection, statistics.split(",", maxsplit=1)[0])
    if statistics != "none":
        await connection.execute("ANALYZE")
        await check(connection, "new")


async def check(connection: asyncpg.Connection, statistics: str) -> None:
    too_much = []
    for moment, statements in MOMENTS.items():
        await connection.execute(statements)
        for step, (few, many) in STEPS.items():
            most = many if moment == "all due" else few
            # After five times the server may keep a plan for whatever parameters come.
            for _ in range(7):
                read = await what_is_read(connection, step)
                if read.rows > most.rows or read.blocks > most.blocks:
                    too_much.append((statistics, moment, step.__name__, read))
                    break
    assert not too_much, "\n".join(map(str, too_much))


@pytest.mark.skipif(IS_DISTRIBUTED, reason="what a node reads is not among what its coordinator explains")
async def test_pruning_reads_what_it_deletes_however_much_is_old(connection: asyncpg.Connection) -> None:
    await connection.execute(
        """
        INSERT INTO deliveries (customer_id, subscription_id, event, sample, state, due_at, created_at)
        SELECT 1, gen_random_uuid(), 'order.created', '', 'delivered', now(), now() - interval '40 days' FROM generate_series(1, 50000)
        """
    )
    for statistics in ("none", "ANALYZE"):
        if statistics != "none":
            await connection.execute(statistics)
        read = await what_is_read(connection, prune)
        assert 5_000 <= read.rows <= 40_000, (statistics, read)


@pytest.mark.skipif(IS_DISTRIBUTED, reason="what a node reads is not among what its coordinator explains")
async def test_subscriptions_without_a_previous_secret_are_not_read(connection: asyncpg.Connection) -> None:
    await connection.execute(
        """
        INSERT INTO customers (key, name, plan, funding) VALUES ('acme', 'Acme', 'pro', 'invoiced');
        INSERT INTO service_accounts (customer_id, key, name) VALUES (1, 'bot', 'Bot');
        INSERT INTO webhook_subscriptions (id, customer_id, environment, event, target_url, sealed_secret, service_account_id)
        SELECT gen_random_uuid(), 1, 'production', 'order.created', 'https://hooks.example.com/', '', 1 FROM generate_series(1, 5000);
        UPDATE webhook_subscriptions SET previous_secret = '', previous_until = now() - interval '1 day'
        WHERE id IN (SELECT id FROM webhook_subscriptions LIMIT 3);
        """
    )
    for statistics in ("none", "ANALYZE"):
        if statistics != "none":
            await connection.execute(statistics)
        assert (await what_is_read(connection, end_previous_secrets)).rows <= 100, statistics
    await end_previous_secrets(connection)
    assert await connection.fetchval("SELECT count(previous_secret) FROM webhook_subscriptions") == 0


@pytest.mark.skipif(IS_DISTRIBUTED, reason="what a node reads is not among what its coordinator explains")
async def test_changes_of_orders_are_taken_one_by_one_after_vacuum_has_found_none(
    connection: asyncpg.Connection,
) -> None:
    many = "INSERT INTO order_changes (customer_id, order_id, changed_at) SELECT 1, n, now() FROM generate_series(1, 20000) AS n"
    await connection.execute(many)
    await connection.execute("DELETE FROM order_changes WHERE id < (SELECT max(id) FROM order_changes)")
    await connection.execute("VACUUM order_changes")
    await connection.execute(many)

    async def take(connection: asyncpg.Connection) -> None:
        await plan_by_index(connection)
        await remove_changes(connection, await read_changes(connection, 500))

    assert (await what_is_read(connection, take)).rows <= 4 * 500


async def what_is_read(connection: asyncpg.Connection, step: Step) -> Read:
    """What a step reads; what it does is rolled back."""
    async with rolled_back(connection):
        before = await counted(connection)
        await step(connection)
        after = await counted(connection)
    return Read(after.rows - before.rows, after.blocks - before.blocks)


async def counted(connection: asyncpg.Connection) -> Read:
    """What this session has read, and nobody else: the counters that a transaction has before they are added to everybody's."""
    row = await connection.fetchrow(
        """
        SELECT sum(pg_stat_get_xact_tuples_returned(oid))::bigint AS rows, sum(pg_stat_get_xact_blocks_fetched(oid))::bigint AS blocks
        FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'i')
        """
    )
    assert row is not None
    return Read(row["rows"], row["blocks"])


@asynccontextmanager
async def rolled_back(connection: asyncpg.Connection) -> AsyncIterator[None]:
    transaction = connection.transaction()
    await transaction.start()
    try:
        yield
    finally:
        await transaction.rollback()


MESSAGES = """
    INSERT INTO messages (customer_id, order_id, environment, kind, email, line_numbers, due_at, rank_at, created_at)
    SELECT 1, $1, 'production', $2, $2 || n || '@example.com', ARRAY[n], now(), now(), now() FROM generate_series($3::int, $4) AS n
"""


@pytest.mark.skipif(IS_DISTRIBUTED, reason="what a node reads its coordinator does not count")
@pytest.mark.parametrize("analysed", [True, False])
@pytest.mark.parametrize("statement", ["_WITHDRAW_REMINDERS", "_HOLD_MESSAGES"])
async def test_mail_of_a_large_order_is_read_once(database_url: str, statement: str, analysed: bool) -> None:
    connection = await asyncpg.connect(database_url)
    try:
        await connection.execute("ALTER TABLE messages SET (autovacuum_enabled = off)")
        await connection.execute(MESSAGES, 1, "gift", 1, 100)
        await connection.execute("UPDATE messages SET state = 'sent', finished_at = now()")
        if analysed:
            await connection.execute("ANALYZE messages")
        await connection.execute(MESSAGES, 2, "gift", 1, 2_000)
        await connection.execute(MESSAGES, 2, "reminder_1", 1, 2_000)
        read = await rows_read(connection, Role.APP, "messages", getattr(outbox, statement), 1, 2, [7])
        assert read <= 4_000 + 2 * ROUNDED + 100
    finally:
        await connection.close()
