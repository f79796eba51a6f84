"""Roles and their rights: as they are declared, made by any number of migrations at once, and no more than that."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeAlias
from urllib.parse import urlsplit

import asyncpg
import pytest
from tests.closing import closing
from tests.distributed import IS_DISTRIBUTED, execute_each

from largesse.base.errors import OperatorError
from largesse.db import migrate
from largesse.db.grants import differences
from largesse.db.office_rights import HIDDEN_OF_OFFICE, OF_STAFF, SHOWN_TO_OFFICE
from largesse.db.pool import Database, connect_once
from largesse.db.rights import HIDDEN, SHOWN, TABLES
from largesse.db.roles import Role
from largesse.db.scope import OPERATOR, for_customer
from largesse.encryption.columns import sealed_tables

Session: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
# Tables whose rows stay as they were written, whoever else writes.
KEY_CHANGES = [
    f"{change} {table} {rest}"
    for table in ("chain_keys", "master_keys")
    for change, rest in (("UPDATE", "SET sealed = sealed"), ("INSERT INTO", "DEFAULT VALUES"), ("DELETE FROM", ""))
]
APPEND_ONLY = ("entries", "audit_events", "code_readings", "order_acts", "line_events", "orders")


@asynccontextmanager
async def acting(url: str, role: Role) -> AsyncIterator[Session]:
    """A session that acts as a role; what it has done is undone."""
    async with closing(asyncpg.connect(url)) as connection:
        await connection.execute(
            f"SET ROLE {role}; SET largesse.customers = '{{}}'; SET largesse.environments = '{{}}'"
        )
        yield connection


async def test_a_migrated_database_grants_just_that_and_is_the_owners(module_database_url: str) -> None:
    async with connect_once(module_database_url, OPERATOR) as connection:
        found = await differences(connection)
        owners = await connection.fetch(
            "SELECT DISTINCT relowner::regrole::text FROM pg_class WHERE relnamespace = 'public'::regnamespace"
            " AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = pg_class.oid AND deptype = 'e')"  # an extension's
        )
        roles = await connection.fetch(
            "SELECT rolname FROM pg_roles WHERE rolname = ANY($1::text[]) AND (rolsuper OR rolcreaterole OR rolcreatedb)",
            list(Role),
        )
    assert (found.missing, found.extra, roles) == ((), (), [])
    assert [owner for (owner,) in owners] == [Role.OWNER]


async def test_rights_that_were_changed_are_put_right_and_those_of_others_left(database_url: str) -> None:
    connection = await asyncpg.connect(database_url)
    await execute_each(
        connection,
        f"""
        GRANT DELETE ON entries TO {Role.APP}; GRANT UPDATE (total_minor) ON orders TO {Role.WORKER};
        GRANT SELECT ON customers TO PUBLIC; GRANT EXECUTE ON FUNCTION refuse_change() TO PUBLIC;
        REVOKE INSERT ON orders FROM {Role.APP}; GRANT SELECT ON products TO pg_monitor
        """,
    )
    found = await differences(connection)
    assert [right.revoke for right in found.extra] == [
        "REVOKE EXECUTE ON FUNCTION refuse_change() FROM PUBLIC",
        "REVOKE SELECT ON TABLE customers FROM PUBLIC",
        f"REVOKE DELETE ON TABLE entries FROM {Role.APP}",
        f"REVOKE UPDATE (total_minor) ON TABLE orders FROM {Role.WORKER}",
    ]
    assert [right.grant for right in found.missing] == [f"GRANT INSERT ON TABLE orders TO {Role.APP}"]

    done = await migrate.upgrade(database_url)

    found = await differences(connection)
    assert (found.missing, found.extra, done.refused) == ((), (), [])
    assert await connection.fetchval("SELECT has_table_privilege('pg_monitor', 'products', 'SELECT')")
    await connection.close()


@pytest.mark.parametrize("role", [Role.APP, Role.WORKER, Role.OFFICE, Role.OPERATOR, Role.READ])
async def test_no_role_changes_what_only_grows_or_what_guards_it(module_database_url: str, role: Role) -> None:
    statements = [
        *(f"DELETE FROM {table}" for table in APPEND_ONLY),
        *(f"TRUNCATE {table}" for table in TABLES if "TRUNCATE" not in TABLES[table].of(role)),
        *(f"ALTER TABLE {table} DISABLE TRIGGER ALL" for table in APPEND_ONLY),
        "UPDATE entries SET amount_minor = 1",
        "UPDATE code_readings SET order_id = 1",
        "UPDATE audit_events SET act = 'x'",
        "UPDATE line_events SET at = now()",
        "UPDATE orders SET total_minor = 1",
        "UPDATE lines SET number = 2",
        "UPDATE lines SET order_id = 2",
        # The keys that everything is encrypted and chained with are added and changed by commands alone.
        *(() if role is Role.OPERATOR else KEY_CHANGES),
        # Who placed an order may correct a recipient's address, an operator erase it, and the worker in time.
        *(() if role is not Role.READ else ("UPDATE lines SET recipient_email = ''",)),
        "UPDATE clock SET ahead_by = '1 day'",
        "DROP TRIGGER entries_append_only ON entries",
        "DROP TABLE entries",
        "CREATE TABLE public.mine ()",
        "SELECT setval('orders_id_seq', 1)",
        "SET session_replication_role = replica",
        f"ALTER ROLE {role} CREATEROLE",
        "COPY entries FROM PROGRAM 'true'",
        "COPY entries TO PROGRAM 'true'",
        "COPY entries TO '/dev/null'",
        "SELECT pg_read_file('PG_VERSION')",
        "CREATE FUNCTION public.mine() RETURNS int LANGUAGE c AS 'mine'",
    ]
    async with acting(module_database_url, role) as connection:
        for statement in statements:
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute(statement)
        owned = await connection.fetchval(
            """
            SELECT (SELECT count(*) FROM pg_class WHERE relowner = current_user::regrole)
                 + (SELECT count(*) FROM pg_proc WHERE proowner = current_user::regrole)
                 + (SELECT count(*) FROM pg_auth_members WHERE member = current_user::regrole)
            """
        )
    assert owned == 0


def test_who_rotates_keys_may_write_every_encrypted_column() -> None:
    lacking = [
        f"{sealed.table}.{sealed.column}"
        for sealed in sealed_tables()
        if not {"UPDATE", f"UPDATE({sealed.column})"} & set(TABLES[sealed.table].of(Role.OPERATOR))
    ]
    assert not lacking, "in db/rights.py, let `operator` update these encrypted columns"


async def test_reading_changes_nothing(module_database_url: str) -> None:
    async with acting(module_database_url, Role.READ) as connection:
        for table in TABLES:
            if table not in OF_STAFF:
                await connection.fetch(f"SELECT FROM {table} LIMIT 1")
            for right in ("INSERT", "UPDATE", "DELETE"):
                granted = "has_table_privilege(current_user, $1, $2)"
                columns = "coalesce($2 <> 'DELETE' AND has_any_column_privilege(current_user, $1, nullif($2, 'DELETE')), false)"
                assert not await connection.fetchval(f"SELECT {granted} OR {columns}", table, right)


READERS = [Role.APP, Role.WORKER, Role.READ]


@pytest.mark.parametrize("role", READERS)
@pytest.mark.parametrize(
    "statement",
    [
        "SELECT password FROM people",
        "SELECT totp FROM people",
        "SELECT * FROM people",
        "SELECT p FROM people p",
        "SELECT FROM people WHERE password LIKE '$argon2id$%'",
        "UPDATE people SET zone = password",
        "UPDATE people SET language = 'de' RETURNING password",
        "COPY people (password) TO STDOUT",
    ],
)
async def test_what_is_kept_of_passwords_and_second_steps_is_hidden(
    module_database_url: str, role: Role, statement: str
) -> None:
    async with acting(module_database_url, role) as connection:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute(statement)
        await connection.fetch("SELECT has_password, has_app FROM people")


async def test_each_column_of_a_table_in_part_hidden_is_declared(module_database_url: str) -> None:
    async with closing(asyncpg.connect(module_database_url)) as connection:
        hidden, shown = {**HIDDEN, **HIDDEN_OF_OFFICE}, {**SHOWN, **SHOWN_TO_OFFICE}
        for table in {*hidden, *shown}:
            columns = await connection.fetch(
                "SELECT attname FROM pg_attribute WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped",
                table,
            )
            assert sorted(row["attname"] for row in columns) == sorted((*hidden[table], *shown[table]))


async def test_a_session_acts_as_its_role_from_the_start(module_database_url: str) -> None:
    async with closing(Database.connect(module_database_url, role=Role.APP)) as database:
        assert await database.fetchval(OPERATOR, "SELECT current_user") == Role.APP
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await database.execute(for_customer(1, "staging"), "DELETE FROM entries")


@pytest.fixture
async def admin(database_url: str) -> AsyncIterator[Session]:
    """A connection to an empty database, as who may make roles."""
    if IS_DISTRIBUTED:
        pytest.skip("the engine's extension is not to be dropped with the schema")
    connection = await asyncpg.connect(database_url)
    await connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    yield connection
    await connection.close()


@pytest.fixture
async def login(admin: Session, database_url: str) -> AsyncIterator[str]:
    """The address of somebody who may log in and do nothing else; the name is the password too."""
    name = f"test_rights_{secrets.token_hex(4)}"
    await admin.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{name}'")
    parts = urlsplit(database_url)
    hosts = parts.netloc.rpartition("@")[2]
    yield database_url.replace(f"//{parts.netloc}/", f"//{name}:{name}@{hosts}/", 1)
    await admin.execute(f"DROP OWNED BY {name} CASCADE; DROP ROLE {name}")


@pytest.mark.slow
async def test_who_may_make_no_roles_migrates_all_the_same_and_tells_what_is_missing(
    admin: Session, login: str
) -> None:
    name = urlsplit(login).username
    await admin.execute(f"GRANT CREATE, USAGE ON SCHEMA public TO {name}")
    told = await migrate.roles_to_make(login)
    assert told[0] == f"GRANT {Role.OWNER} TO {name}"
    assert await admin.fetchval("SELECT to_regclass('alembic_version')") is None, "it changes nothing"

    first = await migrate.upgrade(login)
    assert f"GRANT {Role.OWNER} TO {name}" in first.refused
    assert await owners(admin) == {name}
    assert await acts(login, Role.APP) == name  # as before there were roles

    for statement in first.refused:
        await admin.execute(statement)
    second = await migrate.upgrade(login)
    assert second.refused == []
    assert await owners(admin) == {Role.OWNER}
    found = await differences(admin)
    assert (found.missing, found.extra) == ((), ())
    assert await acts(login, Role.APP) == Role.APP


async def test_the_sql_for_an_administrator_is_all_it_takes(admin: Session, login: str) -> None:
    for statement in await migrate.roles_to_make(login):
        await admin.execute(statement)
    done = await migrate.upgrade(login)
    assert done.refused == []
    assert await owners(admin) == {Role.OWNER}


@pytest.mark.slow
async def test_who_owned_the_schema_before_goes_on(admin: Session, database_url: str, login: str) -> None:
    name = urlsplit(login).username
    await admin.execute(f"GRANT CREATE, USAGE ON SCHEMA public TO {name}")
    await migrate.upgrade(login)
    assert await owners(admin) == {name}
    serving = await asyncpg.connect(login)

    await migrate.upgrade(database_url)  # by the administrator

    assert await owners(admin) == {Role.OWNER}
    assert await serving.fetchval("SELECT count(*) FROM orders") == 0
    await serving.close()
    assert await acts(login, Role.APP) == Role.APP


async def test_who_may_not_act_as_a_role_is_told_whose_address_it_takes(
    admin: Session, database_url: str, login: str
) -> None:
    await migrate.upgrade(database_url)
    await admin.execute(f"GRANT {Role.APP} TO {urlsplit(login).username}")
    assert await acts(login, Role.APP) == Role.APP
    with pytest.raises(OperatorError, match=r"may not act as largesse_operator.*LARGESSE_OWNER_DATABASE_URL"):
        await acts(login, Role.OPERATOR)
    with pytest.raises(OperatorError, match="largesse_worker"):
        async with connect_once(login, OPERATOR, role=Role.WORKER):
            pass


async def acts(url: str, role: Role) -> str:
    """As whom a process that is to act as `role` acts in the end."""
    async with closing(Database.connect(url, role=role)) as database:
        name: str = await database.fetchval(OPERATOR, "SELECT current_user::text")
        return name


async def owners(connection: Session) -> set[str]:
    """Who owns what there is."""
    rows = await connection.fetch(
        """
        SELECT relowner::regrole::text FROM pg_class WHERE relnamespace = 'public'::regnamespace
        UNION SELECT proowner::regrole::text FROM pg_proc WHERE pronamespace = 'public'::regnamespace
        """
    )
    return {owner for (owner,) in rows}
