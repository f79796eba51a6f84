"""Migrations: once, by two at a time, and all or nothing."""

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import pytest
from structlog.testing import capture_logs
from tests.distributed import SOMEBODY_WAITS
from tests.waiting import LONGEST_S, until

from largesse.base.database_address import DatabaseAddress
from largesse.base.errors import OperatorError
from largesse.db import migrate
from largesse.db.pool import connect_once
from largesse.db.rights import FUNCTIONS, TABLES
from largesse.db.scope import OPERATOR
from largesse.db.session import UNLIMITED, Dialer, Session


@pytest.fixture
async def empty_url(database_url: str) -> str:
    """A database without any schema."""
    connection = await asyncpg.connect(database_url)
    await connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    await connection.close()
    return database_url


async def test_two_at_once_bring_an_empty_database_to_the_head(empty_url: str) -> None:
    connection = await asyncpg.connect(empty_url)
    assert await migrate.current_revision(connection) is None

    reached = await asyncio.gather(migrate.upgrade(empty_url), migrate.upgrade(empty_url))

    assert [done.revision for done in reached] == [migrate.head_revision()] * 2
    assert await migrate.current_revision(connection) == migrate.head_revision()
    await connection.close()


async def test_a_server_that_is_too_old_is_refused_before_anything_is_made(
    empty_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = await asyncpg.connect(empty_url)
    monkeypatch.setattr(migrate, "OLDEST_SERVER", connection.get_server_version().major + 1)
    for refused in (migrate.upgrade, migrate.roles_to_make):
        with pytest.raises(OperatorError, match="too old: it must be"):
            await refused(empty_url)
    assert await migrate.current_revision(connection) is None
    await connection.close()


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
async def test_a_database_that_cannot_hold_every_text_is_refused_before_anything_is_made(
    database_url: str, encoding: str
) -> None:
    name = f"largesse_{encoding.lower()}"
    server = await asyncpg.connect(database_url)
    await server.execute(f"CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0")
    address = urlsplit(database_url)._replace(path=f"/{name}").geturl()
    try:
        with pytest.raises(OperatorError, match=f"encoded in {encoding}.* `createdb --encoding UTF8`"):
            await migrate.upgrade(address)
        connection = await asyncpg.connect(address)
        assert (
            await connection.fetchval("SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace") == 0
        )
        await connection.close()
    finally:
        await server.execute(f"DROP DATABASE {name}")
        await server.close()


async def test_one_that_waits_for_another_says_so(database_url: str) -> None:
    other = await asyncpg.connect(database_url)
    await other.execute("SELECT pg_advisory_lock($1)", migrate.LOCK_KEY)
    with capture_logs() as logs:
        upgrading = asyncio.create_task(migrate.upgrade(database_url))
        await until(lambda: logs)
        assert logs[0]["event"] == "migrate_waits_for_another"
        await other.close()
        await upgrading


async def test_a_revision_that_fails_leaves_nothing(
    empty_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "0001_x.sql").write_text("CREATE TABLE first (price text DEFAULT '100 % of :it'); SELECT 1")
    (tmp_path / "0002_x.sql").write_text("CREATE TABLE second (id int); SELECT 1 / 0")
    monkeypatch.setattr(migrate, "REVISIONS", tmp_path)

    with pytest.raises(asyncpg.DivisionByZeroError):
        await migrate.upgrade(empty_url)

    connection = await asyncpg.connect(empty_url)
    assert await migrate.current_revision(connection) == "0001"
    assert await connection.fetchval("SELECT to_regclass('first') IS NOT NULL")
    assert await connection.fetchval("SELECT to_regclass('second') IS NULL")
    await connection.close()


@pytest.fixture
def upgrade_to(empty_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Awaitable[None]]:
    """`await upgrade_to(44)`: the database as revision 0044 left it."""

    async def upgrade(revision: int) -> None:
        before = tmp_path / "before"
        newer = (f"{number:04}_*" for number in range(revision + 1, int(migrate.head_revision()) + 1))
        shutil.copytree(migrate.REVISIONS, before, ignore=shutil.ignore_patterns(*newer))
        with monkeypatch.context() as at_revision:
            at_revision.setattr(migrate, "REVISIONS", before)
            # The rights of this release name columns that came later; what gives them is behind the revisions.
            with contextlib.suppress(asyncpg.UndefinedColumnError):
                await migrate.upgrade(empty_url)

    return upgrade


async def test_who_was_switched_off_by_a_file_comes_back_to_nothing(
    empty_url: str, upgrade_to: Callable[[int], Awaitable[None]]
) -> None:
    await upgrade_to(112)
    connection = await asyncpg.connect(empty_url)
    await connection.execute(
        """
        INSERT INTO customers (key, name, plan, funding) VALUES ('acme', 'Acme', 'pro', 'balance');
        INSERT INTO accounts (customer_id, environment, kind, key, name, currency)
            SELECT id, 'production', 'funding', 'main', 'Main', 'GBP' FROM customers;
        INSERT INTO people (email, email_key) VALUES ('off@acme.example', 'off@acme.example'), ('on@acme.example', 'on@acme.example');
        INSERT INTO users (customer_id, email, name, role, is_active, person_id)
            SELECT c.id, p.email, 'P', 'member', p.email LIKE 'on@%', p.id FROM people p, customers c;
        INSERT INTO account_users (customer_id, account_id, user_id) SELECT a.customer_id, a.id, u.id FROM accounts a, users u
        """
    )
    await migrate.upgrade(empty_url)
    [bound] = await connection.fetch("SELECT email FROM users WHERE person_id IS NOT NULL")
    [open_to] = await connection.fetch("SELECT email FROM account_users JOIN users ON users.id = user_id")
    assert (bound["email"], open_to["email"]) == ("on@acme.example", "on@acme.example")
    await connection.close()


async def test_who_has_a_second_step_already_keeps_it(
    empty_url: str, upgrade_to: Callable[[int], Awaitable[None]]
) -> None:
    await upgrade_to(44)
    connection = await asyncpg.connect(empty_url)
    await connection.execute(
        """
        INSERT INTO people (email, email_key, totp) VALUES
            ('app@acme.example', 'app@acme.example', 'sealed'), ('key@acme.example', 'key@acme.example', NULL),
            ('none@acme.example', 'none@acme.example', NULL);
        INSERT INTO passkeys (person_id, credential_id, credential, name, sign_count)
            SELECT id, 'a', 'b', 'Phone', 0 FROM people WHERE email_key = 'key@acme.example'
        """
    )
    await migrate.upgrade(empty_url)
    confirmed = await connection.fetch("SELECT email FROM people WHERE confirmed_at IS NOT NULL ORDER BY email")
    assert [row["email"] for row in confirmed] == ["app@acme.example", "key@acme.example"]
    await connection.close()


def test_revisions_are_numbered_without_gaps() -> None:
    names = sorted(path.name for path in migrate.REVISIONS.glob("*.sql"))
    assert [int(name[:4]) for name in names] == list(range(1, len(names) + 1))


async def test_every_table_and_function_is_declared(module_database_url: str) -> None:
    async with connect_once(module_database_url, OPERATOR) as connection:
        tables = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        functions = await connection.fetch(
            "SELECT DISTINCT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace"
        )
    assert {name for (name,) in tables} == TABLES.keys(), "say in db/rights.py who writes a new table"
    assert {name for (name,) in functions} == FUNCTIONS.keys(), "say in db/rights.py who calls a function"


@pytest.fixture
async def session(empty_url: str) -> AsyncIterator[asyncpg.Connection]:
    """A session of `migrate` on a database that has its table of revisions, and one of ours."""
    connection = await asyncpg.connect(empty_url)
    await connection.execute(f"{migrate._VERSION_TABLE}; CREATE TABLE used (id int)")
    yield connection
    await connection.close()


async def test_a_revision_says_which_code_runs_on_it(session: asyncpg.Connection) -> None:
    noted = []
    for revision, first_line in [
        ("0001", ""),
        ("0002", "-- Expand"),
        ("0003", "-- Expand"),
        ("0004", "-- Contract: code of 0003"),
        ("0005", "-- Expand"),
        ("0006", "-- Contracts and expands, by what it says"),
    ]:
        await migrate._run_patiently(session, revision, f"{first_line}\nSELECT 1;")
        noted.append(tuple(await session.fetchrow("SELECT version_num, runs_from FROM alembic_version")))
    assert noted == [
        ("0001", "0001"),
        ("0002", "0001"),
        ("0003", "0001"),
        ("0004", "0003"),
        ("0005", "0003"),
        ("0006", "0006"),
    ]


async def test_a_revision_that_waits_for_a_lock_lets_others_through(
    session: asyncpg.Connection, empty_url: str
) -> None:
    """A long transaction holds a table. Whoever comes after the revision is served before that transaction ends."""
    holder, reader = await asyncpg.connect(empty_url), await asyncpg.connect(empty_url)
    holding = holder.transaction()
    await holding.start()
    await holder.execute("SELECT FROM used")
    running = asyncio.create_task(
        migrate._run_patiently(session, "0001", "-- Expand\nALTER TABLE used ADD COLUMN more text")
    )
    await until(lambda: reader.fetchval(SOMEBODY_WAITS))
    assert await reader.fetch("SELECT id FROM used") == []
    assert not running.done()
    await holding.rollback()
    await running
    assert await reader.fetch("SELECT more FROM used") == []
    await holder.close()
    await reader.close()


async def test_a_revision_that_is_ended_by_a_deadlock_is_repeated(session: asyncpg.Connection, empty_url: str) -> None:
    """A request locks the same two tables in the other order. The revision waits first, so the server ends it."""
    await session.execute("CREATE TABLE also (id int)")
    holder = await asyncpg.connect(empty_url)
    async with holder.transaction():
        await holder.execute("SELECT FROM also")
        running = asyncio.create_task(
            migrate._run_patiently(
                session, "0001", "ALTER TABLE used ADD COLUMN more text; ALTER TABLE also ADD COLUMN more text"
            )
        )
        reader = await asyncpg.connect(empty_url)
        await until(lambda: reader.fetchval(SOMEBODY_WAITS))
        assert await holder.fetch("SELECT FROM used") == []
    await running
    assert await holder.fetch("SELECT used.more, also.more FROM used, also") == []
    await holder.close()
    await reader.close()


async def test_a_lock_that_is_never_free_is_named(
    session: asyncpg.Connection, empty_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrate, "_LOCK_TRIES", 1)
    monkeypatch.setattr(migrate, "_LOCK_TIMEOUT_MS", 50)
    holder = await asyncpg.connect(empty_url)
    async with holder.transaction():
        await holder.execute("SELECT FROM used")
        with (
            capture_logs() as logs,
            pytest.raises(OperatorError, match="revision 0007 cannot lock a table that a long transaction uses"),
        ):
            await migrate._run_patiently(session, "0007", "ALTER TABLE used ADD COLUMN more text")
    assert [(line["event"], line["revision"]) for line in logs] == [("migrate_waits_for_lock", "0007")]
    await holder.close()


async def test_statements_outside_a_transaction_can_be_repeated(session: asyncpg.Connection) -> None:
    sql = """-- Expand
-- Outside a transaction
-- A comment; with a semicolon.

DROP INDEX CONCURRENTLY IF EXISTS used_id

CREATE INDEX CONCURRENTLY used_id ON used (id)
"""
    for revision in ("0001", "0002"):
        await migrate._run_patiently(session, revision, sql)
    assert await session.fetchval("SELECT indisvalid FROM pg_index WHERE indexrelid = 'used_id'::regclass")


async def test_an_index_whose_build_was_interrupted_is_built_anew(session: asyncpg.Connection) -> None:
    sql = "-- Outside a transaction\n-- Said.\nCREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS used_once ON used (id);\n"
    await session.execute("INSERT INTO used VALUES (1), (1)")
    with pytest.raises(asyncpg.UniqueViolationError):
        await migrate._run_patiently(session, "0001", sql)
    is_valid = "SELECT indisvalid FROM pg_index WHERE indexrelid = 'used_once'::regclass"
    assert await session.fetchval(is_valid) is False

    await session.execute("TRUNCATE used")
    await migrate._run_patiently(session, "0001", sql)
    assert await session.fetchval(is_valid) is True


async def test_what_a_killed_migrate_left_running_ends_and_frees_its_locks(
    empty_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "0001_slow.sql").write_text("CREATE TABLE made (); SELECT pg_advisory_xact_lock(7), pg_sleep(600)")
    monkeypatch.setattr(migrate, "REVISIONS", tmp_path)
    dialer = Dialer(DatabaseAddress.parse(empty_url), UNLIMITED)
    killed, beside = await dialer.dial(), await asyncpg.connect(empty_url)
    own = asyncio.Future[Session]()
    own.set_result(killed)
    monkeypatch.setattr(dialer, "dial", lambda: own)
    running = asyncio.create_task(migrate._run_revisions(dialer, None, as_owner=False))
    sleeps = "SELECT wait_event = 'PgSleep' FROM pg_stat_activity WHERE pid = $1"
    await until(lambda: beside.fetchval(sleeps, killed.get_server_pid()))
    killed.terminate()  # sends nothing, as of a killed process
    await beside.execute("SELECT pg_advisory_lock(7)", timeout=LONGEST_S)
    assert await beside.fetchval("SELECT to_regclass('made')") is None
    with pytest.raises((asyncpg.PostgresConnectionError, asyncpg.InterfaceError)):
        await running
    await beside.close()
