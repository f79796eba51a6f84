"""How much mail is sent twice when things go wrong: at most one message for each connection to the mail server.

Short leases in the suite; LEASE_SECONDS=15 TWICE_ORDERS=400 is the true thing.
"""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.faults.proxy import Proxy
from tests.waiting import until
from tests.worker.conftest import PATIENCE_S, Works

from largesse.base.settings import MAIL_CONNECTIONS
from largesse.db.pool import Database
from largesse.jobs import metrics
from largesse.worker import DATABASE_CONNECTIONS, Worker

LEASE_S = float(os.environ.get("LEASE_SECONDS", "2"))
ORDERS = int(os.environ.get("TWICE_ORDERS", "60"))
AWAY_S = 2.3 * LEASE_S  # longer than any lease lasts


@asynccontextmanager
async def working(works: Works, url: str) -> AsyncIterator[Worker]:
    database = await Database.connect(url, max_connections=DATABASE_CONNECTIONS)
    async with Worker(database, works.settings, works.vault, lease_s=LEASE_S) as worker:
        yield worker
    await database.close()


async def until_mailed(works: Works, count: int) -> None:
    """Waits until so many messages have arrived, copies included."""
    await until(lambda: len(works.mail.got) >= count, PATIENCE_S + AWAY_S)


def twice(works: Works) -> int:
    return sum(Counter(works.mails_got()).values()) - len(set(works.mails_got()))


@pytest.mark.long
@pytest.mark.timeout(300)
async def test_a_database_that_is_away_for_a_while_makes_no_copies(works: Works, proxy: Proxy) -> None:
    """What was sent is written down when it is back: nobody else could have taken it for abandoned."""
    works.mail.takes_s = 0.02
    ids = set(await works.place(ORDERS))
    async with working(works, proxy.url):
        await until_mailed(works, ORDERS // 5)
        await proxy.cut()
        await asyncio.sleep(AWAY_S)
        sent_by_then = len(works.mail.got)
        await proxy.restore()
        await works.until_arrived(ids, ids)
        await works.until_settled()
    assert sent_by_then < ORDERS, "nothing more is sent that cannot be written down"
    assert twice(works) == 0
    assert len(works.events_heard()) == len(set(works.events_heard())), "nor of webhooks"
    assert metrics.OUTCOMES_WAITING.labels("mail")._value.get() == 0


@pytest.mark.long
@pytest.mark.timeout(300)
async def test_a_worker_cut_off_from_the_database_sends_one_message_a_connection_that_others_send_too(
    works: Works, proxy: Proxy
) -> None:
    works.mail.takes_s = 0.02
    ids = set(await works.place(ORDERS))
    async with working(works, proxy.url):
        await until_mailed(works, ORDERS // 5)
        await proxy.cut()
        async with working(works, works.database_url):
            await works.until_arrived(ids, ids)
            await works.until_settled()
            await proxy.restore()
            later = set(await works.place(8))
            await works.until_arrived(ids | later, ids | later)
            await works.until_settled()
    assert twice(works) <= MAIL_CONNECTIONS


@pytest.mark.long
@pytest.mark.timeout(300)
async def test_a_worker_that_stood_still_sends_one_message_a_connection_that_others_send_too(works: Works) -> None:
    works.mail.takes_s = 0.02
    ids = set(await works.place(ORDERS))
    stopped = await works.start_worker(lease_s=LEASE_S)
    await until_mailed(works, ORDERS // 5)
    stopped.send_signal(signal.SIGSTOP)
    async with working(works, works.database_url):
        await asyncio.sleep(AWAY_S)
        await works.until_arrived(ids, ids)
        before = len(works.mail.got)
        stopped.send_signal(signal.SIGCONT)
        later = set(await works.place(8))
        await works.until_arrived(ids | later, ids | later)
        await works.until_settled()
        # A worker that ends has let go of whatever it still had in mind to send.
        stopped.terminate()
        assert await asyncio.wait_for(stopped.wait(), PATIENCE_S) == 0
    assert before < 2 * ORDERS
    assert twice(works) <= MAIL_CONNECTIONS


@pytest.mark.long
@pytest.mark.timeout(300)
async def test_a_killed_worker_leaves_one_message_a_connection_to_be_sent_again(works: Works) -> None:
    works.mail.takes_s = 0.02
    ids = set(await works.place(ORDERS))
    killed = await works.start_worker(lease_s=LEASE_S)
    await until_mailed(works, ORDERS // 5)
    killed.kill()
    await killed.wait()
    async with working(works, works.database_url):
        await works.until_arrived(ids, ids)
        await works.until_settled()
    assert twice(works) <= MAIL_CONNECTIONS


@pytest.mark.long
@pytest.mark.timeout(300)
async def test_the_lease_of_a_message_is_renewed_while_its_answer_is_awaited(works: Works) -> None:
    [slow] = await works.place(1)
    works.mail.hangs = {f"guest{slow}@example.com"}
    async with working(works, works.database_url), working(works, works.database_url):
        await works.mail.has_taken.wait()
        for _ in range(3):
            others = set(await works.place(3))
            await works.until_arrived(others, others)
            await asyncio.sleep(AWAY_S / 3)
        works.mail.released.set()
        await works.until_settled()
    assert works.mails_got().count(slow) == 1
