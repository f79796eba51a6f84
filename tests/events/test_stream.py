"""Recorded events: each reaches the subscribers of its type once what it tells of has been committed, and has one place in the stream.

Nothing is read past an event that is still to come.
"""

import asyncio
import json
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace
from tests.distributed import IS_DISTRIBUTED
from tests.plans import rows_read
from tests.webhooks.conftest import Receiver, World, principal, receiver, world

from largesse.base.errors import InvalidRequest
from largesse.db.pool import Connection, Database
from largesse.db.roles import Role
from largesse.db.scope import OPERATOR
from largesse.events import store
from largesse.events.kinds import ORDER_CREATED, Sampled
from largesse.events.store import START, StreamedEvent, read_cursor, read_stream, record_event
from largesse.webhooks import delivery_store
from largesse.webhooks.queues import fan_out

__all__ = ["principal", "receiver", "world"]


async def record(world: World, connection: Connection, environment: str = "production") -> bytes:
    """Records a sample as an order's event; returns the body."""
    now = await connection.fetchval("SELECT clock_now()")
    customer_id = world.principal.customer_id
    payload = ORDER_CREATED.sample(Sampled(customer_id, world.principal.service_account_id, datetime.now(UTC)))
    await record_event(
        connection, ORDER_CREATED, payload, order_id=7, customer_id=customer_id, environment=environment, at=now
    )
    return ORDER_CREATED.body(payload)


async def stream(
    world: World, after: int | None = 0, limit: int = 200, environment: str = "production"
) -> list[StreamedEvent]:
    async with world.database.connection(OPERATOR) as connection:
        return await read_stream(connection, (world.principal.customer_id, environment), after=after, limit=limit)


async def test_events_are_in_the_stream_once_they_are_fanned_out(world: World) -> None:
    bodies = await world.place(3)
    assert await stream(world) == []
    await world.fan_out()
    assert [one.body for one in await stream(world)] == bodies
    assert [one.body for one in await stream(world, None, 2)] == [bodies[2], bodies[1]]
    assert await stream(world, environment="staging") == []
    first, second, third = await stream(world)
    assert [one.body for one in await stream(world, read_cursor(second.cursor))] == [third.body]
    assert await stream(world, third.position) == []
    assert first.position < second.position < third.position


@pytest.mark.skipif(IS_DISTRIBUTED, reason="what a node reads is not among what its coordinator explains")
async def test_a_page_reads_no_other_events(world: World) -> None:
    async with world.database.connection(OPERATOR) as connection:
        await connection.execute(
            """
            INSERT INTO events (customer_id, environment, event, body, created_at, fanned_out_at, position)
            SELECT $1, 'production', 'order.created', '', now(), now(), n FROM generate_series(1, 5000) AS n
            """,
            world.principal.customer_id,
        )
        await connection.execute("ANALYZE events")
        await connection.execute("SET random_page_cost = 4")  # as a server has it whose settings nobody changed
        of_customer = world.principal.customer_id, "production"
        for statement, position in ((store._NEWEST, store._PAST_ALL), (store._AFTER, 0), (store._AFTER, 2000)):
            page = *of_customer, position, 100, store.DAYS
            assert await rows_read(connection, Role.APP, "events", statement, *page) == 100


@pytest.mark.skipif(IS_DISTRIBUTED, reason="what a node reads is not among what its coordinator explains")
async def test_the_event_of_an_order_is_found_without_reading_the_others(database: Database) -> None:
    async with database.connection(OPERATOR) as connection:
        await connection.execute(
            """
            INSERT INTO events (order_id, customer_id, environment, event, body, created_at, fanned_out_at)
            SELECT n, 1, 'production', 'order.created', '', now() - n * interval '1 second', CASE WHEN n > 10 THEN now() END
            FROM generate_series(1, 20000) AS n
            """
        )
        await connection.execute("ANALYZE events")
        at = await connection.fetchval("SELECT created_at FROM events WHERE order_id = 500")
        for role, statement, arguments in (
            (Role.APP, delivery_store._EVENT_OF_ORDER, (1, at, 500)),
            (Role.OPERATOR, store._BODIES, (1, 500, "order.created", at)),
        ):
            assert await rows_read(connection, role, "events", statement, *arguments) <= 11


async def test_an_event_that_is_committed_late_comes_after_those_that_were_read(world: World) -> None:
    async with world.database.transaction(OPERATOR) as connection:
        late = await record(world, connection)
        await world.place(2)
        await world.fan_out()
        before = await stream(world)
        assert len(before) == 2
    await world.fan_out()
    assert [one.body for one in await stream(world, before[-1].position)] == [late]


async def test_another_worker_waits_for_its_turn(world: World) -> None:
    bodies = await world.place(4)
    async with world.database.connection(OPERATOR) as other:
        async with world.database.transaction(OPERATOR) as connection:
            assert (await fan_out(connection, 2))[0] == 2
            waiting = asyncio.create_task(fan_out(other, 10))
            await asyncio.sleep(0.2)
            assert not waiting.done()
        assert await waiting == (2, 0)
    assert [one.body for one in await stream(world)] == bodies


async def test_what_is_older_than_30_days_is_not_read(world: World) -> None:
    await world.place(1)
    await world.fan_out()
    await world.advance(29.9 * 86_400)
    [kept] = await stream(world)
    await world.advance(0.2 * 86_400)
    assert await stream(world) == []
    assert kept.created_at < datetime.now(UTC)


def test_a_cursor_is_read_back_and_nothing_else_is() -> None:
    for position in (1, 7, 2**40, 2**63 - 1):
        assert read_cursor(StreamedEvent(position, "", datetime.now(UTC), b"").cursor) == position
    assert read_cursor(START) == 0
    for text in (
        "",
        "0",
        "end",
        "AAAAAAAAAA",
        "AAAAAAAAAAcA",
        "//////////8",
        "AAAAAAAA AAc",
        "\N{SNOWMAN}",
        "_________-8",
    ):
        with pytest.raises(InvalidRequest, match="`after` must be the `cursor` of an event, or `start`"):
            read_cursor(text)


async def test_a_recorded_event_arrives_signed(world: World, receiver: Receiver) -> None:
    subscription = await world.subscribe(receiver.url())
    async with world.database.transaction(OPERATOR) as connection:
        body = await record(world, connection)
        assert await world.fan_out() == 0, "nobody hears of what is not committed"
    await world.deliver()
    [got] = receiver.got
    assert (got.body, got.headers["X-Service-Event"]) == (body, "order.created")
    assert got.is_signed_with(subscription.secret)
    assert json.loads(got.body)["customerId"] == world.principal.customer_id
    await world.deliver()
    assert len(receiver.got) == 1, "an event is fanned out once"


async def test_an_event_of_another_environment_is_not_heard(world: World, receiver: Receiver) -> None:
    await world.subscribe(receiver.url())
    await world.subscribe(receiver.url("/staging"), replace(world.principal, environment="staging"))
    async with world.database.transaction(OPERATOR) as connection:
        await record(world, connection, "staging")
    await world.deliver()
    assert [got.path for got in receiver.got] == ["/staging"]
