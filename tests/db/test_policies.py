"""Row-level security: for every table of customers' data, under the role that serves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, TypeAlias

import asyncpg
import pytest
from tests.background import run
from tests.closing import closing
from tests.distributed import IS_DISTRIBUTED, execute_each

from largesse.db import migrate, sharding
from largesse.db.grants import policies_missing
from largesse.db.office_rights import OF_STAFF
from largesse.db.policies import TABLES
from largesse.db.pool import Database
from largesse.db.rights import TABLES as ALL_TABLES
from largesse.db.roles import Role
from largesse.db.scope import LOOKUP, OPERATOR, Scope, for_customer, for_customers

Session: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
OWN, OTHER = 1, 2
ACME = for_customer(OWN, "staging")
# Tables whose rows are told apart by environment, too.
BY_ENVIRONMENT = {table for table, rows in TABLES.items() if "environment" in rows.seen}
# Tables whose rows a coordinator gives to no other customer, whoever asks: a row stays where its customer is, and customers are numbered for good.
AT_HOME = {*sharding.DISTRIBUTED, "customers"} if IS_DISTRIBUTED else set()
# Of every type that a column has, by its category, something that a column takes.
VALUES = {"N": "1", "D": "now()", "T": "'1 day'", "B": "true", "I": "'192.0.2.1'", "A": "'{}'"}


@pytest.fixture(scope="module")
def filled(module_database_url: str) -> str:
    """A database in which customers 1 and 2 have a row of each environment in every table, whatever else would be refused of these."""
    run(fill(module_database_url))
    return module_database_url


async def fill(url: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute("SET session_replication_role = replica")  # no triggers, no foreign keys
    statements = await connection.fetch(
        "SELECT format('ALTER TABLE %s DROP CONSTRAINT IF EXISTS %I CASCADE', conrelid::regclass, conname)"
        " FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND contype IN ('c', 'f', 'p', 'u') AND conparentid = 0"
        " UNION ALL SELECT format('DROP INDEX IF EXISTS %s', indexrelid::regclass) FROM pg_index"
        " WHERE indisunique AND indrelid::regclass::text = ANY($1::text[])"
        " UNION ALL SELECT format('ALTER TABLE %s DISABLE TRIGGER USER', unnest($1::text[]))"
        " UNION ALL SELECT 'ALTER TABLE customers ALTER id DROP IDENTITY' WHERE NOT $2",
        list(TABLES),
        IS_DISTRIBUTED,
    )
    await execute_each(connection, ";".join(statement for (statement,) in statements))
    # Whatever the role may do otherwise: here it is row-level security alone that holds.
    await connection.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {Role.APP}")
    for table in TABLES:
        for customer in (OWN, OTHER):
            for environment in ("staging", "production"):
                await connection.execute(await insertion(connection, table, customer, environment))
    await connection.close()


async def insertion(connection: Session, table: str, customer: int, environment: str) -> str:
    """A statement that gives a customer a row: every column that must have a value gets one."""
    columns = await connection.fetch(
        "SELECT attname, atttypid::regtype::text AS type, typcategory, attidentity <> '' AS drawn,"
        " (SELECT min(enumlabel) FROM pg_enum WHERE enumtypid = atttypid) AS label"
        " FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid"
        " WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped AND (attnotnull OR attname = 'customer_id')",
        table,
    )
    key = "id" if table == "customers" else "customer_id"
    row: dict[str, str] = {}
    for name, type_, category, _, label in columns:
        value = "'{}'" if type_ in {"json", "jsonb"} else VALUES.get(category.decode(), "''")
        value = f"'{label}'" if label else "gen_random_uuid()" if type_ == "uuid" else value
        row[name] = {key: str(customer), "environment": f"'{environment}'"}.get(name, value)
    return f"INSERT INTO {table} ({', '.join(row)}) OVERRIDING SYSTEM VALUE VALUES ({', '.join(row.values())})"


@pytest.fixture
async def app(filled: str) -> AsyncIterator[Database]:
    database = await Database.connect(filled, role=Role.APP, max_connections=1)
    yield database
    await database.close()


async def tried(database: Database, scope: Scope, statement: str) -> list[asyncpg.Record]:
    """What a statement returns; what it has done is undone."""
    rows: list[asyncpg.Record] = []

    with pytest.raises(ZeroDivisionError):  # noqa: PT012 - it is to be undone
        async with database.transaction(scope) as connection:
            rows.extend(await connection.fetch(statement))
            raise ZeroDivisionError
    return rows


def key_of(table: str) -> str:
    return "id" if table == "customers" else "customer_id"


def some_column_of(table: str) -> str:
    """One that may be set, to what it is."""
    return "name" if table == "customers" else "customer_id"


@pytest.mark.parametrize("table", TABLES)
async def test_customers_have_their_own_rows_and_no_others(app: Database, table: str) -> None:
    key = key_of(table)
    told = f"{key}, environment" if table in BY_ENVIRONMENT else f"{key}, 'staging'"
    expected = [(OWN, "staging")] * (1 if table in BY_ENVIRONMENT else 2)
    own = f"{key} IS NOT NULL"
    assert await tried(app, ACME, f"SELECT {told} FROM {table} WHERE {own}") == expected
    lockable = f"{key} = {OWN}" if IS_DISTRIBUTED else own  # a coordinator locks rows of one customer at a time
    assert await tried(app, ACME, f"SELECT {told} FROM {table} WHERE {lockable} FOR UPDATE") == expected
    some = some_column_of(table)
    for change in (f"UPDATE {table} SET {some} = {some} WHERE {own}", f"DELETE FROM {table} WHERE {own}"):
        assert await tried(app, ACME, f"{change} RETURNING {told}") == expected
    assert await tried(app, for_customer(3, "staging"), f"SELECT {told} FROM {table} WHERE {own}") == []


@pytest.mark.parametrize("table", TABLES)
async def test_no_row_is_written_for_another_customer(app: Database, table: str) -> None:
    async with app.connection(OPERATOR) as connection:
        foreign = [await insertion(connection, table, OTHER, "staging")]
        if table in BY_ENVIRONMENT:
            foreign.append(await insertion(connection, table, OWN, "production"))
        own = await insertion(connection, table, OWN, "staging")
    key = key_of(table)
    if table not in AT_HOME:
        foreign.append(f"UPDATE {table} SET {key} = {OTHER} WHERE {key} = {OWN}")
    if "NULL" in TABLES[table].seen:  # a row of nobody's cannot be made, nor one's own given away
        foreign.append(f"UPDATE {table} SET {key} = NULL WHERE {key} = {OWN}")
    for statement in foreign:
        with pytest.raises(asyncpg.InsufficientPrivilegeError, match="violates row-level security policy"):
            await tried(app, ACME, statement)
    assert await tried(app, ACME, own) == []


@pytest.mark.parametrize("table", TABLES)
async def test_a_scope_that_was_never_said_is_an_error(app: Database, table: str) -> None:
    for statement in (
        f"SELECT FROM {table}",
        f"UPDATE {table} SET {some_column_of(table)} = {some_column_of(table)}",
        f"DELETE FROM {table}",
    ):
        for scope in (LOOKUP, OPERATOR):
            with pytest.raises(asyncpg.InvalidTextRepresentationError, match='"no scope was said"'):
                await tried(app, scope, statement)
    await tried(app, ACME, f"SELECT FROM {table}")
    with pytest.raises(asyncpg.InvalidTextRepresentationError):  # what was said is over with the transaction
        await app.fetch(LOOKUP, f"SELECT FROM {table}")


async def test_several_customers_of_a_batch_have_what_any_of_them_has(app: Database) -> None:
    """Customers are told apart exactly; their environments are those of the whole batch."""
    both = for_customers([(OWN, "staging"), (OTHER, "production")])
    rows = await app.fetch(both, "SELECT customer_id, environment FROM orders ORDER BY 1, 2")
    assert rows == [(OWN, "production"), (OWN, "staging"), (OTHER, "production"), (OTHER, "staging")]


@pytest.mark.parametrize("role", [Role.OWNER, Role.WORKER, Role.OPERATOR, Role.READ])
async def test_who_acts_across_customers_has_all_rows(filled: str, role: Role) -> None:
    connection = await asyncpg.connect(filled)
    await connection.execute(f"SET ROLE {role}")
    for table in TABLES.keys() - (OF_STAFF if role is Role.READ else ()):
        assert await connection.fetchval(f"SELECT count(DISTINCT {key_of(table)}) FROM {table}") == 2
    await connection.close()


async def test_every_table_of_customers_data_is_declared(module_database_url: str) -> None:
    connection = await asyncpg.connect(module_database_url)
    found = await connection.fetch(
        "SELECT table_name FROM information_schema.columns WHERE table_schema = 'public' AND column_name = 'customer_id'"
    )
    await connection.close()
    assert {table for (table,) in found} | {"customers"} == set(TABLES), (
        "say in db/policies.py who sees the rows of a new table"
    )
    assert set(TABLES) <= set(ALL_TABLES)


async def test_what_was_changed_by_hand_is_put_right(database_url: str) -> None:
    connection = await asyncpg.connect(database_url)
    assert await policies_missing(connection) == []
    await execute_each(
        connection,
        f"""
        ALTER TABLE orders DISABLE ROW LEVEL SECURITY; ALTER TABLE products ENABLE ROW LEVEL SECURITY;
        CREATE POLICY more ON entries TO {Role.APP} USING (true); DROP POLICY own_rows ON accounts;
        ALTER POLICY own_rows ON events USING (true); CREATE POLICY fewer ON users AS RESTRICTIVE USING (false);
        ALTER TABLE lines {"FORCE" if IS_DISTRIBUTED else "NO FORCE"} ROW LEVEL SECURITY
        """,
    )
    said = [statement.split(" USING")[0] for statement in await policies_missing(connection)]
    assert said == [
        f"CREATE POLICY own_rows ON accounts TO {Role.APP}",
        f"DROP POLICY own_rows ON events; CREATE POLICY own_rows ON events TO {Role.APP}",
        f"ALTER TABLE lines {'NO FORCE' if IS_DISTRIBUTED else 'FORCE'} ROW LEVEL SECURITY",
        "ALTER TABLE orders ENABLE ROW LEVEL SECURITY",
        "ALTER TABLE products DISABLE ROW LEVEL SECURITY",
        "DROP POLICY more ON entries",
        "DROP POLICY fewer ON users",
    ]
    assert (await migrate.upgrade(database_url)).refused == []
    assert await policies_missing(connection) == []
    await connection.close()


async def test_behind_pgbouncer_each_transaction_takes_the_role(filled: str) -> None:
    """Of sessions that are nobody's for long: the address says that it is PgBouncer's."""
    async with closing(
        Database.connect(f"{filled}{'&' if '?' in filled else '?'}pgbouncer=true", role=Role.APP)
    ) as pooled:
        who: list[Any] = [await pooled.fetchval(scope, "SELECT current_user") for scope in (ACME, LOOKUP, ACME)]
        assert [who[0], who[2]] == [Role.APP, Role.APP] != [who[1]] * 2
        async with pooled.transaction(LOOKUP) as connection:
            assert await connection.fetchval("SELECT current_user") == Role.APP
        assert await pooled.fetch(ACME, "SELECT DISTINCT customer_id FROM lines") == [(OWN,)]
