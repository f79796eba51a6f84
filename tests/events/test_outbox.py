"""An event that is recorded reaches the subscribers of its type, once what it tells of has been committed."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

from tests.webhooks.conftest import Receiver, World, principal, receiver, world

from largesse.db.pool import Connection
from largesse.db.scope import OPERATOR
from largesse.events.kinds import ORDER_CREATED, Sampled
from largesse.events.store import record_event

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
