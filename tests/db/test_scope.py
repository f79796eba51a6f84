"""Every transaction says for whom it acts: without that none begins, and the connection keeps it as long as it is lent."""

import ast
import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncpg
import pytest
from tests import parsed
from tests.closing import closing
from tests.distributed import IS_DISTRIBUTED

from largesse.budgets.store import _USER_NAMES
from largesse.db.pool import Connection, Database, Row, act_for, connect_once, scope_of
from largesse.db.roles import Role
from largesse.db.scope import LOOKUP, OFFICE, OPERATOR, WORKER, Actor, Scope, for_customer, for_customers, for_lists
from largesse.orders.reading import BEGIN

# What the database was told.
TOLD = """
    SELECT nullif(current_setting('largesse.customers'), 'no scope was said'),
           nullif(current_setting('largesse.environments'), 'no scope was said')
"""
SOURCES = Path(__file__).parents[2] / "src/largesse"
# What takes a connection, and which of its arguments, from 0, says for whom.
_OF_DATABASE = {"at_once", "connection", "session", "transaction", "fetch", "fetchrow", "fetchval", "execute"}
_SAID = {
    "LOOKUP",
    "OFFICE",
    "OPERATOR",
    "WORKER",
    "for_customer",
    "for_customers",
    "for_lists",
    "list_scope",
    "scope",
    "scope_of_orders",
}
# What opens a connection of its own: those of the pool, and what has no scope, as migrations and the check at start.
_OPENS = {"connect", "create_pool", "acquire", "dial"}
_TAKES = re.compile(rf"\b({'|'.join({'connect_once', *_OF_DATABASE, *_OPENS})})\s*\(")


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    database = await Database.connect(database_url, max_connections=1)
    yield database
    await database.close()


async def test_no_transaction_begins_without_a_scope(database: Database) -> None:
    for begin in (database.transaction, database.connection):
        with pytest.raises(TypeError, match="scope"):
            begin()  # type: ignore[call-arg]
        for other in ("SELECT 1", None):
            with pytest.raises(TypeError, match="needs a Scope"):
                async with begin(other):  # type: ignore[arg-type]
                    raise AssertionError("it has begun")
    with pytest.raises(TypeError, match="needs a Scope"):
        await database.execute("CREATE TABLE never AS SELECT $1", "x")  # type: ignore[arg-type]
    # The only connection there is was given back each time.
    assert await database.fetchval(OPERATOR, "SELECT to_regclass('never')") is None


async def test_a_connection_keeps_its_scope_as_long_as_it_is_lent(database: Database, database_url: str) -> None:
    acme = for_customer(7, "staging")
    async with database.transaction(acme) as connection:
        assert scope_of(connection) == acme
        async with connection.transaction():
            assert scope_of(connection) == acme
    async with database.connection(WORKER) as connection:
        assert scope_of(connection) is WORKER
        session = connection._con  # type: ignore[attr-defined]
    with pytest.raises(LookupError):
        scope_of(session)
    async with connect_once(database_url, OPERATOR) as connection:
        assert scope_of(connection) is OPERATOR


async def test_a_look_up_goes_on_for_whom_it_has_found(database: Database) -> None:
    acme, other = for_customer(7, "staging"), for_customer(8, "staging")
    async with database.transaction(LOOKUP) as connection:
        assert await connection.fetchrow(TOLD) == (None, None)
        await act_for(connection, acme)
        assert scope_of(connection) == acme
        assert await connection.fetchrow(TOLD) == ("{7}", "{staging}")
        with pytest.raises(RuntimeError):
            await act_for(connection, other)
        await act_for(connection, for_customers([(7, "staging"), (7, "production")]))
        assert await connection.fetchrow(TOLD) == ("{7}", "{production,staging}")
    async with database.connection(LOOKUP) as connection:  # a single statement each: nothing to be told
        await act_for(connection, acme)
        assert await connection.fetchrow(TOLD) == (None, None)
    async with database.transaction(WORKER) as connection:
        with pytest.raises(RuntimeError):
            await act_for(connection, acme)


