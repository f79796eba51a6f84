"""A node is killed and started again, and customers move to a third one, while orders come in: `make test-citus`, docs/scaling.md.

On a cluster of its own, as what is killed others would miss.
"""

import asyncio
import os
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import asyncpg
import pytest
from tests import memory
from tests.citus.world import world_of
from tests.faults.installation import Installation, Service
from tests.faults.load import Load, Ordering
from tools.citus_cluster import PROGRAM, Cluster, running

from largesse.db import sharding
from largesse.db.pool import DATABASE_AWAY, Database, connect_once
from largesse.db.roles import Role
from largesse.db.scope import OPERATOR, for_customer

KILLS = int(os.environ.get("CITUS_KILLS", "0"))
CUSTOMERS = range(1, 13)
CALM_S, AWAY_S = 6.0, 4.0
SHARDS = 6  # few, as each that moves takes its time
MOVED_WITHIN_S = 900

pytestmark = [
    pytest.mark.skipif(not (PROGRAM and KILLS), reason="only with a cluster: make test-citus"),
    pytest.mark.timeout(900 + 60 * KILLS),
]


class Killable(NamedTuple):
    """An installation on a cluster whose nodes may be killed, and who serves it."""

    cluster: Cluster
    installation: Installation
    service: Service


@pytest.fixture(scope="module")
def killable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Killable]:
    with installed(tmp_path_factory.mktemp("installation"), None) as killable:
        yield killable


@pytest.fixture
def movable(tmp_path: Path) -> Iterator[Killable]:
    """One whose servers do not share a disk: what is copied to a node, those of others would wait for when they commit."""
    with installed(tmp_path, memory.FOLDER if memory.has_room() else None) as movable:
        yield movable


@contextmanager
def installed(folder: Path, beneath: Path | None) -> Iterator[Killable]:
    with running(beneath) as cluster:
        asyncio.run(prepare(cluster.url))
        installation = Installation.external(folder, cluster.url)
        installation.fill(world_of(CUSTOMERS))
        service = installation.serve()
        yield Killable(cluster, installation, service)
        service.kill()


