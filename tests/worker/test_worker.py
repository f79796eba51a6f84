"""The whole worker, in this process and as processes of its own that are stopped and killed."""

import asyncio
import os
import random
import resource
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import pytest
from msgspec.structs import replace
from prometheus_client import REGISTRY, generate_latest
from tests.waiting import until
from tests.worker.conftest import PATIENCE_S, Works

from largesse.base.settings import MAIL_CONNECTIONS
from largesse.customers.members import add_user
from largesse.db.pool import Database
from largesse.db.scope import OPERATOR
from largesse.jobs.leases import LEASE_S
from largesse.jobs.notifier import News, notify
from largesse.jobs.outbox import mail_users
from largesse.worker import DATABASE_CONNECTIONS, Worker, _cancel

# Few in the suite, more on demand: 10,000 orders and 20 kills are KILL_ORDERS=10000 KILL_ROUNDS=20.
ORDERS = int(os.environ.get("KILL_ORDERS", "400"))
ROUNDS = int(os.environ.get("KILL_ROUNDS", "4"))


@asynccontextmanager
async def working(
    works: Works, *, mail_connections: int = MAIL_CONNECTIONS, lease_s: float = LEASE_S
) -> AsyncIterator[Worker]:
    database = await Database.connect(works.database_url, max_connections=DATABASE_CONNECTIONS)
    settings = replace(works.settings, smtp_url=f"{works.mail.url}?connections={mail_connections}")
    async with Worker(database, settings, works.vault, lease_s=lease_s) as worker:
        yield worker
    await database.close()


async def test_events_and_mails_of_orders_go_out_at_once(works: Works) -> None:
    async with working(works) as worker:
        for loop in worker._working:
            loop._every_s = 1000.0  # a poll would come too late
        for _ in range(3):
            ids = set(await works.place(20))
            async with works.database.connection(OPERATOR) as connection:
                await notify(connection)
            await works.until_arrived(ids, ids)
        await works.until_settled()
    assert len(works.receiver.got) == len(works.mail.got) == 60


async def test_mail_takes_no_more_connections_than_set(works: Works) -> None:
    works.mail.takes_s = 0.01  # so long that others could lease the rest
    ids = set(await works.place(200))
    async with working(works, mail_connections=2):
        await works.until_arrived(ids, ids)
    assert works.mail.connections == 2


