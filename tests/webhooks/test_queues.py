"""Queues and leases: whose turn it is, for how long, and what an outdated worker may still write."""

import asyncio
from collections import Counter

import pytest
from tests.webhooks.conftest import LOOPBACK, Receiver, World, make_principal, no_names

from largesse.base import clock
from largesse.db.scope import OPERATOR, WORKER
from largesse.jobs.leases import Lease, Terms
from largesse.webhooks import deliverer, queues
from largesse.webhooks.deliverer import Deliverer
from largesse.webhooks.outcomes import Attempted, AttemptResult, Verdict, record
from largesse.webhooks.queues import fan_out
from largesse.webhooks.transport import HttpTransport


async def take(world: World, limit: int = 10, jobs_each: int = 10) -> list[queues.SubscriptionQueue]:
    """Leases queues as a worker does."""
    async with world.database.transaction(OPERATOR) as connection:
        return await queues.take_queues(connection, limit, jobs_each, failing=False)


async def write(world: World, attempted: list[Attempted], *leaving: Lease) -> None:
    """Writes outcomes as a worker does, and gives queues back."""
    async with world.database.transaction(OPERATOR) as connection:
        await record(connection, attempted, leaving)


def delivered(queue: queues.SubscriptionQueue) -> list[Attempted]:
    """An attempt of each of a queue's jobs that the receiver accepted."""
    return [
        Attempted(queue, job, 0.0, AttemptResult(200, None, None, b"", 0.1), Verdict("delivered")) for job in queue.jobs
    ]


async def test_a_failing_subscription_moves_to_the_other_room_until_it_succeeds(
    world: World, receiver: Receiver
) -> None:
    await world.subscribe(receiver.url())
    receiver.answers(500)
    await world.send()
    assert await world.database.fetchval(OPERATOR, "SELECT failing FROM subscription_queues")
    receiver.answers(200)
    await world.place()
    await world.fan_out()
    assert not await world.deliverer.step(failing=False)
    await world.deliver()
    assert not await world.database.fetchval(OPERATOR, "SELECT failing FROM subscription_queues")
    assert sorted(await world.states()) == ["delivered", "pending"]


async def test_a_turn_ends_after_its_time_and_the_queue_waits_for_the_next(
    world: World, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliverer, "_TURN_S", 0.2)
    await world.queue(receiver.url(), 100)
    receiver.answer = receiver.hang
    await world.deliverer.step(failing=False)
    await receiver.full.wait()
    await asyncio.sleep(0.3)
    receiver.released.set()  # from here on it answers at once
    await world.deliverer.settle()
    assert len(receiver.got) == 4, "what was under way is finished, and nothing begun"
    assert sorted(await world.states()) == ["delivered"] * 4 + ["pending"] * 96
    await world.deliver()
    assert len(receiver.got) == 100, "in turns to come"


@pytest.mark.parametrize("failing", [False, True])
async def test_a_turn_has_a_bounded_number_of_deliveries(
    world: World, receiver: Receiver, failing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliverer, "_TURN_S", 600.0)  # a busy machine takes longer than a turn for so many
    await world.queue(receiver.url(), 600)
    await world.database.execute(OPERATOR, "UPDATE subscription_queues SET failing = $1", failing)
    await world.deliverer.step(failing=failing)
    await world.deliverer.settle()
    assert len(receiver.got) == (8 if failing else 512)


async def test_a_queue_that_had_its_turn_goes_to_the_back_of_the_line(world: World, receiver: Receiver) -> None:
    """However long its queue is, and however old: another's only delivery is served before its next turn."""
    first = await world.subscribe(receiver.url("/long"))
    await world.place(50)
    await world.fan_out()
    await world.advance(3600)
    async with world.database.connection(OPERATOR) as connection:
        other = await make_principal(connection, "other")
    second = await world.subscribe(receiver.url("/short"), other)
    await world.place(1, other)
    await world.fan_out()
    turns = []
    for _ in range(3):
        [queue] = await take(world, 1, 4)
        turns.append(queue.lease.key)
        await write(world, delivered(queue), queue.lease)
    assert turns == [first.id, second.id, first.id]