async def test_the_database_is_told_with_begin_and_for_the_transaction_alone(database: Database) -> None:
    sent: list[str] = []
    both = for_customers([(7, "staging"), (12, "staging"), (7, "production")])
    async with database.session(both) as connection:
        with connection.query_logger(lambda record: sent.append(record.query)):
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                assert await connection.fetchrow(TOLD) == ("{7,12}", "{production,staging}")
                async with connection.transaction():
                    assert await connection.fetchrow(TOLD) == ("{7,12}", "{production,staging}")
        assert await connection.fetchrow(TOLD) == (None, None)
    # As the placer begins.
    async with database.session(for_customer(7, "staging")) as connection:
        await connection.execute(BEGIN)
        assert await connection.fetchrow(TOLD) == ("{7}", "{staging}")
        assert await connection.fetchval("SELECT current_setting('plan_cache_mode')") == "force_generic_plan"
        await connection.execute("ROLLBACK")
    for scope in (LOOKUP, WORKER, OPERATOR):
        async with database.transaction(scope) as connection:
            assert await connection.fetchrow(TOLD) == (None, None)
    assert [query.partition(";")[0] for query in sent if "SELECT" not in query and "SAVEPOINT" not in query] == [
        "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        "COMMIT",
    ]


async def test_what_lists_ask_is_planned_for_their_customer_and_nothing_else_is(database_url: str) -> None:
    for role, scope, planned in (
        (Role.APP, for_lists(7, "staging"), "force_custom_plan"),
        (Role.APP, for_customer(7, "staging"), "auto"),
        (Role.APP, LOOKUP, "auto"),
        (Role.WORKER, WORKER, "auto"),
        (Role.OFFICE, OFFICE, "force_custom_plan"),
    ):
        async with closing(Database.connect(database_url, role=role)) as database:
            assert await database.fetchval(scope, "SELECT current_setting('plan_cache_mode')") == planned


@pytest.mark.skipif(IS_DISTRIBUTED, reason="the coordinator's statistics are other ones")
async def test_what_pages_ask_again_and_again_reads_the_named_rows(database_url: str) -> None:
    """Among many customers with one person each, the names of 50 people of a large one took a read of all 3,000, from the sixth time on."""
    async with closing(asyncpg.connect(database_url)) as connection:
        await connection.execute(
            """
            SET session_replication_role = replica;
            INSERT INTO users (id, customer_id, email, name, role) OVERRIDING SYSTEM VALUE
            SELECT n, CASE WHEN n < 5000 THEN 7 ELSE n END, n || '@many.example', 'P', 'member' FROM generate_series(2000, 9000) AS n;
            ANALYZE users
            """
        )
    read: list[int] = []
    async with closing(Database.connect(database_url, role=Role.APP, max_connections=1)) as database:
        for _ in range(8):
            async with database.connection(for_lists(7, "staging")) as connection:
                before = await connection.fetchval(_USERS_READ)
                assert len(await connection.fetch(_USER_NAMES, 7, list(range(3000, 3050)))) == 50
                read.append(await connection.fetchval(_USERS_READ) - before)
    assert read == [50] * 8


_USERS_READ = "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'users'"


async def test_what_is_asked_for_customers_is_one_transaction_that_tells_so(database: Database) -> None:
    sent: list[str] = []
    acme = for_customer(7, "staging")
    async with database.session(OPERATOR) as connection:
        connection.add_query_logger(lambda record: sent.append(record.query))
    assert await database.fetchrow(acme, TOLD) == ("{7}", "{staging}")
    async with database.connection(acme) as connection:
        assert await connection.fetchrow(TOLD) == ("{7}", "{staging}")
        assert await connection.fetchrow(TOLD) == ("{7}", "{staging}")
    with pytest.raises(ZeroDivisionError):  # noqa: PT012 - it is to be undone
        async with database.connection(acme) as connection:
            await connection.execute("CREATE TABLE undone ()")
            raise ZeroDivisionError
    assert await database.fetchval(OPERATOR, "SELECT to_regclass('undone')") is None
    begin = "BEGIN; SET LOCAL largesse.customers = '{7}'; SET LOCAL largesse.environments = '{staging}';"
    assert sent[:7] == [begin, TOLD, "COMMIT;", begin, TOLD, TOLD, "COMMIT;"]
    assert sent[7:10] == [begin, "CREATE TABLE undone ()", "ROLLBACK;"]


