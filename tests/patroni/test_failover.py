"""The leader of three loses its power, again and again, while orders come in: `make test-patroni`, docs/scaling.md."""

import asyncio
import os
import sys
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import asyncpg
import pytest
from tests.faults.installation import Installation
from tests.faults.load import Load, check_orders
from tests.patroni.cluster import LEASE_S, Cluster, running

KILLS = int(os.environ.get("PATRONI_KILLS", "0"))

pytestmark = [
    pytest.mark.skipif(not KILLS, reason="only with PATRONI_KILLS: make test-patroni"),
    pytest.mark.timeout(300 + 240 * KILLS),
]


# A connection that looks for the leader ends at a standby that does not have the database yet.
_ALL_HAVE_REPLAYED = "SELECT count(*) FILTER (WHERE replay_lsn >= pg_current_wal_lsn()) = $1 FROM pg_stat_replication"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with tempfile.TemporaryDirectory(prefix="largesse-patroni-") as folder:
        Path(folder).chmod(0o711)
        with running(Path(folder)) as cluster:
            yield cluster


async def test_no_order_is_lost_or_doubled_however_often_the_leader_goes(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    connection = await asyncpg.connect(cluster.url("postgres"))
    await connection.execute("CREATE DATABASE largesse")
    while not await connection.fetchval(_ALL_HAVE_REPLAYED, len(cluster.nodes) - 1):  # noqa: ASYNC110 - the server says when
        await asyncio.sleep(0.1)
    await connection.close()
    installation = Installation.external(tmp_path, cluster.url("largesse"))
    await asyncio.to_thread(installation.fill)
    service = await asyncio.to_thread(installation.serve)
    load = Load(installation)
    load.pause_s = 0.05
    gaps: list[float] = []
    async with load.running(hang_up_s=60.0):
        await load.serve_from(service.url)
        for number in range(1, KILLS + 1):
            await load.settle(100)
            leader = cluster.leader()
            assert leader is not None
            placed = len(load.replies)
            await asyncio.to_thread(leader.lose_power)
            await asyncio.to_thread(cluster.wait, lambda gone=leader: cluster.leader() not in {None, gone})
            await load.settle(100)
            gaps.append(longest_gap(load, placed))
            leader.start()
            await asyncio.to_thread(cluster.wait, cluster.is_whole)
            with capsys.disabled():
                sys.stdout.write(f"\nkill {number}: no order for {gaps[-1]:.1f} s")
    acknowledged = {reply.number for reply in load.replies if reply.status == 200}
    connection = await asyncpg.connect(cluster.url("largesse"))
    rows = await connection.fetch("SELECT external_reference, count(*) FROM orders GROUP BY 1")
    await connection.close()
    found = {row["external_reference"]: row["count"] for row in rows}
    lost = [number for number in acknowledged if f"order-{number}" not in found]
    doubled = [reference for reference, count in found.items() if count > 1]
    with capsys.disabled():
        sys.stdout.write(
            f"\n{KILLS} leaders killed, a lease of {LEASE_S} s: {len(acknowledged)} acknowledged, {len(lost)} lost, "
            f"{len(doubled)} doubled; no order for {min(gaps):.1f} to {max(gaps):.1f} s\n"
        )
    assert (lost, doubled) == ([], [])
    await check_orders(installation, load, service)
    service.kill()


def longest_gap(load: Load, first: int) -> float:
    """The longest time without an order, in seconds, among the replies from the `first` on."""
    at = sorted(reply.sent_at + reply.took_s for reply in load.replies[max(first - 20, 0) :] if reply.status == 200)
    return max(later - earlier for earlier, later in pairwise(at))
