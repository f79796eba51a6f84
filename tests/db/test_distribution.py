"""What is said of tables that are distributed over nodes holds on every PostgreSQL; that they are distributed, tests/citus tests on a cluster."""

import asyncpg
import pytest
from tests.closing import closing

from largesse.base.errors import OperatorError
from largesse.db import migrate, sharding
from largesse.db.pool import Database
from largesse.db.roles import Role
from largesse.installation import check_schema


async def test_without_the_extension_nothing_is_spread_and_nothing_wrong(
    connection: asyncpg.Connection, database_url: str
) -> None:
    assert await sharding.distribute(connection) == []
    assert await sharding.trouble(connection) is None
    with pytest.raises(OperatorError, match="one server"):
        await sharding.node_names(connection, [1])
    async with closing(Database.connect(database_url, role=Role.APP)) as database:
        assert not database.is_distributed
        await check_schema(database)


async def test_tables_that_were_spread_are_not_served_without_the_extension(
    connection: asyncpg.Connection, database_url: str
) -> None:
    await connection.execute("INSERT INTO distribution DEFAULT VALUES")
    with pytest.raises(OperatorError, match="the extension citus is missing"):
        await migrate.upgrade(database_url)
    async with closing(Database.connect(database_url, role=Role.WORKER)) as database:
        with pytest.raises(OperatorError, match="the extension citus is missing"):
            await check_schema(database)
    await connection.execute("DELETE FROM distribution")
    await migrate.upgrade(database_url)


async def test_the_customer_is_in_every_unique_key_of_what_is_spread(connection: asyncpg.Connection) -> None:
    rows = await connection.fetch(
        """
        SELECT indrelid::regclass::text AS table, indexrelid::regclass::text AS key,
               EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = indrelid AND a.attname = $2
                       AND a.attnum = ANY(indkey::int2[]) AND a.attnotnull) AS names_customer
        FROM pg_index WHERE indisunique AND indrelid::regclass::text = ANY($1::text[])
        """,
        list(sharding.DISTRIBUTED),
        sharding.COLUMN,
    )
    assert {row["table"] for row in rows} == set(sharding.DISTRIBUTED)
    assert [row["key"] for row in rows if not row["names_customer"]] == []


async def test_what_is_spread_refers_to_nothing_but_what_is_spread_or_copied(connection: asyncpg.Connection) -> None:
    parents = await connection.fetch(
        """
        SELECT DISTINCT confrelid::regclass::text AS parent FROM pg_constraint
        WHERE contype = 'f' AND conrelid::regclass::text = ANY($1::text[])
        """,
        list(sharding.DISTRIBUTED),
    )
    known = {*sharding.DISTRIBUTED, *sharding.REFERENCE}
    assert [row["parent"] for row in parents if row["parent"] not in known] == []
