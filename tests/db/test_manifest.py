"""The list of what the migrations make, and what is found where the database has something else."""

import os

import asyncpg
import pytest
from tests.distributed import IS_DISTRIBUTED

from largesse.db.manifest import read_manifest, released_manifest, schema_differences, write_manifest

pytestmark = pytest.mark.skipif(IS_DISTRIBUTED, reason="a cluster's coordinator keeps constraints otherwise")


async def test_the_list_is_what_the_migrations_make(connection: asyncpg.Connection) -> None:
    there = await read_manifest(connection)
    if os.environ.get("WRITE_MANIFEST"):
        write_manifest(there)
    released = released_manifest()
    assert there == released, (
        "after a new migration: WRITE_MANIFEST=1 make pytest PYTEST_ARGS=tests/db/test_manifest.py"
    )
    assert await schema_differences(connection) == []


@pytest.mark.parametrize(
    ("harm", "found"),
    [
        ("DROP TRIGGER entries_append_only ON entries", ["missing trigger entries.entries_append_only"]),
        (
            "CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
            ["changed function refuse_change()"],
        ),
        ("ALTER FUNCTION clock_now() VOLATILE", ["changed function clock_now()"]),
        ("DROP FUNCTION last_sealed()", ["missing function last_sealed()"]),
        (
            """CREATE FUNCTION pay() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.balance_minor := 0; RETURN NEW; END';
               CREATE TRIGGER pay BEFORE INSERT ON accounts FOR EACH ROW EXECUTE FUNCTION pay()""",
            ["unknown trigger accounts.pay"],
        ),
        (
            "ALTER TABLE accounts DROP CONSTRAINT accounts_not_overdrawn",
            ["missing constraint accounts.accounts_not_overdrawn"],
        ),
        (
            """ALTER TABLE accounts DROP CONSTRAINT accounts_not_overdrawn;
               ALTER TABLE accounts ADD CONSTRAINT accounts_not_overdrawn CHECK (true)""",
            ["changed constraint accounts.accounts_not_overdrawn"],
        ),
        ("DROP INDEX entries_reference", ["missing index entries.entries_reference"]),
        ("DROP INDEX orders_newest", ["missing index orders.orders_newest"]),
        ("CREATE INDEX mine ON orders (id); CREATE SEQUENCE mine_too", []),
        ("ALTER TABLE accounts ALTER balance_minor DROP NOT NULL", ["changed column accounts.balance_minor"]),
        ("ALTER TABLE accounts ALTER chain_head DROP DEFAULT", ["changed column accounts.chain_head"]),
        ("ALTER TABLE api_requests ALTER status TYPE bigint", ["changed column api_requests.status"]),
        ("ALTER TABLE accounts ADD mine text", []),
        ("ALTER TABLE accounts ADD mine text DEFAULT ''", ["unknown column accounts.mine"]),
        ("ALTER SEQUENCE orders_id_seq CACHE 50", ["changed sequence orders_id_seq"]),
        ("ALTER FUNCTION last_sealed() OWNER TO pg_monitor", ["changed function last_sealed()"]),
        ("ALTER TABLE api_requests SET UNLOGGED", ["changed table api_requests"]),
        ("CREATE RULE lost AS ON INSERT TO line_events DO INSTEAD NOTHING", ["unknown rule line_events.lost"]),
        ("CREATE FUNCTION help() RETURNS int LANGUAGE sql AS 'SELECT 1'", []),
    ],
)
async def test_what_was_changed_is_named(connection: asyncpg.Connection, harm: str, found: list[str]) -> None:
    await connection.execute(harm)
    assert await schema_differences(connection) == found


async def test_definitions_stay_as_they_are_through_a_dump(connection: asyncpg.Connection) -> None:
    """pg_dump writes triggers and checks as the server words them: what it then words otherwise would be found after each restore."""
    before = await read_manifest(connection)
    made_again = """
        SELECT replace(pg_get_triggerdef(t.oid), 'CREATE TRIGGER', 'CREATE OR REPLACE TRIGGER') AS statement
        FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
        WHERE NOT t.tgisinternal AND t.tgconstraint = 0 AND c.relnamespace = 'public'::regnamespace
        UNION ALL
        SELECT format('ALTER TABLE %s DROP CONSTRAINT %I, ADD CONSTRAINT %2$I %s', c.conrelid::regclass, c.conname, pg_get_constraintdef(c.oid))
        FROM pg_constraint c
        WHERE c.contype = 'c' AND c.connamespace = 'public'::regnamespace AND c.conrelid <> 0 AND c.coninhcount = 0
    """
    statements = [row["statement"] for row in await connection.fetch(made_again)]
    assert len(statements) > 50
    async with connection.transaction():
        for statement in statements:
            await connection.execute(statement)
        assert await read_manifest(connection) == before