async def prepare(url: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(f"ALTER DATABASE largesse SET citus.shard_count = {SHARDS}")
    await connection.execute("ALTER DATABASE largesse SET citus.node_connection_timeout = '2s'")
    # A move copies a table at a time: what the machine has left is for those who order.
    await connection.execute("ALTER DATABASE largesse SET citus.max_adaptive_executor_pool_size = 1")
    await connection.close()


async def nodes_of(killable: Killable) -> dict[int, str]:
    """The node of each customer, by the number in its key."""
    ids = {number: killable.installation.id("customers", f"c{number}") for number in CUSTOMERS}
    async with connect_once(killable.cluster.url, OPERATOR) as connection:
        found = await sharding.node_names(connection, list(ids.values()))
    return {number: found[id_] for number, id_ in ids.items()}


def ordering(customer: int, sender: str) -> Ordering:
    """The orders of a customer, by that sender: of three, one has no reference that would keep it from being placed twice."""

    def order(installation: Installation, number: int) -> tuple[str, str, dict[str, Any]]:
        body = {
            "productId": installation.id("products", "coffee"),
            "value": 1,
            "codeQuantity": 1 + number % 4,
            "fromName": sender,
        }
        if has_reference(number):
            body["externalReference"] = f"{sender}-{number}"
        return "/send/gift", installation.world["api_keys"][f"key{customer}"], body

    return order


def has_reference(number: int) -> bool:
    return number % 3 > 0


@asynccontextmanager
async def ordering_by_all(killable: Killable, prefix: str) -> AsyncIterator[Mapping[int, Load]]:
    """Every customer orders, with clients of its own: what keeps one waiting keeps no other."""
    loads = {number: Load(killable.installation, ordering(number, prefix)) for number in CUSTOMERS}
    async with AsyncExitStack() as stack:
        for load in loads.values():
            load.pause_s, load.retry_s = 0.1, 0.3
            await stack.enter_async_context(load.running(1, hang_up_s=60.0))
            await load.serve_from(killable.service.url)
        yield loads


class Window(NamedTuple):
    """A stretch of time, and whose orders are looked at in it."""

    since: float
    until: float
    customers: Collection[int]


def p99_ms(loads: Mapping[int, Load], windows: Sequence[Window]) -> float:
    """How long all but the slowest hundredth of the orders took that were placed then."""
    took = sorted(
        reply.took_s
        for window in windows
        for customer in window.customers
        for reply in loads[customer].replies
        if reply.status == 200 and window.since <= reply.sent_at < window.until
    )
    return 1000 * took[int(len(took) * 0.99)]


async def check(killable: Killable, loads: Mapping[int, Load], sender: str) -> str:
    """No order that was acknowledged is lost and none is there twice, and the database agrees with itself; says how many there were."""
    connection = await asyncpg.connect(killable.cluster.url)
    rows = await connection.fetch(
        "SELECT customer_id, external_reference, count(*) FROM orders WHERE from_name = $1 GROUP BY 1, 2", sender
    )
    await connection.close()
    found = {(row[0], row[1]): row[2] for row in rows}
    placed = lost = doubled = in_doubt = 0
    for customer, load in loads.items():
        id_ = killable.installation.id("customers", f"c{customer}")
        acknowledged = {reply.number for reply in load.replies if reply.status == 200}
        placed += len(acknowledged)
        named = [found.get((id_, f"{sender}-{number}"), 0) for number in acknowledged if has_reference(number)]
        lost += named.count(0)
        doubled += sum(count > 1 for count in named)
        # Those without a reference are told apart by their number alone: but for the ones of which nobody could be told.
        doubts = sum(
            reply.status == 503 and "before it said" in reply.body["detail"] and not has_reference(reply.number)
            for reply in load.replies
        )
        more = found.get((id_, None), 0) - sum(not has_reference(number) for number in acknowledged)
        lost += max(-more, 0)
        doubled += max(more - doubts, 0)
        in_doubt += doubts
    await asyncio.to_thread(killable.installation.verify)
    assert (lost, doubled) == (0, 0)
    return f"{placed} acknowledged, {lost} lost, {doubled} doubled, {in_doubt} in doubt"


async def test_no_order_is_lost_or_doubled_however_often_a_node_goes(
    killable: Killable, capsys: pytest.CaptureFixture[str]
) -> None:
    homes = await nodes_of(killable)
    calm: list[Window] = []
    away: list[Window] = []
    async with ordering_by_all(killable, "killed") as loads:
        await asyncio.gather(*(load.settle(5) for load in loads.values()))
        for number in range(KILLS):
            node = killable.cluster.servers[1 + number % 2]
            lost = [customer for customer, home in homes.items() if home.endswith(f":{node['port']}")]
            others = homes.keys() - lost
            assert lost
            assert others
            began = time.monotonic()
            await asyncio.sleep(CALM_S)
            killed = time.monotonic()
            await asyncio.to_thread(killable.cluster.kill, node)
            await asyncio.sleep(AWAY_S)
            await asyncio.to_thread(killable.cluster.start)
            await asyncio.gather(*(loads[customer].settle(3) for customer in lost))
            back = time.monotonic()
            calm.append(Window(began, killed, others))
            away.append(Window(killed, back, others))
            with capsys.disabled():
                sys.stdout.write(f"\nkill {number + 1}: away for {back - killed:.1f} s")
        statuses = Counter(reply.status for load in loads.values() for reply in load.replies)
    told = await check(killable, loads, "killed")
    before_ms, meanwhile_ms = p99_ms(loads, calm), p99_ms(loads, away)
    with capsys.disabled():
        sys.stdout.write(
            f"\n{KILLS} nodes killed: {told}; {statuses}; p99 of the others {before_ms:.0f} ms before, {meanwhile_ms:.0f} ms meanwhile\n"
        )
    assert statuses.keys() <= {200, 409, 503}
    assert all(reply.retry_after for load in loads.values() for reply in load.replies if reply.status == 503), (
        "each 503 says when to come back"
    )
    assert meanwhile_ms <= 2 * before_ms


async def test_a_node_that_dies_within_a_statement_is_away(killable: Killable) -> None:
    database = await Database.connect(killable.cluster.url, role=Role.APP)
    customer_id = killable.installation.id("customers", "c1")
    home = (await nodes_of(killable))[1]
    (node,) = [one for one in killable.cluster.servers if home.endswith(f":{one['port']}")]
    sleeping = database.fetch(
        for_customer(customer_id, "production"),
        "SELECT count(*), pg_sleep(5) FROM orders WHERE customer_id = $1",
        customer_id,
    )
    waiting = asyncio.create_task(sleeping)
    await asyncio.sleep(1)
    assert not waiting.done()
    killable.cluster.kill(node)
    try:
        with pytest.raises(DATABASE_AWAY):
            await waiting
    finally:
        await database.close()
        await asyncio.to_thread(killable.cluster.start)


async def test_customers_move_to_a_third_node_while_they_order(
    movable: Killable, capsys: pytest.CaptureFixture[str]
) -> None:
    before = await nodes_of(movable)
    async with ordering_by_all(movable, "moved") as loads:
        await asyncio.gather(*(load.settle(5) for load in loads.values()))
        began = time.monotonic()
        await asyncio.sleep(3 * CALM_S)
        added = time.monotonic()
        await asyncio.to_thread(movable.cluster.add_node)
        await rebalance(movable.cluster.url)
        done = time.monotonic()
        await asyncio.gather(*(load.settle(5) for load in loads.values()))
        statuses = Counter(reply.status for load in loads.values() for reply in load.replies)
    told = await check(movable, loads, "moved")
    after = await nodes_of(movable)
    stayed = [customer for customer in CUSTOMERS if after[customer] == before[customer]]
    before_ms = p99_ms(loads, [Window(began, added, stayed)])
    meanwhile_ms = p99_ms(loads, [Window(added, done, stayed)])
    with capsys.disabled():
        sys.stdout.write(
            f"\n{len(CUSTOMERS) - len(stayed)} of {len(CUSTOMERS)} customers moved to a third node within {done - added:.0f} s: {told}; {statuses}; "
            f"p99 of the others {before_ms:.0f} ms before, {meanwhile_ms:.0f} ms meanwhile\n"
        )
    assert len(stayed) < len(CUSTOMERS)
    assert len(set(after.values())) == 3
    assert statuses.keys() <= {200, 409, 503}
    assert meanwhile_ms <= 2 * before_ms


async def rebalance(url: str) -> None:
    """Spreads what there is over all nodes, as docs/scaling.md says."""
    connection = await asyncpg.connect(url)
    await connection.execute("SELECT citus_rebalance_start()")
    await connection.execute("SELECT citus_rebalance_wait()", timeout=MOVED_WITHIN_S)
    await connection.close()
