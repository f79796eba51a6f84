"""Several statements in one round trip: what they give, and what becomes of a connection that breaks or falls silent within them."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest
from tests.distributed import IS_DISTRIBUTED
from tests.faults.proxy import Proxy

from largesse.db.pipeline import Answer, Exchange, Statement, Unanswered, message_of, text_of
from largesse.db.pool import Connection, Database
from largesse.db.scope import LOOKUP, OPERATOR, for_customer
from largesse.db.session import Limits, Session
from largesse.db.statements import CommitFailed, commit_with, run_together

pytestmark = pytest.mark.skipif(IS_DISTRIBUTED, reason="a cluster is sent one statement at a time")

SHORT = Limits(statement_s=1, lock_s=1, idle_in_transaction_s=5)
TABLE = Statement("CREATE TABLE written (number integer PRIMARY KEY)")
WRITE = "INSERT INTO written VALUES ($1)"
NUMBERS = "SELECT coalesce(string_agg(number::text, ' ' ORDER BY number), '') FROM written WHERE $1::int IS NOT NULL"


@pytest.fixture
async def session(database: Database) -> AsyncIterator[Connection]:
    async with database.session(OPERATOR) as connection:
        yield connection


@pytest.mark.parametrize(
    ("kind", "argument"),
    [
        ("text", "plain"),
        ("text", 'O\'Brien said: "\\no" {1,2}\n\tπ 🎁'),
        ("text", ""),
        ("text", None),
        ("int", -17),
        ("bigint", 2**62),
        ("bytea", b"\x00\xff\\'"),
        ("timestamptz", datetime(2030, 12, 24, 9, 0, 0, 123456, tzinfo=UTC)),
        ("int[]", [1, -2, 3]),
        ("int[]", []),
        ("text[]", ["", "NULL", "a,b", '"{\\}"', "it's", "ö\n"]),
        ("bytea[]", [b"", b"\x00\\", b"head"]),
    ],
)
async def test_an_argument_arrives_as_the_driver_sends_it(session: Any, kind: str, argument: Any) -> None:
    sql = f"SELECT $1::{kind}::text"
    ours, again = await run_together(session, Statement(sql, (argument,)), Statement(sql, (argument,)))
    assert ours == again == await session.fetchval(sql, argument)


async def test_gives_the_first_value_of_each_and_the_tag_of_what_has_none(session: Any) -> None:
    answers = await run_together(
        session,
        Statement("BEGIN; SET LOCAL lock_timeout = 100;"),
        Statement("SELECT number, number FROM generate_series($1::int, 5) AS number", (3,)),
        Statement("SELECT $1::int WHERE false", (1,)),
        Statement("SELECT NULL, $1::int", (1,)),
        Statement("COMMIT"),
    )
    assert answers == ["SET", "3", "SELECT 0", None, "COMMIT"]


async def test_a_long_answer_arrives_whole(session: Any) -> None:
    long, short = await run_together(
        session, Statement("SELECT repeat('0123456789', $1::int)", (500_000,)), Statement("SELECT $1::text", ("end",))
    )
    assert (long, short) == ("0123456789" * 500_000, "end")


async def test_a_long_argument_arrives_whole(session: Any) -> None:
    assert await run_together(session, Statement("SELECT length($1)", ("ö" * 3_000_000,))) == ["3000000"]


async def test_begin_sets_the_scope(database: Database) -> None:
    shown = Statement("SELECT current_setting('largesse.customers') || $1", ("",))
    async with database.session(for_customer(7, "production")) as connection:
        assert await run_together(connection, Statement("BEGIN"), shown, Statement("COMMIT")) == [
            "SET",
            "{7}",
            "COMMIT",
        ]


async def test_errors_are_those_of_the_driver_and_end_the_transaction(session: Any) -> None:
    await run_together(session, TABLE)
    one = Statement(WRITE, (1,))
    with pytest.raises(asyncpg.UniqueViolationError) as raised:
        await run_together(session, Statement("BEGIN"), one, one, Statement(WRITE, (2,)))
    await session.execute("ROLLBACK")
    with pytest.raises(asyncpg.UniqueViolationError) as of_driver:
        await session.execute("INSERT INTO written VALUES (1), (1)")
    for name in ("sqlstate", "message", "detail", "table_name", "constraint_name", "severity_en"):
        assert getattr(raised.value, name, None) == getattr(of_driver.value, name, None), name
    assert await run_together(session, Statement(NUMBERS, (0,))) == [""]
    assert await session.fetchval("SELECT count(*) FROM written") == 0


async def test_a_statement_that_cannot_be_parsed_is_parsed_again(session: Any) -> None:
    wrong = Statement("SELECT no_such_column FROM written WHERE number = $1", (1,))
    await run_together(session, TABLE)
    for _ in range(2):
        with pytest.raises(asyncpg.UndefinedColumnError):
            await run_together(session, wrong)
    await session.execute("ALTER TABLE written ADD COLUMN no_such_column integer")
    assert await run_together(session, wrong) == ["SELECT 0"]


async def test_is_prepared_once_in_each_session(session: Any) -> None:
    statement = Statement("SELECT $1::int + 4711", (1,))
    for _ in range(3):
        assert await run_together(session, statement, statement._replace(arguments=(2,))) == ["4712", "4713"]
    known = await session.fetch(
        "SELECT generic_plans + custom_plans FROM pg_prepared_statements WHERE statement LIKE '%+ 4711'"
    )
    assert [row[0] for row in known] == [6]


async def test_the_last_statement_and_commit(session: Any) -> None:
    await run_together(session, TABLE)
    await run_together(session, Statement("BEGIN"), Statement(NUMBERS, (0,)))
    await commit_with(session, Statement(WRITE, (1,)))
    await run_together(session, Statement("BEGIN"), Statement(WRITE, (2,)))
    with pytest.raises(asyncpg.UniqueViolationError):
        await commit_with(session, Statement(WRITE, (1,)))
    assert await session.fetchval(NUMBERS, 0) == "1"


async def test_the_driver_hears_of_the_end_of_a_transaction_that_it_took_part_in(session: Any) -> None:
    """Otherwise it logs an error and resets the session when that is given back, as with each order of a person."""
    await run_together(session, TABLE)
    await run_together(session, Statement("BEGIN"), Statement(NUMBERS, (0,)))
    assert await session.fetchval("SELECT 1") == 1
    await commit_with(session, Statement(WRITE, (1,)))
    assert not session.is_in_transaction()
    assert await session.fetchval(NUMBERS, 0) == "1"


async def test_a_commit_that_the_server_refuses(session: Any) -> None:
    await session.execute("CREATE TABLE late (number integer UNIQUE DEFERRABLE INITIALLY DEFERRED)")
    late = Statement("INSERT INTO late VALUES ($1), ($1)", (1,))
    await session.execute("BEGIN")
    with pytest.raises(CommitFailed) as failed:
        await commit_with(session, late)
    assert isinstance(failed.value.error, asyncpg.UniqueViolationError)
    assert await session.fetchval("SELECT count(*) FROM late") == 0


@pytest.mark.parametrize(("at_commit", "written"), [("before", ""), ("after", "1")])
async def test_a_connection_that_breaks_at_commit(proxy: Proxy, beside: Any, at_commit: Any, written: str) -> None:
    database = await Database.connect(proxy.url)
    async with database.session(OPERATOR) as connection:
        await run_together(connection, TABLE)
        proxy.at_commit = at_commit
        await run_together(connection, Statement("BEGIN"), Statement(NUMBERS, (0,)))
        with pytest.raises(CommitFailed) as failed:
            await commit_with(connection, Statement(WRITE, (1,)))
        assert isinstance(failed.value.error, OSError | asyncpg.InterfaceError | asyncpg.PostgresConnectionError)
    assert await beside.fetchval(NUMBERS, 0) == written
    assert await database.fetchval(LOOKUP, "SELECT 1") == 1
    await database.close()


@pytest.mark.long
async def test_a_silent_server_is_waited_for_no_longer_than_for_one_statement(proxy: Proxy) -> None:
    database = await Database.connect(proxy.url, limits=SHORT)
    async with database.session(OPERATOR) as connection:
        assert await run_together(connection, Statement("SELECT $1::int", (1,))) == ["1"]
        proxy.swallow()
        began = asyncio.get_running_loop().time()
        with pytest.raises(TimeoutError):
            await run_together(connection, Statement("BEGIN"), Statement("SELECT $1::int", (1,)))
        assert asyncio.get_running_loop().time() - began < 5
    await proxy.cut()
    await database.close()


async def test_a_statement_that_takes_too_long_is_ended_by_the_server(database_url: str) -> None:
    database = await Database.connect(database_url, limits=SHORT)
    async with database.session(OPERATOR) as connection:
        with pytest.raises(asyncpg.QueryCanceledError):
            await run_together(connection, Statement("BEGIN"), Statement("SELECT pg_sleep($1)::text", (30,)))
        await connection.execute("ROLLBACK")
    await database.close()


async def test_who_waits_no_longer_drops_the_session(database: Database) -> None:
    async with database.session(OPERATOR) as connection:
        waiting = asyncio.ensure_future(run_together(connection, Statement("SELECT pg_sleep($1)::text", (30,))))
        await asyncio.sleep(0.1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    assert await database.fetchval(LOOKUP, "SELECT 1") == 1


async def test_a_session_that_the_server_ends(database: Database, beside: Any) -> None:
    async with database.session(OPERATOR) as connection:
        waiting = asyncio.ensure_future(
            run_together(connection, Statement("BEGIN"), Statement("SELECT pg_sleep($1)::text", (30,)))
        )
        await asyncio.sleep(0.2)
        await beside.execute("SELECT pg_terminate_backend($1)", connection.get_server_pid())
        with pytest.raises(asyncpg.AdminShutdownError):
            await waiting
        with pytest.raises((OSError, asyncpg.InterfaceError, asyncpg.PostgresConnectionError)):
            await run_together(connection, Statement("SELECT $1::int", (1,)))


async def test_a_transaction_that_is_left_open_ends_with_its_session(database_url: str, beside: Any) -> None:
    database = await Database.connect(database_url, max_connections=1)
    async with database.session(OPERATOR) as connection:
        await run_together(connection, TABLE)
        await run_together(connection, Statement("BEGIN"), Statement(WRITE, (1,)))
    async with database.session(OPERATOR) as connection:
        assert await run_together(connection, Statement(NUMBERS, (0,))) == [""]
        await run_together(connection, Statement("BEGIN"), Statement(WRITE, (2,)))
        await connection.execute("COMMIT")
    async with database.session(OPERATOR) as connection:
        assert await run_together(connection, Statement(NUMBERS, (0,))) == ["2"]
    await database.close()


async def test_the_driver_gets_what_the_server_says_of_its_own_accord(session: Any) -> None:
    heard: list[Any] = []

    def hear(*said: Any) -> None:
        heard.append(getattr(said[-1], "message", said[-1]))

    await session.add_listener("told", hear)
    session.add_log_listener(hear)
    await run_together(
        session,
        Statement("NOTIFY told, 'one'"),
        Statement("DO $$ BEGIN RAISE NOTICE 'two'; END $$"),
        Statement("SELECT $1::int", (1,)),
        Statement("SET application_name = 'three'"),
    )
    await session.execute("SELECT 1")
    await session.remove_listener("told", hear)
    session.remove_log_listener(hear)
    assert heard == ["one", "two"]
    assert session.get_settings().application_name == "three"


async def test_one_by_one_behind_pgbouncer_and_on_a_cluster(session: Any) -> None:
    inner = session._con
    assert isinstance(inner, Session)
    assert inner.can_send_together
    for name in ("is_pooled", "is_distributed"):
        setattr(inner, name, True)
        assert not inner.can_send_together
        with pytest.raises(asyncpg.DivisionByZeroError):
            await run_together(session, Statement("SELECT 1 / $1::int", (0,)))
        assert await run_together(session, Statement("BEGIN"), Statement("SELECT $1::text", ("a",))) == ["BEGIN", "a"]
        await commit_with(session, Statement("SELECT $1::text", ("a",)))
        assert not session.is_in_transaction()
        setattr(inner, name, False)


# Of answers that are cut anywhere


class Carrier:
    """A transport that takes what is written, and whose other side the test plays."""

    def __init__(self) -> None:
        self.protocol: Any = Driver()
        self.written = b""

    def get_protocol(self) -> Any:
        return self.protocol

    def set_protocol(self, protocol: Any) -> None:
        self.protocol = protocol

    def write(self, data: bytes) -> None:
        self.written += data


class Driver(asyncio.Protocol):
    def __init__(self) -> None:
        self.heard = b""
        self.is_lost = False

    def data_received(self, data: bytes) -> None:
        self.heard += data

    def connection_lost(self, _: Exception | None) -> None:
        self.is_lost = True


def message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + (len(body) + 4).to_bytes(4, "big") + body


def row(*values: bytes | None) -> bytes:
    columns = [b"\xff\xff\xff\xff" if value is None else len(value).to_bytes(4, "big") + value for value in values]
    return message(b"D", len(values).to_bytes(2, "big") + b"".join(columns))


NOTICE = message(b"N", b"SNOTICE\0C00000\0Mhear, hear\0\0")
READY = {status: message(b"Z", status) for status in (b"I", b"T", b"E")}
REFUSAL = message(b"E", b"SERROR\0VERROR\0C23505\0Mduplicate key\0\0")
BEGUN = message(b"C", b"BEGIN\0") + NOTICE + message(b"C", b"SET\0") + READY[b"T"]
READ = (
    message(b"1")
    + message(b"2")
    + row(b'["\xc3\xb6"]', None)
    + row(b"second")
    + message(b"C", b"SELECT 2\0")
    + READY[b"T"]
)
NOTHING = message(b"2") + row(None) + NOTICE + message(b"C", b"SELECT 1\0") + READY[b"T"]
FAILED = message(b"1") + message(b"2") + REFUSAL + READY[b"E"]
STATEMENTS = [
    Statement("BEGIN"),
    Statement("SELECT $1", (1,)),
    Statement("SELECT $2", (1,)),
    Statement("WRITE $1", (1,)),
]
WHOLE = BEGUN + READ + NOTHING + FAILED + NOTICE


async def exchanged(pieces: Sequence[bytes], *, ends: bool = False) -> tuple[list[Any], Driver, set[str]]:
    carrier, prepared = Carrier(), set[str]()
    driver: Driver = carrier.protocol
    exchange = Exchange(carrier, STATEMENTS, prepared)  # type: ignore[arg-type]
    running = asyncio.ensure_future(exchange.run(None))
    await asyncio.sleep(0)
    for piece in pieces:
        carrier.protocol.data_received(piece)
    if ends:
        carrier.protocol.connection_lost(None)
    await running
    assert carrier.protocol is driver
    return [plain(answer) for answer in exchange.answers], driver, prepared


def plain(answer: Answer) -> Any:
    return type(answer) if isinstance(answer, Exception) else answer


EXPECTED = ["SET", '["ö"]', None, asyncpg.UniqueViolationError]


async def test_answers_may_be_cut_at_every_byte() -> None:
    for at in range(len(WHOLE) + 1):
        answers, driver, prepared = await exchanged([WHOLE[:at], WHOLE[at:]])
        assert answers == EXPECTED, at
        assert driver.heard == NOTICE * 3
        assert prepared == {"SELECT $1", "WRITE $1"}


async def test_answers_may_come_byte_by_byte_and_in_any_pieces() -> None:
    chance = random.Random(1)
    assert (await exchanged([bytes([each]) for each in WHOLE]))[0] == EXPECTED
    for _ in range(300):
        cuts = sorted(chance.choices(range(len(WHOLE)), k=chance.randrange(12)))
        pieces = [WHOLE[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(WHOLE)], strict=True)]
        assert (await exchanged(pieces))[0] == EXPECTED, cuts


async def test_a_connection_may_end_at_every_byte() -> None:
    """What was answered before counts, the server's last words count for the statement under way, and the rest is not answered."""
    ends = [len(BEGUN), len(BEGUN + READ), len(BEGUN + READ + NOTHING), len(BEGUN + READ + NOTHING + FAILED)]
    said = len(BEGUN + READ + NOTHING + message(b"1") + message(b"2") + REFUSAL)
    for at in range(ends[-1]):
        answers, driver, _ = await exchanged([WHOLE[:at]], ends=True)
        answered = sum(end <= at for end in ends) + (at >= said)
        assert answers == [*EXPECTED[:answered], *[Unanswered] * (4 - answered)], at
        assert driver.is_lost


def test_messages_are_those_of_the_protocol() -> None:
    assert message_of(Statement("BEGIN; SET x = 1"), set()) == b"Q\0\0\0\x15BEGIN; SET x = 1\0"
    known = {"SELECT $1, $2"}
    sent = message_of(Statement("SELECT $1, $2", ("ö", None)), known)
    name = sent[6 : sent.index(b"\0", 6)]
    assert name.startswith(b"largesse_")
    body = b"\0" + name + b"\0\0\0\0\x02\0\0\0\x02\xc3\xb6\xff\xff\xff\xff\0\0"
    assert sent == message(b"B", body) + message(b"E", b"\0\0\0\0\0") + message(b"S")
    first = message_of(Statement("SELECT $1, $2", ("ö", None)), set())
    assert first == message(b"P", name + b"\0SELECT $1, $2\0\0\0") + sent
    assert text_of([1, 'a"b\\']) == '{"1","a\\"b\\\\"}'
