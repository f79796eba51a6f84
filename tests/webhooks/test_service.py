"""Operations on webhooks: each needs the right, is throttled, and is recorded once."""

from uuid import uuid4

import pytest
from msgspec.structs import replace
from tests.chained import actor_on
from tests.webhooks.conftest import LOOPBACK, Receiver, World, no_names

from largesse.base.errors import TooManyRequests
from largesse.customers.actor import Actor
from largesse.db.scope import OPERATOR
from largesse.webhooks.service import (
    DeliveryThrottle,
    create_subscription,
    redeliver,
    redeliver_failed,
    remove_subscription,
    send_sample,
)


async def person_of(world: World, role: str = "admin") -> Actor:
    made = await actor_on(world.database, world.vault, world.principal.customer_id, "production", user_id=1)
    assert made.person is not None
    person = replace(made.person, role=role)
    # A subscription refers to who created it, and the table of users is empty: it is as if the service account did.
    caller = replace(person.principal, user_id=None, service_account_id=world.principal.service_account_id)
    return replace(made, person=person, caller=caller)


async def acts(world: World) -> list[str]:
    rows = await world.database.fetch(OPERATOR, "SELECT act, after::text FROM audit_events ORDER BY id")
    return [" ".join(filter(None, row)) for row in rows]


async def test_each_act_of_a_person_is_recorded_once(world: World, receiver: Receiver) -> None:
    """Without what may be secret in the address: more people read the log than may open the webhook."""
    person, throttle = await person_of(world), DeliveryThrottle()
    made = await create_subscription(
        person, world.vault, receiver.url("/hook?token=s3cret"), "order.created", allowed=LOOPBACK, look_up=no_names
    )
    sample = await send_sample(person, throttle, made.id)
    receiver.answers(404)
    await world.deliver()
    await redeliver(person, throttle, made.id, sample.id)
    await world.deliver()
    assert await redeliver_failed(person, throttle, made.id) == 1
    assert await redeliver_failed(person, throttle, made.id) == 0
    await remove_subscription(person, made.id)

    assert await acts(world) == [
        f'webhook.created {{"event":"order.created","target_url":"{receiver.url("")}"}}',
        'webhook.redelivered {"deliveries":1}',
        'webhook.redelivered {"deliveries":1}',
        "webhook.deleted",
    ]


async def test_deliveries_that_failed_and_wait_for_their_next_attempt_are_redelivered(
    world: World, receiver: Receiver
) -> None:
    made = await world.subscribe(receiver.url())
    person, throttle = await person_of(world), DeliveryThrottle()
    receiver.answers(503)
    await world.send()
    assert await redeliver_failed(person, throttle, made.id) == 1
    assert await redeliver_failed(person, throttle, made.id) == 0, "due already"
    receiver.answers(200)
    await world.deliver()
    assert await world.states() == ["delivered"]
    assert await redeliver_failed(person, throttle, made.id) == 0


async def test_redeliveries_of_a_key_are_not_recorded(world: World, receiver: Receiver) -> None:
    made = await world.subscribe(receiver.url())
    key = replace(await person_of(world), person=None, caller=world.principal)
    throttle = DeliveryThrottle()
    sample = await send_sample(key, throttle, made.id)
    await redeliver(key, throttle, made.id, sample.id)

    assert await acts(world) == []


async def test_an_operation_counts_what_is_requested(world: World, receiver: Receiver) -> None:
    made = await world.subscribe(receiver.url())
    person, throttle = await person_of(world), DeliveryThrottle(now_s=lambda: 0.0)
    for _ in range(10):
        await send_sample(person, throttle, made.id)
    with pytest.raises(TooManyRequests, match="10 samples"):
        await send_sample(person, throttle, made.id)
    for _ in range(50):
        throttle.count_redelivery(person.customer_id)
    for refused in (redeliver_failed(person, throttle, made.id), redeliver(person, throttle, made.id, 1)):
        with pytest.raises(TooManyRequests, match="60 samples and redeliveries"):
            await refused


def test_a_subscription_is_sent_10_samples_a_minute_and_a_refused_one_is_not_counted() -> None:
    throttle, subscription = DeliveryThrottle(now_s=lambda: 0.0), uuid4()
    for _ in range(10):
        throttle.count_sample(1, subscription)
    for _ in range(100):
        with pytest.raises(TooManyRequests, match="10 samples") as refused:
            throttle.count_sample(1, subscription)
    assert refused.value.retry_after_s == 6
    throttle.count_sample(2, subscription)  # who only guesses the id uses nothing up
    for _ in range(50):
        throttle.count_redelivery(1)
    for ask in (lambda: throttle.count_redelivery(1), lambda: throttle.count_sample(1, uuid4())):
        with pytest.raises(TooManyRequests, match="60 samples and redeliveries"):
            ask()


def test_test_events_and_advances_of_the_clock_have_allowances_of_their_own() -> None:
    throttle = DeliveryThrottle(now_s=lambda: 0.0)
    for count, said in (
        (throttle.count_advance, "advances the test clock at most 60 times a minute"),
        (throttle.count_test_event, "makes at most 60 test events a minute"),
        (throttle.count_redelivery, "asks for at most 60 samples and redeliveries a minute"),
    ):
        for _ in range(60):
            count(1)
        with pytest.raises(TooManyRequests, match=said):
            count(1)
        count(2)