async def test_two_workers_never_serve_one_subscription_at_once(world: World, receiver: Receiver) -> None:
    receiver.answer = receiver.hang
    await world.queue(receiver.url(), 20)
    async with HttpTransport(LOOPBACK, 5.0, no_names) as transport:
        second = Deliverer(world.database, world.vault, transport, lambda: None)
        await asyncio.gather(*(d.step(failing=False) for d in (world.deliverer, second) for _ in range(3)))
        await receiver.full.wait()
        assert not await second.step(failing=False)
        receiver.released.set()
        await world.deliver()
        await second.close()
    assert receiver.most_in_flight == 4
    assert len(receiver.got) == 20


async def test_an_outdated_lease_writes_nothing(world: World, receiver: Receiver) -> None:
    subscription = await world.queue(receiver.url())
    [first] = await take(world)
    assert await take(world) == []
    await world.advance(20)
    [second] = await take(world)
    assert second.lease == Lease(first.lease.customer_id, subscription.id, first.lease.fence + 1)
    for queue, state in ((first, "pending"), (second, "delivered")):
        await write(world, delivered(queue), queue.lease)
        assert await world.states() == [state]
    assert await world.database.fetchval(OPERATOR, "SELECT count(*) FROM delivery_attempts") == 1


async def test_outcomes_and_a_fan_out_never_wait_for_each_other_in_a_circle(world: World, receiver: Receiver) -> None:
    await world.subscribe(receiver.url())
    await world.queue(receiver.url())
    first, second = sorted(await take(world), key=lambda queue: queue.lease.key)
    lock = "UPDATE subscription_queues SET due_at = due_at WHERE subscription_id = $1"
    async with world.database.transaction(OPERATOR) as fanning_out:
        await fanning_out.execute(lock, first.lease.key)
        writing = asyncio.create_task(write(world, delivered(second), first.lease))
        async with asyncio.timeout(30):
            while not await world.database.fetchval(
                OPERATOR,
                "SELECT EXISTS (SELECT FROM pg_locks JOIN pg_stat_activity USING (pid) "
                "WHERE NOT granted AND datname = current_database())",
            ):
                assert not writing.done()
        await fanning_out.execute(lock, second.lease.key)
    await writing
    assert sorted(await world.states()) == ["delivered", "pending"]


async def test_a_renewed_lease_does_not_run_out(world: World, receiver: Receiver) -> None:
    receiver.answer = receiver.hang
    await world.queue(receiver.url())
    await world.deliverer.step(failing=False)
    for _ in range(3):
        await world.advance(10)
        await world.deliverer.renew()
    assert await take(world) == []
    receiver.released.set()
    await world.deliverer.settle()
    assert await world.states() == ["delivered"]


async def test_a_renewal_that_comes_late_leases_nothing_again(world: World, receiver: Receiver) -> None:
    await world.queue(receiver.url())
    [queue] = await take(world)
    await write(world, [], queue.lease)
    async with world.database.connection(OPERATOR) as connection:
        await queues.SUBSCRIPTION_QUEUES.renew(connection, [queue.lease])
    [again] = await take(world)
    assert again.lease.fence == queue.lease.fence + 1


async def test_draining_finishes_what_is_in_flight_and_gives_the_rest_back(world: World, receiver: Receiver) -> None:
    receiver.answer = receiver.hang
    await world.queue(receiver.url(), 20)
    await world.deliverer.step(failing=False)
    await receiver.full.wait()
    closing = asyncio.create_task(world.deliverer.close())
    await asyncio.sleep(0)
    receiver.released.set()
    await closing
    assert len(receiver.got) == 4
    assert sorted(await world.states()) == ["delivered"] * 4 + ["pending"] * 16
    [queue] = await take(world, 10, 100)
    assert len(queue.jobs) == 16


