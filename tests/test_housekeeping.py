from datetime import timedelta
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from uuid import UUID, uuid4

import asyncpg
import pytest
from prometheus_client import REGISTRY
from tests.distributed import IS_DISTRIBUTED
from tests.plans import rows_read

import largesse
from largesse.base import clock
from largesse.db.pool import Database
from largesse.db.roles import Role
from largesse.db.scope import OPERATOR
from largesse.housekeeping import RETENTION, ROOMS, measure, prune
from largesse.jobs import registry
from largesse.jobs.registry import Old


def test_the_tasks_of_every_package_run() -> None:
    packages = (f"largesse.{package.name}.tasks" for package in iter_modules(largesse.__path__) if package.ispkg)
    declared = {name: vars(import_module(name)).get("TASKS") for name in packages if find_spec(name) is not None}
    assert [name for name, tasks in declared.items() if tasks is not None and tasks not in ROOMS] == [], (
        "add these to ROOMS of housekeeping.py"
    )


TABLES = ("delivery_attempts", "deliveries", "events", "captured_mail")


async def counts(database: Database) -> dict[str, int]:
    return {table: await database.fetchval(OPERATOR, f"SELECT count(*) FROM {table}") for table in TABLES}


async def subscribe(database: Database) -> UUID:
    """A subscription of a customer of its own."""
    name = uuid4().hex
    customer_id = await database.fetchval(
        OPERATOR,
        "INSERT INTO customers (key, name, plan, funding) VALUES ($1, $1, 'pro', 'invoiced') RETURNING id",
        name,
    )
    account_id = await database.fetchval(
        OPERATOR,
        "INSERT INTO service_accounts (customer_id, key, name) VALUES ($1, $2, $2) RETURNING id",
        customer_id,
        name,
    )
    subscription_id: UUID = await database.fetchval(
        OPERATOR,
        """
        INSERT INTO webhook_subscriptions
            (id, customer_id, environment, event, target_url, sealed_secret, service_account_id)
        VALUES ($1, $2, 'production', 'order.created', 'https://hooks.example.com/', '', $3) RETURNING id
        """,
        uuid4(),
        customer_id,
        account_id,
    )
    return subscription_id


async def fill(database: Database) -> None:
    """One row in each table, a finished delivery, and a second that is still pending in its queue."""
    subscription_id = await subscribe(database)
    event_id = await database.fetchval(
        OPERATOR,
        """
        INSERT INTO events (order_id, customer_id, environment, event, body, created_at, fanned_out_at)
        VALUES (1, 1, 'production', 'order.created', '', now(), now()) RETURNING id
        """,
    )
    for state in ("delivered", "pending"):
        delivery_id = await database.fetchval(
            OPERATOR,
            """
            INSERT INTO deliveries (customer_id, subscription_id, event_id, event, state, due_at, created_at, finished_at)
            VALUES (1, $1, $2, 'order.created', $3, now(), now(), now()) RETURNING id
            """,
            subscription_id,
            event_id,
            state,
        )
    await database.execute(
        OPERATOR,
        "INSERT INTO subscription_queues (customer_id, subscription_id, due_at) VALUES (1, $1, now())",
        subscription_id,
    )
    await database.execute(
        OPERATOR,
        """
        INSERT INTO delivery_attempts (customer_id, delivery_id, number, started_at, duration_ms)
        VALUES (1, $1, 1, now(), 5)
        """,
        delivery_id,
    )
    await database.execute(
        OPERATOR,
        """
        INSERT INTO captured_mail (customer_id, message_id, environment, recipient, subject, sealed, captured_at)
        VALUES (1, 1, 'staging', 'sam@example.com', 'A gift', '', now())
        """,
    )


def gauge(name: str, queue: str) -> float | None:
    return REGISTRY.get_sample_value(name, {"queue": queue})


