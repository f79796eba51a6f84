"""A streaming replica: it serves reads, and takes over under load without losing an order that was acknowledged.

The steps are those of docs/scaling.md.
"""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiohttp
import asyncpg
import pytest

from largesse.db import postmaster
from largesse.db.cluster import Cluster, programs
from largesse.db.embedded import EmbeddedServer

pytestmark = [pytest.mark.embedded, pytest.mark.slow, pytest.mark.timeout(300)]

PATIENCE_S = 60.0
READS = ("/me", "/users", "/products", "/collections", "/templates", "/funding-accounts", "/orders")


@dataclass(frozen=True)
class Pair:
    """A primary and its standby, on one machine; both are reached by their sockets."""

    primary: EmbeddedServer
    primary_cluster: Path
    standby_cluster: Path
    standby_socket: Path

    @property
    def primary_url(self) -> str:
        return self.primary.url()

    @property
    def standby_url(self) -> str:
        return f"postgresql://{self._who}@/largesse?host={self.standby_socket}&port=5432"

    @property
    def either_url(self) -> str:
        """Whichever of the two takes writes, as an operator's setting names them."""
        primary_socket = parse_qs(urlsplit(self.primary_url).query)["host"][0]
        hosts = f"{primary_socket},{self.standby_socket}"
        return f"postgresql://{self._who}@/largesse?host={hosts}&port=5432,5432&target_session_attrs=read-write"

    @property
    def _who(self) -> str:
        return urlsplit(self.primary_url).netloc.rstrip("@")

    def kill_primary(self) -> None:
        """Its processes end as those of a machine that lost its power do: nothing more is written or answered."""
        server = postmaster.read(self.primary_cluster)
        assert server is not None
        os.kill(server.pid, signal.SIGKILL)

    @contextmanager
    def standby(self, folder: Path) -> Iterator[None]:
        """Makes the standby with pg_basebackup, and runs it."""
        backup = [str(programs() / "pg_basebackup"), "--write-recovery-conf", "--checkpoint=fast", "--no-sync"]
        backup += ["-h", parse_qs(urlsplit(self.primary_url).query)["host"][0], "-U", "largesse"]
        for made in (self.standby_cluster, self.standby_socket):
            made.mkdir(mode=0o700)
            owner = self.primary_cluster.stat()
            os.chown(made, owner.st_uid, owner.st_gid)
        helper = Cluster(folder, {})
        subprocess.run(
            helper._as_server_user(self.primary_cluster, [*backup, "-D", str(self.standby_cluster)]),
            env={**os.environ, "PGPASSWORD": urlsplit(self.primary_url).password or ""},
            check=True,
            capture_output=True,
            timeout=PATIENCE_S,
        )
        serve = [str(programs() / "postgres"), "-D", str(self.standby_cluster), "-c", "listen_addresses="]
        serve += ["-c", f"unix_socket_directories={self.standby_socket}"]
        with (folder / "standby.log").open("wb") as log:
            server = subprocess.Popen(
                helper._as_server_user(self.standby_cluster, serve), cwd="/", stdout=log, stderr=log
            )
        try:
            yield
        finally:
            server.send_signal(signal.SIGQUIT)
            server.wait(PATIENCE_S)


async def until(url: str, question: str) -> None:
    """Waits until a server answers `question` with true."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        try:
            if await ask(url, question):
                return
        except (OSError, asyncpg.PostgresError):
            pass
        await asyncio.sleep(0.02)
    raise AssertionError(f"never true: {question}")


async def ask(url: str, question: str) -> Any:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(question)
    finally:
        await connection.close()


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    """A primary; its standby is not made yet. Both sync to disk, since one of them is killed."""
    with EmbeddedServer(tmp_path / "primary") as primary:
        standby = tmp_path / "standby"
        standby.mkdir()
        standby.chmod(0o711)
        yield Pair(primary, tmp_path / "primary" / "postgres", standby / "postgres", standby / "socket")


async def test_no_acknowledged_order_is_lost_when_the_standby_takes_over(
    pair: Pair, tmp_path: Path, start_installation: Any, new_load: Any, check: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    installation = await asyncio.to_thread(start_installation, url=pair.either_url)
    with pair.standby(tmp_path):
        await ask(pair.primary_url, "ALTER SYSTEM SET synchronous_standby_names = '*'")
        await ask(pair.primary_url, "SELECT pg_reload_conf()")
        await until(pair.primary_url, "SELECT bool_and(sync_state = 'sync') FROM pg_stat_replication")
        service = await asyncio.to_thread(installation.serve)
        load = new_load(installation)
        async with load.running():
            await load.serve_from(service.url)
            await load.settle(60)
            # The standby hears nothing more. Whatever the primary still acknowledged would be lost with it: it must wait.
            receiver = await ask(pair.standby_url, "SELECT pid FROM pg_stat_wal_receiver")
            os.kill(receiver, signal.SIGSTOP)
            await until(pair.primary_url, "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
            pair.kill_primary()
            acknowledged = [reply.number for reply in load.replies if reply.status == 200]
            os.kill(receiver, signal.SIGCONT)
            assert await ask(pair.standby_url, "SELECT pg_promote()")
            await load.settle(60)  # more than were under way: the service has found the new primary
        assert load.statuses() <= {200, 409, 503}
        found = await ask(pair.standby_url, "SELECT array_agg(external_reference) FROM orders")
        lost = [number for number in acknowledged if f"order-{number}" not in found]
        with capsys.disabled():
            sys.stdout.write(f"\npromotion: {len(acknowledged)} acknowledged, {len(lost)} lost\n")
        assert len(acknowledged) >= 60
        assert lost == []
        await check(installation, load, service)
        assert await asyncio.to_thread(service.terminate) == 0


@pytest.mark.long
async def test_a_standby_serves_the_reads_that_may_lag(
    pair: Pair, tmp_path: Path, start_installation: Any, new_load: Any
) -> None:
    installation = await asyncio.to_thread(start_installation, url=pair.primary_url)
    with pair.standby(tmp_path):
        writing = await asyncio.to_thread(installation.serve)
        installation.environ["LARGESSE_DATABASE_URL"] = pair.standby_url
        await until(pair.standby_url, "SELECT pg_is_in_recovery()")
        reading = await asyncio.to_thread(installation.serve)
        load = new_load(installation)
        async with load.running():
            await load.serve_from(writing.url)
            await load.settle(50)
        position = await ask(pair.primary_url, "SELECT pg_current_wal_lsn()::text")
        await until(pair.standby_url, f"SELECT pg_last_wal_replay_lsn() >= '{position}'")
        headers = {"Authorization": f"Bearer {installation.world['api_keys']['acme-prod']}"}
        async with aiohttp.ClientSession(headers=headers) as session:
            for path in READS:
                async with session.get(writing.url + path) as here, session.get(reading.url + path) as there:
                    assert (here.status, there.status) == (200, 200), path
                    assert await here.read() == await there.read(), path
            async with session.get(f"{reading.url}/orders?after=0") as response:  # it has not the marks for that
                assert response.status == 503
                assert "primary" in (await response.json())["detail"]
            async with session.get(f"{writing.url}/orders?after=0") as response:
                assert len(await response.json()) == 10
            refused = {"productId": 1, "value": 10, "codeQuantity": 1, "accountId": 1}
            async with session.post(f"{reading.url}/send/gift", json=refused) as response:
                assert response.status == 503
                assert response.headers["Retry-After"]
        assert await asyncio.to_thread(reading.terminate) == 0
        assert await asyncio.to_thread(writing.terminate) == 0