async def test_a_subscription_made_after_the_fact_does_not_hear_of_it(world: World, receiver: Receiver) -> None:
    await world.subscribe(receiver.url())
    await world.place()
    await world.database.execute(OPERATOR, "UPDATE events SET created_at = now() - interval '2 minutes'")
    assert await world.fan_out() == 0
    left = "SELECT count(*) FROM events WHERE fanned_out_at IS NULL"
    assert await world.database.fetchval(OPERATOR, left) == 0


async def test_fan_outs_that_race_deliver_each_event_once(world: World, receiver: Receiver) -> None:
    for _ in range(5):
        await world.subscribe(receiver.url())
    await world.place(300)

    async def fan_all_out() -> int:
        made = 0
        while True:
            async with world.database.connection(OPERATOR) as connection:
                events, deliveries = await fan_out(connection, 20)
            if not events:
                return made
            made += deliveries

    assert sum(await asyncio.gather(*(fan_all_out() for _ in range(4)))) == 1500
    assert (
        await world.database.fetchval(OPERATOR, "SELECT count(DISTINCT (event_id, subscription_id)) FROM deliveries")
        == 1500
    )


async def test_a_room_holds_so_many_queues_and_no_more(
    world: World, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A quarter of them at a time; who comes later waits until one leaves."""
    monkeypatch.setattr(deliverer, "QUEUES_AT_ONCE", 8)
    receiver.answer = receiver.hang
    for number in range(10):
        await world.subscribe(receiver.url(f"/{number}"))
    await world.place()
    await world.fan_out()
    held = []
    while await world.deliverer.step(failing=False):
        held.append(len(world.deliverer._held))
    assert held == [2, 4, 6, 8]
    receiver.released.set()
    await world.deliver()
    assert await world.states() == ["delivered"] * 10


@pytest.mark.parametrize("failing", [False, True])
async def test_a_room_full_of_slow_receivers_still_serves_the_other_customers(
    world: World, receiver: Receiver, failing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two customers fill it, and wait with what is left. The third has as many receivers, of which a few are served at once."""
    monkeypatch.setattr(deliverer, "QUEUES_AT_ONCE", 8)
    receiver.answer = receiver.hang
    in_work = []
    for name in ("slow", "slower", "third"):
        async with world.database.connection(OPERATOR) as connection:
            principal = await make_principal(connection, name)
        for number in range(12):
            await world.subscribe(receiver.url(f"/{number}"), principal)
        await world.place(1, principal)
        await world.fan_out()
        await world.database.execute(OPERATOR, "UPDATE subscription_queues SET failing = $1", failing)
        while await world.deliverer.step(failing=failing):
            pass
        in_work.append(Counter(lease.customer_id for lease in world.deliverer._held)[principal.customer_id])
    assert in_work == [8, 4, 4]
    receiver.released.set()
    await world.deliver()
    assert await world.states() == ["delivered"] * 36


async def test_an_attempt_is_recorded_with_when_it_began_and_how_long_it_took(
    world: World, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1.2345 seconds, which ended half a second before they are written down."""
    await world.queue(receiver.url())
    async with world.database.transaction(WORKER) as connection:
        [queue] = await queues.take_queues(connection, 1, 1, failing=False, terms=Terms(60.0, set()))
        result = AttemptResult(200, None, None, b"", 1.2345)
        attempted = Attempted(queue, queue.jobs[0], clock.passed_s() - 0.5, result, Verdict("delivered"))
        monkeypatch.setattr(clock, "passed_s", lambda now_s=attempted.ended + 0.5: now_s)
        await record(connection, [attempted], [queue.lease])
        row = await connection.fetchrow(
            "SELECT duration_ms, extract(epoch FROM clock_now() - started_at)::float8 AS ago_s FROM delivery_attempts"
        )
    assert row is not None
    assert row["duration_ms"] == round(1234.5)
    assert row["ago_s"] == pytest.approx(1.7345)