async def test_reads_go_on_beside_each_other_in_the_same_scope(database: Database, database_url: str) -> None:
    acme, second = for_customer(7, "staging"), asyncio.Event()

    async def wait(connection: Connection) -> Row | None:
        await asyncio.wait_for(second.wait(), 10)
        return await connection.fetchrow(TOLD)

    async def go(connection: Connection) -> Row | None:
        second.set()
        return await connection.fetchrow(TOLD)

    async with closing(Database.connect(database_url, max_connections=2)) as of_two:
        assert await of_two.at_once(acme, wait, go) == [("{7}", "{staging}")] * 2
    # Where there is one connection alone, one comes after the other.
    assert await database.at_once(acme, go, go, wait) == [("{7}", "{staging}")] * 3


async def test_a_read_that_fails_ends_those_beside_it(database: Database) -> None:
    async def sleep(connection: Connection) -> None:
        await connection.execute("SELECT pg_sleep(60)")

    async def fail(connection: Connection) -> None:
        await connection.execute("SELECT 1 / 0")

    with pytest.raises(asyncpg.DivisionByZeroError):
        await asyncio.wait_for(database.at_once(WORKER, fail, sleep), 10)
    assert await database.fetchval(WORKER, "SELECT 1") == 1  # its connection was given back


def test_an_environment_is_no_place_for_sql() -> None:
    with pytest.raises(ValueError, match="only letters"):
        for_customer(7, "staging'; DROP TABLE orders; --")


def test_only_customers_are_acted_for_by_name() -> None:
    assert for_customers([(7, "staging"), (8, "staging"), (7, "staging")]).customers == {(7, "staging"), (8, "staging")}
    for actor, customers in ((Actor.CUSTOMERS, frozenset()), (Actor.WORKER, frozenset({(7, "staging")}))):
        with pytest.raises(ValueError, match="customers act"):
            Scope(actor, customers)


def unsaid(source: str) -> Iterator[str]:
    """The calls of a module that take a connection and do not say for whom."""
    for node in parsed.nodes(source) if _TAKES.search(source) else ():
        if not isinstance(node, ast.Call):
            continue
        name = last_name(node.func)
        if name == "connect_once":
            told = [*node.args[1:2], *(keyword.value for keyword in node.keywords if keyword.arg == "scope")]
        elif name in _OF_DATABASE and isinstance(node.func, ast.Attribute) and is_database(node.func.value):
            told = [*node.args[:1], *(keyword.value for keyword in node.keywords if keyword.arg == "scope")]
        elif name in _OPENS and isinstance(node.func, ast.Attribute) and is_driver(node.func.value):
            told = []
        else:
            continue
        if not told or last_name(told[0]) not in _SAID:
            yield f"{node.lineno}: {ast.unparse(node)[:80]}"


def last_name(node: ast.expr) -> str:
    """`c` of `c`, `a.b.c` and `a.b.c()`."""
    if isinstance(node, ast.Call):
        return last_name(node.func)
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def is_database(node: ast.expr) -> bool:
    return last_name(node).endswith("database")


def is_driver(node: ast.expr) -> bool:
    return last_name(node).endswith(("asyncpg", "pool", "dialer"))


def test_every_room_says_for_whom_it_acts() -> None:
    found = {
        str(path.relative_to(SOURCES)): told
        for path in SOURCES.rglob("*.py")
        if not path.is_relative_to(SOURCES / "db") and (told := list(unsaid(path.read_text())))
    }
    assert found == {}, "name the scope first: of a customer, or one of db/scope.py"


@pytest.mark.parametrize(
    "code",
    [
        "services.database.transaction()",
        "self._database.connection(principal)",
        "visit.database.at_once(read, other)",
        "database.fetch('SELECT 1')",
        "database.execute(query, scope)",
        "connect_once(url)",
        "connect_once(url, limits=COMMANDS)",
        "asyncpg.connect(url)",
        "self._pool.acquire()",
    ],
)
def test_a_connection_taken_without_a_scope_is_found(code: str) -> None:
    assert len(list(unsaid(code))) == 1


@pytest.mark.parametrize(
    "code",
    [
        "services.database.transaction(call.principal.scope)",
        "self._database.connection(for_customers(pairs))",
        "database.fetch(LOOKUP, 'SELECT 1')",
        "connect_once(url, OPERATOR)",
        "connection.transaction()",
        "turns.acquire()",
    ],
)
def test_one_taken_with_a_scope_is_left_alone(code: str) -> None:
    assert list(unsaid(code)) == []