async def test_what_is_30_days_old_goes_and_not_a_day_sooner(database: Database) -> None:
    await fill(database)
    for days, expected in (
        (29.9, {"delivery_attempts": 1, "deliveries": 2, "events": 1, "captured_mail": 1}),
        (30.1, {"delivery_attempts": 0, "deliveries": 1, "events": 1, "captured_mail": 0}),
        (33.9, {"delivery_attempts": 0, "deliveries": 1, "events": 1, "captured_mail": 0}),
        (34.1, {"delivery_attempts": 0, "deliveries": 0, "events": 1, "captured_mail": 0}),
        (35.1, {"delivery_attempts": 0, "deliveries": 0, "events": 0, "captured_mail": 0}),
    ):
        await database.execute(OPERATOR, "UPDATE clock SET ahead_by = $1 * interval '1 day'", days)
        async with database.connection(OPERATOR) as connection:
            assert not await prune(connection)
        assert await counts(database) == expected


async def test_an_event_that_no_worker_has_seen_stays(database: Database) -> None:
    await fill(database)
    await database.execute(OPERATOR, "UPDATE events SET fanned_out_at = NULL")
    await database.execute(OPERATOR, "UPDATE clock SET ahead_by = '100 days'")
    async with database.connection(OPERATOR) as connection:
        await prune(connection)
    assert (await counts(database))["events"] == 1


async def test_a_large_backlog_goes_in_bites(database: Database) -> None:
    await database.execute(
        OPERATOR,
        """
        INSERT INTO delivery_attempts (customer_id, delivery_id, number, started_at, duration_ms)
        SELECT 1, number, 1, now() - interval '31 days', 5 FROM generate_series(1, 5001) AS number
        """,
    )
    async with database.connection(OPERATOR) as connection:
        assert await prune(connection)
        assert not await prune(connection)
    assert (await counts(database))["delivery_attempts"] == 0


async def test_a_table_that_fails_is_named_and_keeps_no_other_from_its_turn(database: Database) -> None:
    await fill(database)
    await database.execute(OPERATOR, "UPDATE clock SET ahead_by = '36 days'")
    old = [one for one in RETENTION if one.table in TABLES]
    no_table = [Old("no_such_table", "created_at", 30)]
    async with database.connection(OPERATOR) as connection:
        with pytest.raises(asyncpg.UndefinedTableError, match="no_such_table"):
            await registry.prune(connection, no_table + old)
    assert set((await counts(database)).values()) == {0}