class _Full(asyncio.Protocol):
    """A mail server's answer to a connection too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.write(b"421 4.7.0 Too many connections\r\n")  # type: ignore[attr-defined]
        transport.close()


async def test_all_mail_leaves_by_the_connections_that_a_mail_server_allows(
    works: Works, monkeypatch: pytest.MonkeyPatch
) -> None:
    takes = works.mail.protocol
    monkeypatch.setattr(works.mail, "protocol", lambda: takes() if works.mail.connections <= 2 else _Full())
    works.mail.takes_s = 0.01
    ids = set(await works.place(300))
    async with working(works):
        await works.until_arrived(ids, ids)
        await works.until_settled()
    assert works.mail.connections > 2, "more were tried"
    assert len(works.mail.got) == 300


async def test_new_orders_need_no_polling_and_wake_nothing_but_what_fans_out(works: Works) -> None:
    async with working(works) as worker:
        first = set(await works.place(1))
        await works.until_arrived(first, first)
        for loop in worker._working:
            loop._every_s = 1000.0
            loop.waker.wake()
        await asyncio.sleep(0.5)  # each has looked once more, and waits
        before = {loop.name: loop.waker.calls for loop in worker._working}
        worker.wake(News.ORDERS)
        woken = {loop.name for loop in worker._working if loop.waker.calls > before[loop.name]}
        assert woken == {"fan_out_events", "fan_out_mail"}
        ids = set(await works.place(5))
        async with works.database.connection(OPERATOR) as connection:
            await notify(connection, News.ORDERS)
        await works.until_arrived(ids, ids)


async def test_scheduled_mail_waits_while_its_event_does_not(works: Works) -> None:
    async with working(works):
        ids = set(await works.place(5, due_in_s=3600))
        await works.until_arrived(ids, set())
        await works.office.advance(3540)  # however long a busy machine takes, there is time left
        later = set(await works.place(1))
        await works.until_arrived(later, later)
        assert set(works.mails_got()) == later
        await works.office.advance(60)
        await works.until_arrived(ids, ids, longest_s=5)


async def test_mail_to_people_that_a_mail_server_is_slow_to_take_is_due_to_no_other_worker(works: Works) -> None:
    works.mail.hangs.add("ada@acme.example")
    async with works.database.transaction(OPERATOR) as connection:
        user_id = await add_user(connection, works.office.principal.customer_id, "ada@acme.example", "Ada", "member")
        await mail_users(connection, "test", [user_id], content=b"Subject: Test\r\n\r\nTest\r\n")
    later = "SELECT due_at > clock_now() + interval '30 seconds' FROM people_mails"
    async with working(works, lease_s=0.3):
        await works.mail.has_taken.wait()
        await works.office.advance(600)
        await until(lambda: works.database.fetchval(OPERATOR, later))
        works.mail.released.set()
        await until(lambda: works.database.fetchval(OPERATOR, "SELECT count(*) = 0 FROM people_mails"))
    assert len(works.mail.got) == 1


async def test_what_a_worker_did_is_counted(works: Works) -> None:
    def count(name: str, **labels: str) -> float:
        return REGISTRY.get_sample_value(name, labels) or 0.0

    before = (
        count("largesse_webhook_attempts_total", outcome="delivered"),
        count("largesse_mails_total", outcome="sent"),
    )
    async with working(works):
        ids = set(await works.place(7))
        await works.until_arrived(ids, ids)
        await works.until_settled()
    after = (
        count("largesse_webhook_attempts_total", outcome="delivered"),
        count("largesse_mails_total", outcome="sent"),
    )
    assert (after[0] - before[0], after[1] - before[1]) == (7, 7)
    told = generate_latest().decode()
    secrets = [works.subscription.secret, works.receiver.url(), works.office.principal.customer_name, "guest"]
    assert [secret for secret in secrets if secret in told] == []


async def test_a_worker_may_open_as_many_sockets_as_it_has_room_for(works: Works) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, before[1]))
    try:
        async with working(works):
            soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            assert soft >= min(2048, hard)
            assert hard == before[1]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.slow
async def test_sigterm_drains_and_leaves_the_rest_to_others(works: Works) -> None:
    works.receiver.answer = works.receiver.hang
    worker = await works.start_worker()
    ids = set(await works.place(30))
    async with asyncio.timeout(PATIENCE_S):
        await works.receiver.full.wait()
    worker.send_signal(signal.SIGTERM)
    await works.until_logged("worker.draining")
    works.receiver.released.set()
    assert await asyncio.wait_for(worker.wait(), PATIENCE_S) == 0
    assert len(works.receiver.got) == 4, "what was in flight, and nothing after"
    leased = await works.database.fetchval(
        OPERATOR, "SELECT count(*) FROM subscription_queues WHERE leased_until > clock_now()"
    )
    assert leased == 0
    await works.start_worker()
    await works.until_arrived(ids, ids)
    assert len(works.receiver.got) == 30, "nothing twice"
    assert b"Traceback" not in (works.folder / "worker.log").read_bytes()


@pytest.mark.long
@pytest.mark.timeout(900)
async def test_killed_workers_lose_nothing_and_send_nothing_early(works: Works) -> None:
    moments = random.Random(20)
    scheduled = set(await works.place(20, due_in_s=86_400))
    ids: set[int] = set()
    workers = [await works.start_worker() for _ in range(2)]
    for round_number in range(ROUNDS):
        ids |= set(await works.place(ORDERS // ROUNDS))
        await works.until_more_arrived(moments.randint(1, 40))
        victim = round_number % 2
        workers[victim].kill()
        await workers[victim].wait()
        workers[victim] = await works.start_worker()
    await works.until_arrived(ids | scheduled, ids, longest_s=PATIENCE_S + ORDERS / 50)
    await works.until_settled()
    events, mails = works.events_heard(), works.mails_got()
    assert set(events) == ids | scheduled
    assert set(mails) == ids
    repeats = len(events) - len(set(events)) + len(mails) - len(set(mails))
    print(f"{ROUNDS} kills, {len(ids)} orders: {repeats / (len(events) + len(mails)):.2%} sent twice")  # noqa: T201
    assert repeats <= ROUNDS * 120, "no more than what a worker has under way"
    message_ids = [message["Message-ID"] for message in works.mail.messages()]
    assert len(set(message_ids)) == len(ids), "a repeat is the same message"


async def test_a_cancellation_that_is_lost_is_said_again() -> None:
    lost = 0

    async def lose_two() -> None:
        nonlocal lost
        while True:
            try:
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    raise asyncpg.InterfaceError("cannot perform operation") from None
            except asyncpg.InterfaceError:
                lost += 1
                if lost == 3:
                    return

    tasks = [asyncio.create_task(lose_two())]
    await asyncio.sleep(0)
    async with asyncio.timeout(30):
        await _cancel(tasks)
    assert lost == 3
