"""Databases on a Citus cluster, for tests: a coordinator and nodes, of which each test's database is copied on all at once.

Citus names its nodes by host and port, and the database by its own name: so a database that is copied under one name on every server
is one whose coordinator finds its nodes.
"""

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import urlsplit

import asyncpg
from tests.background import Statements, run

from largesse.db import migrate

# Whether tests run on a cluster.
IS_DISTRIBUTED = bool(os.environ.get("LARGESSE_TEST_NODES"))
# How many sessions wait for a lock: on a cluster they wait on its nodes, where the coordinator's catalogues do not look.
WAITING = (
    "SELECT count(DISTINCT waiting_gpid) FROM citus_lock_waits"
    if IS_DISTRIBUTED
    else "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0"
)
SOMEBODY_WAITS = f"SELECT ({WAITING}) > 0"
# Whether the session with the process $1 keeps somebody waiting.
KEEPS_WAITING = (
    "SELECT EXISTS (SELECT FROM citus_lock_waits WHERE blocking_gpid = citus_calculate_gpid(nodeid, $1)) FROM pg_dist_node WHERE groupid = 0"
    if IS_DISTRIBUTED
    else "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid)))"
)
# Few, as each is a file or three for each table that is copied for each test. With one, all customers are one shard group.
SHARDS = int(os.environ.get("LARGESSE_TEST_SHARDS", "4"))


async def execute_each(connection: asyncpg.Connection, statements: str) -> None:
    """Runs them one after the other, triggers switched among them: a coordinator passes on no more at a time, and no trigger unasked."""
    await connection.execute("SET citus.enable_unsafe_triggers = on")  # means nothing on one server
    for statement in filter(str.strip, statements.split(";")):
        await connection.execute(statement)


class DistributedServers:
    """The servers of a cluster, the coordinator first, each by the address of its maintenance database."""

    def __init__(self, urls: Sequence[str]) -> None:
        self._urls = urls
        self._servers = [Statements(url) for url in urls]

    def create(self, name: str) -> None:
        """Makes a migrated database that can be copied: nobody is connected to it afterwards."""
        for server in self._servers:
            server.execute(f'CREATE DATABASE "{name}" TEMPLATE template0')
            server.execute(f'ALTER DATABASE "{name}" SET citus.shard_count = {SHARDS}')
        for url in self._urls:
            with _statements(_of(url, name)) as inside:
                inside.execute("CREATE EXTENSION citus")
        with _statements(_of(self._urls[0], name)) as coordinator:
            host, *nodes = [urlsplit(url) for url in self._urls]
            coordinator.execute(f"SELECT citus_set_coordinator_host('{host.hostname}', {host.port})")
            for node in nodes:
                coordinator.execute(f"SELECT citus_add_node('{node.hostname}', {node.port})")
        run(migrate.upgrade(_of(self._urls[0], name)))
        self._close(name)

    def copy(self, template: str, name: str) -> None:
        for server in self._servers:
            server.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}" STRATEGY FILE_COPY')

    def drop(self, name: str) -> None:
        for server in self._servers:
            # Whoever keeps the cluster in order may come back in between, as a new process.
            for left in reversed(range(100)):
                try:
                    server.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
                    break
                except asyncpg.ObjectInUseError:
                    if not left:
                        raise
                time.sleep(0.1)

    def close(self) -> None:
        for server in self._servers:
            server.close()

    def _close(self, name: str) -> None:
        """Sends everybody away for good, whoever keeps the cluster in order among them: a database in use is not copied."""
        for server in self._servers:
            server.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
        for server in self._servers:
            gone = f"SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity WHERE datname = '{name}'"
            server.execute(gone)


@contextmanager
def _statements(url: str) -> Iterator[Statements]:
    with contextlib.closing(Statements(url)) as statements:
        yield statements


def _of(url: str, database: str) -> str:
    return urlsplit(url)._replace(path=f"/{database}").geturl()