async def test_a_clock_that_is_not_the_databases_is_measured(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Receivers of webhooks refuse what is signed with a wrong time."""
    name, ahead = "largesse_clock_ahead_seconds", clock.now() + timedelta(hours=1)
    async with database.connection(OPERATOR) as connection:
        await measure(connection)
        assert -30 < (REGISTRY.get_sample_value(name) or 0) < 30
        monkeypatch.setattr(clock, "now", lambda: ahead)
        await measure(connection)
    assert 3_500 < (REGISTRY.get_sample_value(name) or 0) < 3_700


async def test_the_queues_are_measured(database: Database) -> None:
    await fill(database)
    await database.execute(OPERATOR, "UPDATE clock SET ahead_by = '10 seconds'")
    async with database.connection(OPERATOR) as connection:
        await measure(connection)

    assert gauge("largesse_queue_depth", "deliveries") == 1
    assert gauge("largesse_queue_depth", "events") == 0
    assert 10 <= (gauge("largesse_queue_oldest_due_seconds", "deliveries") or 0) <= 40
    assert gauge("largesse_queue_oldest_due_seconds", "messages") == 0


async def test_the_oldest_delivery_is_found_in_whatever_queue_it_waits(database: Database) -> None:
    """Also where its queue had a turn since, and waits for the next from then on."""
    for number, failing in enumerate([False, True, True, False]):
        subscription_id = await subscribe(database)
        await database.execute(
            OPERATOR,
            """
            INSERT INTO deliveries (customer_id, subscription_id, sample, event, due_at, created_at)
            SELECT (SELECT customer_id FROM webhook_subscriptions WHERE id = $1), $1, '', 'order.created', now() - ages * interval '1 minute', now() FROM unnest($2::int[]) AS ages
            """,
            subscription_id,
            [number, 100 if number == 2 else 5, -30],
        )
        await database.execute(
            OPERATOR,
            """
            INSERT INTO subscription_queues (customer_id, subscription_id, due_at, failing)
            SELECT customer_id, id, now(), $2 FROM webhook_subscriptions WHERE id = $1
            """,
            subscription_id,
            failing,
        )
    async with database.connection(OPERATOR) as connection:
        await measure(connection)
    assert 6000 <= (gauge("largesse_queue_oldest_due_seconds", "deliveries") or 0) < 6060
    assert gauge("largesse_queue_depth", "deliveries") == 12
    assert REGISTRY.get_sample_value("largesse_webhook_failing_subscriptions") == 2


@pytest.mark.skipif(IS_DISTRIBUTED, reason="of queues on nodes nobody counts beyond 10,000: docs/scaling.md")
async def test_a_long_queue_is_counted_to_10_000_and_beyond_that_as_the_last_analyze_found_it(
    database: Database,
) -> None:
    add = """
        INSERT INTO mail_jobs (customer_id, order_id, environment, due_at)
        SELECT 1, n, 'staging', now() + interval '1 hour' FROM generate_series($1::int, $2::int) AS n
    """
    await database.execute(OPERATOR, "ALTER TABLE mail_jobs SET (autovacuum_enabled = off)")
    for first, last, analyze, depth in (
        (1, 9_999, False, 9_999),
        (10_000, 12_000, False, 10_000),
        (12_001, 30_000, True, 30_000),
        (30_001, 30_100, False, 30_000),
    ):
        await database.execute(OPERATOR, add, first, last)
        if analyze:
            await database.execute(OPERATOR, "ANALYZE mail_jobs")
        async with database.connection(OPERATOR) as connection:
            await measure(connection)
        assert gauge("largesse_queue_depth", "mail_jobs") == pytest.approx(depth, rel=0.05 if depth > 10_000 else 0)
    await database.execute(OPERATOR, "UPDATE mail_jobs SET fanned_out_at = now() WHERE order_id > 100")
    async with database.connection(OPERATOR) as connection:
        await measure(connection)
    assert gauge("largesse_queue_depth", "mail_jobs") == 100, "few are counted, whatever was found before"


NEW_ROWS = {
    "api_requests": """
        INSERT INTO api_requests (customer_id, environment, at, key_id, method, route, status, duration_us, request_id)
        SELECT 1, 'production', now(), 1, 'GET', '/me', 200, 1, n FROM generate_series(1, 20000) AS n
    """,
    "deliveries": """
        INSERT INTO deliveries (customer_id, subscription_id, event_id, event, due_at, created_at)
        SELECT 1, gen_random_uuid(), n, 'order.created', now(), now() FROM generate_series(1, 20000) AS n
    """,
    "delivery_attempts": """
        INSERT INTO delivery_attempts (customer_id, delivery_id, number, started_at, duration_ms)
        SELECT 1, n, 1, now(), 5 FROM generate_series(1, 20000) AS n
    """,
    "events": """
        INSERT INTO events (order_id, customer_id, environment, event, body, created_at, fanned_out_at)
        SELECT n, 1, 'production', 'order.created', '', now(), now() FROM generate_series(1, 20000) AS n
    """,
    "captured_mail": """
        INSERT INTO captured_mail (customer_id, message_id, environment, recipient, subject, sealed, captured_at)
        SELECT 1, n, 'staging', 'sam@example.com', 'A gift', '', now() FROM generate_series(1, 20000) AS n
    """,
}


@pytest.mark.skipif(IS_DISTRIBUTED, reason="what a node reads is not among what its coordinator explains")
@pytest.mark.parametrize("table", NEW_ROWS)
async def test_rows_that_are_not_old_are_not_read(database: Database, table: str) -> None:
    async with database.connection(OPERATOR) as connection:
        await connection.execute(NEW_ROWS[table])
        await connection.execute(f"ANALYZE {table}")
        # As a server has it whose settings nobody changed, and as `prune` plans.
        await connection.execute("SET random_page_cost = 4; SET enable_seqscan = off")
        for old in (one for one in RETENTION if one.table == table):
            assert await rows_read(connection, Role.WORKER, table, old.statement(), old.days, 500) == 0
