"""The list of what the migrations make, and what is found where the database has something else."""

from __future__ import annotations

import os

import asyncpg
import pytest
from tests.spread import IS_SPREAD

from largesse.database.manifest import read_manifest, released_manifest, schema_differences, write_manifest

pytestmark = pytest.mark.skipif(IS_SPREAD, reason="a cluster's coordinator keeps constraints otherwise")


@pytest.fixture
async def connection(database_url: str) -> asyncpg.Connection:
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()


async def test_the_list_is_what_the_migrations_make(connection: asyncpg.Connection) -> None:
    """After a new migration: WRITE_MANIFEST=1 make pytest PYTEST_ARGS=tests/database/test_manifest.py"""
    there = await read_manifest(connection)
    if os.environ.get("WRITE_MANIFEST"):
        write_manifest(there)
    assert there == released_manifest()
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
        (
            "CREATE RULE lost AS ON INSERT TO line_events DO INSTEAD NOTHING",
            ["unknown rule line_events.lost"],
        ),
        ("CREATE FUNCTION help() RETURNS int LANGUAGE sql AS 'SELECT 1'", []),
    ],
)
async def test_what_was_changed_is_named(connection: asyncpg.Connection, harm: str, found: list[str]) -> None:
    await connection.execute(harm)
    assert await schema_differences(connection) == found
