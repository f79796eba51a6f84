"""The list of webhooks that fail, of all customers and of one."""

from __future__ import annotations

from tests.webhooks.conftest import Receiver, World, make_principal

from largesse.db.scope import OPERATOR
from largesse.webhooks.failing import FailingWebhook, find_failing, list_failing
from largesse.webhooks.store import redeliver_failed


async def failing(world: World, customer_id: int | None = None) -> list[FailingWebhook]:
    async with world.database.connection(OPERATOR) as connection:
        return await list_failing(connection, customer_id)


async def test_webhooks_are_listed_while_they_fail_and_with_what_failed_for_good(
    world: World, receiver: Receiver
) -> None:
    async with world.database.transaction(OPERATOR) as connection:
        other = await make_principal(connection, "globex")
    mine, theirs = await world.subscribe(receiver.url()), await world.subscribe(receiver.url("/other"), other)
    receiver.answers(200)
    await world.place()
    await world.deliver()
    assert await failing(world) == []
    receiver.answers(503)
    await world.place()
    await world.place(principal=other)
    await world.deliver()
    assert {one.id for one in await failing(world)} == {mine.id, theirs.id}
    (one,) = await failing(world, world.principal.customer_id)
    assert (one.id, one.is_failing, one.failed, one.environment) == (mine.id, True, 0, "production")
    receiver.answers(404)
    await world.advance(60)
    await world.deliver()
    assert await failing(world) == []
    (one,) = await failing(world, world.principal.customer_id)
    assert (one.id, one.is_failing, one.failed) == (mine.id, False, 1)
    async with world.database.transaction(OPERATOR) as connection:
        assert await find_failing(connection, world.principal.customer_id, theirs.id) is None
        assert await find_failing(connection, world.principal.customer_id, mine.id) == one
        assert await redeliver_failed(connection, world.principal, mine.id) == 1
    assert await failing(world, world.principal.customer_id) == []
