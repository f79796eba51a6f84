"""Clusters that cannot be worked with: told at start, with what to do, and before anything is changed."""

from urllib.parse import urlsplit

import asyncpg
import pytest
from tests.citus.conftest import NODES
from tools.citus_cluster import running

from largesse.base.errors import OperatorError
from largesse.db import migrate
from largesse.db.pool import Database, connect_once
from largesse.db.roles import Role
from largesse.db.scope import OPERATOR
from largesse.installation import check_schema, schema_trouble


async def require_refused(url: str, said: str) -> None:
    """By whoever starts, by `migrate` and by `check`."""
    for role in (Role.APP, Role.WORKER, Role.OPERATOR):
        database = await Database.connect(url, role=role)
        try:
            with pytest.raises(OperatorError, match=said):
                await check_schema(database)
        finally:
            await database.close()
    with pytest.raises(OperatorError, match=said):
        await migrate.upgrade(url)
    async with connect_once(url, OPERATOR, role=Role.APP) as connection:
        assert said in (await schema_trouble(connection) or "")


async def execute(url: str, *statements: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("DELETE FROM pg_dist_node", "has the extension citus and no cluster: SELECT citus_set_coordinator_host"),
        ("DELETE FROM pg_dist_node WHERE groupid <> 0", "no nodes to keep customers on: SELECT citus_add_node"),
        ("DROP EXTENSION citus CASCADE", "tables are missing, as after DROP EXTENSION citus"),
    ],
)
async def test_a_coordinator_that_lost_its_nodes_or_its_tables(database_url: str, statement: str, said: str) -> None:
    await execute(database_url, statement)
    await require_refused(database_url, said)


async def test_a_coordinator_without_nodes_is_left_without_tables(database_url: str) -> None:
    await execute(database_url, "DROP EXTENSION citus CASCADE", "DROP SCHEMA public CASCADE", "CREATE SCHEMA public")
    await execute(database_url, "CREATE EXTENSION citus")
    with pytest.raises(OperatorError, match="no cluster"):
        await migrate.upgrade(database_url)
    connection = await asyncpg.connect(database_url)
    assert await connection.fetchval("SELECT to_regclass('orders')") is None
    await connection.close()


@pytest.mark.parametrize(
    ("statement", "version"),
    [
        ("UPDATE pg_extension SET extversion = '12.1-1' WHERE extname = 'citus'", "12.1-1"),
        ("DELETE FROM pg_extension WHERE extname = 'citus'", "none"),
    ],
)
async def test_a_node_of_another_version(database_url: str, statement: str, version: str) -> None:
    node = urlsplit(NODES[1])
    await execute(node._replace(path=urlsplit(database_url).path).geturl(), statement)
    await require_refused(database_url, f"{node.hostname}:{node.port} has {version}: bring all to one version")


@pytest.mark.timeout(600)  # it starts a cluster of three servers four times
async def test_servers_that_did_not_load_the_extension() -> None:
    with running() as cluster:
        coordinator, node, _ = cluster.servers
        await migrate.upgrade(cluster.url)
        for server, said in (
            (node, f":{node['port']} has .*, not loaded: bring all to one version"),
            (coordinator, "which its server has not loaded: put citus into shared_preload_libraries"),
        ):
            await execute(cluster.url_of(server, "postgres"), "ALTER SYSTEM SET shared_preload_libraries = plpgsql")
            cluster.stop()
            cluster.start()
            with pytest.raises(OperatorError, match=said):
                await migrate.upgrade(cluster.url)
            await execute(cluster.url_of(server, "postgres"), "ALTER SYSTEM RESET shared_preload_libraries")
        cluster.stop()
        cluster.start()
        assert (await migrate.upgrade(cluster.url)).distributed == []
