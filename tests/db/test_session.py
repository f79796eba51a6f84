"""Each side of a session gives up on a silent other in time; and only then."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Iterable
from datetime import UTC, datetime
from ipaddress import IPv4Address, IPv4Network
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import asyncpg
import asyncpg.connection
import pytest
from tests.closing import closing
from tests.faults.proxy import Proxy
from tests.waiting import until

from largesse.base.database_address import DatabaseAddress
from largesse.base.errors import OperatorError
from largesse.db import session
from largesse.db.migrate import upgrade
from largesse.db.pool import Database, connect_once, read_in_parts
from largesse.db.postmaster import end_orphans
from largesse.db.scope import OPERATOR
from largesse.db.session import REQUESTS, Dialer, Limits

SHORT = Limits(statement_s=1, lock_s=1, idle_in_transaction_s=1)
# In this database: other tests hold such locks in theirs, on the same server.
WAITING = """
    SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
PATIENCE_S = 30.0


@pytest.fixture
async def database(proxy: Proxy) -> AsyncIterator[Database]:
    database = await Database.connect(proxy.url, max_connections=3, limits=SHORT)
    yield database
    await database.close()


async def test_the_server_knows_the_limits(database_url: str) -> None:
    database = await Database.connect(database_url)
    shown = {name: await database.fetchval(OPERATOR, f"SHOW {name}") for name in REQUESTS.settings}
    await database.close()
    assert shown == REQUESTS.settings
    assert shown["idle_in_transaction_session_timeout"] == "5s"


async def test_what_statements_rely_on_holds_whatever_the_database_has_set(
    database_url: str, beside: asyncpg.Connection
) -> None:
    name = await beside.fetchval("SELECT quote_ident(current_database())")
    relied_on = {
        "default_transaction_isolation": "read committed",
        "bytea_output": "hex",
        "intervalstyle": "postgres",
        "quote_all_identifiers": "off",
        "row_security": "on",
        "standard_conforming_strings": "on",
        "search_path": "public",
    }
    others = ("'repeatable read'", "escape", "iso_8601", "on", "off", "off", "elsewhere")
    for setting, other in zip(relied_on, others, strict=True):
        await beside.execute(f"ALTER DATABASE {name} SET {setting} = {other}")
    database = await Database.connect(database_url)
    shown = {setting: await database.fetchval(OPERATOR, f"SHOW {setting}") for setting in relied_on}
    await database.close()
    assert shown == relied_on


@pytest.mark.parametrize(
    ("peer", "own", "encrypted", "readable"),
    [
        (("192.0.2.1", 5432), ("192.0.2.2", 60000), False, True),
        (("2001:db8::1", 5432, 0, 0), ("2001:db8::2", 60000, 0, 0), False, True),
        (("192.0.2.1", 5432), ("192.0.2.2", 60000), True, False),
        (("192.0.2.1", 5432), ("192.0.2.1", 60000), False, False),
        (("127.0.0.1", 5432), ("127.0.0.1", 60000), False, False),
        (("::1", 5432, 0, 0), ("::1", 60000, 0, 0), False, False),
        ("/run/postgresql/.s.PGSQL.5432", "", False, False),
    ],
)
async def test_a_session_to_another_machine_without_encryption_can_be_read(
    database_url: str, peer: Any, own: Any, encrypted: bool, readable: bool
) -> None:
    async with connect_once(database_url, OPERATOR) as connection:
        assert isinstance(connection, session.Session)
        assert not connection.is_readable_on_network
        wire = {"peername": peer, "sockname": own, "sslcontext": object() if encrypted else None}
        real, connection._wire = connection._wire, SimpleNamespace(get_extra_info=wire.get)  # type: ignore[assignment]
        assert connection.is_readable_on_network is readable
        connection._wire = real


