"""Rotating a secret: deliveries are signed with both for 24 hours, and with the new one alone from then on."""

from __future__ import annotations

import pytest
from standardwebhooks import Webhook, WebhookVerificationError
from tests.webhooks.conftest import Got, Receiver, World, principal, receiver, world

from largesse.base.errors import NotFound
from largesse.db.scope import OPERATOR, WORKER
from largesse.webhooks import queue_store
from largesse.webhooks.store import RotatedSecret, rotate_secret

__all__ = ["principal", "receiver", "world"]
DAY_S = 86_400


async def rotate(world: World, subscription_id: object, customer_id: int | None = None) -> RotatedSecret:
    customer = customer_id or world.principal.customer_id
    async with world.database.transaction(OPERATOR) as connection:
        return await rotate_secret(connection, world.vault, customer, "production", subscription_id)


async def deliver(world: World, receiver: Receiver) -> Got:
    await world.place()
    await world.deliver()
    return receiver.got[-1]


def verifies(got: Got, secret: str) -> bool:
    try:
        Webhook(secret).verify(got.body, {name.lower(): value for name, value in got.headers.items()})
    except WebhookVerificationError:
        return False
    return True


async def test_both_secrets_sign_for_a_day(world: World, receiver: Receiver) -> None:
    made = await world.subscribe(receiver.url())
    rotated = await rotate(world, made.id)
    assert rotated.secret not in repr(rotated)
    got = await deliver(world, receiver)
    assert verifies(got, made.secret)
    assert verifies(got, rotated.secret)
    assert got.is_signed_with(made.secret)
    assert "X-Service-Signature-New" in got.headers

    await world.advance(DAY_S - 60)
    assert len((await deliver(world, receiver)).headers["webhook-signature"].split()) == 2
    await world.advance(61)
    got = await deliver(world, receiver)
    assert "X-Service-Signature-New" not in got.headers
    assert got.is_signed_with(rotated.secret)
    assert len(got.headers["webhook-signature"].split()) == 1

    left = "SELECT count(previous_secret) FROM webhook_subscriptions"
    assert await world.database.fetchval(OPERATOR, left) == 1
    await world.database.execute(WORKER, queue_store.END_PREVIOUS_SECRETS)
    assert await world.database.fetchval(OPERATOR, left) == 0


async def test_a_further_rotation_ends_the_oldest_secret(world: World, receiver: Receiver) -> None:
    made = await world.subscribe(receiver.url())
    first, second = await rotate(world, made.id), await rotate(world, made.id)
    got = await deliver(world, receiver)
    assert [verifies(got, one.secret) for one in (made, first, second)] == [False, True, True]
    await world.database.execute(WORKER, queue_store.END_PREVIOUS_SECRETS)
    assert verifies(await deliver(world, receiver), first.secret), "it ends in a day"


async def test_a_secret_of_another_customer_is_not_found(world: World, receiver: Receiver) -> None:
    made = await world.subscribe(receiver.url())
    with pytest.raises(NotFound):
        await rotate(world, made.id, customer_id=world.principal.customer_id + 1)
    assert len((await deliver(world, receiver)).headers["webhook-signature"].split()) == 1