async def test_a_database_that_takes_writes_again_is_written_to_again(
    database_url: str, beside: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hosts set a database to read-only while its disk is nearly full. Only new sessions notice that it is over, and a busy one never rests."""
    name = await beside.fetchval("SELECT quote_ident(current_database())")
    await beside.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    database = await Database.connect(database_url, max_connections=1)
    with pytest.raises(asyncpg.ReadOnlySQLTransactionError):
        await database.execute(OPERATOR, "CREATE TABLE notes (said text)")
    await beside.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
    monkeypatch.setattr(session, "_READ_ONLY_S", 0.0)
    await database.fetchval(OPERATOR, "SELECT 1")  # the last use of the old session
    await database.execute(OPERATOR, "CREATE TABLE notes (said text)")
    await database.close()


async def test_both_ends_of_a_connection_notice_that_the_other_has_vanished(database: Database) -> None:
    shown = {
        name: await database.fetchval(OPERATOR, f"SHOW {name}")
        for name in ("tcp_keepalives_idle", "tcp_keepalives_interval", "tcp_keepalives_count", "tcp_user_timeout")
    }
    async with database.connection(OPERATOR) as connection:
        sock = connection._transport.get_extra_info("socket")
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 5
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL) == 2
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT) == 3
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 10_000
        over_tcp = await connection.fetchval("SELECT inet_client_addr() IS NOT NULL")
    if over_tcp:  # a socket has no keepalive
        assert list(shown.values()) == ["5", "2", "3", "10000"]


@pytest.mark.slow
async def test_a_transaction_left_alone_lets_its_locks_go(
    proxy: Proxy, database: Database, beside: asyncpg.Connection
) -> None:
    await beside.execute("CREATE TABLE held (id int); INSERT INTO held VALUES (1)")
    async with database.connection(OPERATOR) as connection:
        await connection.execute("BEGIN; UPDATE held SET id = 2")
        proxy.swallow()
        async with asyncio.timeout(PATIENCE_S):
            await beside.execute("UPDATE held SET id = 3")
        with pytest.raises(TimeoutError):
            await connection.execute("COMMIT")
    assert await database.fetchval(OPERATOR, "SELECT id FROM held") == 3


@pytest.mark.long
@pytest.mark.parametrize("statement", ["prepared", "COPY"])
async def test_a_session_whose_client_is_lost_within_a_command_is_ended(
    statement: str,
    proxy: Proxy,
    database: Database,
    database_url: str,
    beside: asyncpg.Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The server would wait for the rest without end, and keep the locks of the transaction."""
    monkeypatch.setattr("largesse.db.postmaster._WAITED_S", 0.5)
    await beside.execute("CREATE TABLE held (id int); INSERT INTO held VALUES (1)")
    async with database.connection(OPERATOR) as connection:
        await connection.execute("BEGIN; UPDATE held SET id = 2")
        # Parse is heard, Bind is not; the beginning of a COPY, and not its rows.
        proxy.last_heard = b"count(*)" if statement == "prepared" else b"COPY"
        with pytest.raises(TimeoutError):
            await (
                connection.fetchval("SELECT count(*) FROM held WHERE id = $1", 2)
                if statement == "prepared"
                else connection.copy_records_to_table("held", records=[(3,)] * 100_000, columns=["id"])
            )
    async with connect_once(database_url, OPERATOR, limits=REQUESTS) as other:
        await other.execute("SET lock_timeout = '1s'")
        with pytest.raises(asyncpg.LockNotAvailableError):
            await other.execute("UPDATE held SET id = 3")
    async with closing(Database.connect(database_url)) as healthy:
        await asyncio.sleep(0.5)
        assert await end_orphans(healthy) == 1
        await beside.execute("UPDATE held SET id = 3")


async def test_sessions_at_work_and_at_rest_are_no_orphans(
    database: Database, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("largesse.db.postmaster._WAITED_S", 0.0)
    async with (
        closing(Database.connect(database_url)) as healthy,
        database.connection(OPERATOR) as resting,
        database.transaction(OPERATOR) as idle,
    ):
        await idle.execute("SELECT 1")
        working = asyncio.create_task(database.fetchval(OPERATOR, "SELECT pg_sleep(0.5)"))
        await asyncio.sleep(0.2)
        assert await end_orphans(healthy) == 0
        await working
        assert await resting.fetchval("SELECT 1") == 1


@pytest.mark.long
async def test_a_silent_server_is_given_up_and_asked_anew(proxy: Proxy, database: Database) -> None:
    async with database.connection(OPERATOR), database.connection(OPERATOR), database.connection(OPERATOR):
        pass  # three are open now, and lie idle
    proxy.swallow()
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        await database.fetchval(OPERATOR, "SELECT 1")
    gave_up = time.monotonic()
    assert gave_up - began >= 2.0  # the statement's limit and what its answer may take
    # None of the others is waited for.
    assert await asyncio.gather(*(database.fetchval(OPERATOR, "SELECT 1") for _ in range(6))) == [1] * 6
    assert time.monotonic() - gave_up < 2.0


async def test_a_transaction_that_meets_a_silent_server_fails_once(proxy: Proxy, database: Database) -> None:
    began = time.monotonic()

    async def transact() -> None:
        async with database.transaction(OPERATOR) as connection:
            proxy.swallow()
            await connection.execute("SELECT 1")

    with pytest.raises(TimeoutError):
        await transact()
    assert time.monotonic() - began < 2 * SHORT.answer_s  # the rollback is not waited for too
    assert await database.fetchval(OPERATOR, "SELECT 1") == 1


@pytest.mark.parametrize("borrow", [Database.transaction, Database.connection])
async def test_a_statement_may_be_cancelled(borrow: Any, database: Database, beside: asyncpg.Connection) -> None:
    async def wait() -> None:
        async with borrow(database, OPERATOR) as connection:
            await connection.fetch("SELECT pg_advisory_lock($1)", 42)

    await beside.execute("SELECT pg_advisory_lock(42)")
    waiting = asyncio.create_task(wait())
    await _until(beside, f"SELECT ({WAITING}) = 1")
    waiting.cancel()
    await asyncio.wait([waiting], timeout=PATIENCE_S)
    assert waiting.cancelled()  # not ended by what became of the connection
    assert await database.fetchval(OPERATOR, "SELECT 1") == 1


async def test_a_server_that_is_silent_from_the_start_is_not_waited_for_long(
    proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "CONNECT_TIMEOUT_S", 0.2)
    proxy.swallow(new=True)
    async with asyncio.timeout(PATIENCE_S):
        with pytest.raises(TimeoutError):
            await Database.connect(proxy.url)


async def test_closing_does_not_wait_for_a_silent_server(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_CLOSE_TIMEOUT_S", 0.2)
    database = await Database.connect(proxy.url)
    proxy.swallow()
    async with asyncio.timeout(PATIENCE_S):
        await database.close()


async def test_a_commit_is_never_cancelled(database: Database, beside: asyncpg.Connection) -> None:
    """One that waits for a standby would come back as done, on the primary alone."""
    await beside.execute(
        """
        CREATE TABLE held (id int);
        CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql SET lock_timeout = 0
        AS $$ BEGIN PERFORM pg_advisory_xact_lock(42); RETURN NULL; END $$;
        CREATE CONSTRAINT TRIGGER hold AFTER INSERT ON held
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION hold();
        SELECT pg_advisory_lock(42);
        """
    )
    async with database.connection(OPERATOR) as connection:
        await connection.execute("BEGIN; INSERT INTO held VALUES (1)")
        with pytest.raises(TimeoutError):
            await connection.execute("COMMIT")
    assert await database.fetchval(OPERATOR, WAITING) == 1
    await beside.execute("SELECT pg_advisory_unlock(42)")
    await _until(beside, "SELECT count(*) = 1 FROM held")


async def test_an_interrupted_command_is_stopped_at_the_server(database_url: str, beside: asyncpg.Connection) -> None:
    sleeping = """
        SELECT count(*) = {} FROM pg_stat_activity
        WHERE datname = current_database() AND query ~ '^SELECT pg_sleep' AND state = 'active'
    """
    async with connect_once(database_url, OPERATOR) as connection:
        command = asyncio.create_task(connection.fetchval("SELECT pg_sleep(600)"))
        await _until(beside, sleeping.format(1))
        command.cancel()
        await asyncio.gather(command, return_exceptions=True)
        await _until(beside, sleeping.format(0))


async def test_a_silent_host_is_passed_by_and_tried_last_from_then_on(proxy: Proxy, database_url: str) -> None:
    silent = Proxy(database_url)
    await silent.restore()
    silent.swallow(new=True)
    dialer = Dialer(DatabaseAddress.parse(_several(proxy.url, silent.port, proxy.port)), SHORT)
    try:
        waits = [await _dial(dialer) for _ in range(3)]
    finally:
        await silent.cut()
    assert waits[0] >= 1.5 > max(waits[1:])


def _several(url: str, *ports: int) -> str:
    """The address with each of several ports of this machine as a host."""
    parts = urlsplit(url)
    user = parts.netloc.rpartition("@")[0]
    hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
    return parts._replace(netloc=f"{user}@{hosts}").geturl()


async def _dial(dialer: Any) -> float:
    """Opens a session, and says how long that took."""
    began = time.monotonic()
    opened = await dialer.dial()
    took = time.monotonic() - began
    assert await opened.fetchval("SELECT 1") == 1
    await opened.close()
    return took


async def _until(connection: asyncpg.Connection, question: str) -> None:
    """Waits until the database answers `question` with true."""
    await until(lambda: connection.fetchval(question), PATIENCE_S)


async def test_a_new_session_does_not_ask_the_server_for_the_types_of_arrays(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    async def refuse(_: asyncpg.Connection, oids: Iterable[int], *__: object) -> None:
        asked.extend(oids)
        raise AssertionError

    monkeypatch.setattr(asyncpg.Connection, "_introspect_types", refuse)
    database = await Database.connect(database_url)
    now = datetime.now(UTC)
    arrays: dict[str, list[object]] = {
        "bool": [True, None],
        "bytea": [b"\0", b""],
        "smallint": [-1, 2],
        "int": [-1, 2],
        "bigint": [-1, 2**40],
        "float8": [0.5, -2.0],
        "date": [now.date()],
        "timestamptz": [now],
        "uuid": [UUID(int=7)],
        "cidr": [IPv4Network("10.0.0.0/8")],
        "inet": [IPv4Address("10.0.0.1")],
        "text": ["a,b", '"', None],
    }
    for name, array in arrays.items():
        sql = f"SELECT $1::{name}[] AS array, $2::{name}[] IS NULL AS none"
        async with database.connection(OPERATOR) as connection:
            [row] = await connection.fetch(sql, array, None)
            assert row["array"] == array
            assert row["none"]
    async with database.connection(OPERATOR) as connection:
        with pytest.raises(AssertionError):
            await connection.fetch("SELECT ARRAY[1.5]")  # it asks for others
    await database.close()
    assert asked == [1231]


@pytest.fixture
async def pooled_database(database_url: str) -> AsyncIterator[Database]:
    """The pool as it is behind PgBouncer, without one in between."""
    mark = "&" if "?" in database_url else "?"
    database = await Database.connect(f"{database_url}{mark}pgbouncer=true")
    yield database
    await database.close()


async def test_nothing_is_prepared_for_later_behind_pgbouncer(pooled_database: Database) -> None:
    async with pooled_database.connection(OPERATOR) as connection:
        assert await connection.fetchval("SELECT $1::int + 1", 1) == 2
        assert await connection.fetchval("SELECT count(*) FROM pg_prepared_statements") == 0


async def test_a_cursor_works_where_another_process_left_its_statement(pooled_database: Database) -> None:
    async with pooled_database.transaction(OPERATOR) as connection:
        drawn = int(asyncpg.connection._uid)  # type: ignore[attr-defined]  # the driver of every process counts from 0
        for number in range(drawn + 1, drawn + 20):
            await connection.execute(f'PREPARE "__asyncpg_stmt_{number:x}__" AS SELECT 1')
        parts = [part async for part in read_in_parts(connection, "SELECT * FROM generate_series(1, 5)", 2)]
        assert [[row[0] for row in part] for part in parts] == [[1, 2], [3, 4], [5]]
        assert await connection.fetchval("SELECT count(*) FROM pg_prepared_statements WHERE NOT from_sql") == 0


async def test_migrating_through_pgbouncer_is_refused(database_url: str) -> None:
    mark = "&" if "?" in database_url else "?"
    with pytest.raises(OperatorError, match="not of PgBouncer"):
        await upgrade(f"{database_url}{mark}pgbouncer=true")
