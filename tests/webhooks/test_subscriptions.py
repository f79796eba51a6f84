"""Subscriptions and their secrets. While one is rotated, deliveries are signed with both for 24 hours, and with the new one alone from then on."""

import asyncio
import base64
from uuid import uuid4

import pytest
from msgspec.structs import replace
from standardwebhooks import Webhook, WebhookVerificationError
from tests.distributed import WAITING
from tests.waiting import until
from tests.webhooks.conftest import Got, Receiver, World, make_principal

from largesse.base.errors import InvalidRequest, StateConflict
from largesse.db.pool import Database
from largesse.db.scope import OPERATOR, WORKER
from largesse.encryption.vault import DecryptionFailed, Vault
from largesse.webhooks import queues, store
from largesse.webhooks.targets import parse_target

VAULT = Vault((bytes(range(32)),))
TARGET = parse_target("https://hooks.example.com/orders", ())


async def test_a_subscription_is_listed_without_its_secret(database: Database) -> None:
    async with database.connection(OPERATOR) as connection:
        principal = await make_principal(connection, "acme")
        first = await store.insert_subscription(connection, principal, VAULT, TARGET, "order.created")
        second = await store.insert_subscription(connection, principal, VAULT, TARGET, "order.created")
        listed = await store.list_subscriptions(connection, principal)
    assert [s.id for s in listed] == [second.id, first.id]
    assert (listed[0].event, listed[0].target_url) == ("order.created", TARGET.url)
    assert first.secret.startswith("whsec_")
    assert len(base64.b64decode(first.secret.removeprefix("whsec_"), validate=True)) == 33
    assert first.secret != second.secret
    assert first.secret not in repr(first)
    assert not hasattr(listed[0], "secret")


async def test_the_secret_rests_sealed_and_opens_for_its_own_subscription(database: Database) -> None:
    async with database.connection(OPERATOR) as connection:
        principal = await make_principal(connection, "acme")
        created = await store.insert_subscription(connection, principal, VAULT, TARGET, "order.created")
        row = await connection.fetchrow("SELECT * FROM webhook_subscriptions")
    secret = created.secret.encode()
    random_part = created.secret.removeprefix("whsec_")
    assert random_part not in str(dict(row))
    assert secret not in row["sealed_secret"]
    assert random_part.encode() not in row["sealed_secret"]
    assert VAULT.webhooks.open(row["sealed_secret"], store.secret_context(created.id)) == secret
    with pytest.raises(DecryptionFailed):
        VAULT.webhooks.open(row["sealed_secret"], store.secret_context(uuid4()))


async def test_a_customer_holds_100_and_not_101_in_both_environments_together(database: Database) -> None:
    async with database.connection(OPERATOR) as connection:
        acme, other = await make_principal(connection, "acme"), await make_principal(connection, "other")
        staging = replace(acme, environment="staging")
        for number in range(100):
            principal = staging if number % 2 else acme
            created = await store.insert_subscription(connection, principal, VAULT, TARGET, "order.created")
        for principal in (acme, staging):
            with pytest.raises(InvalidRequest, match="at most 100"):
                await store.insert_subscription(connection, principal, VAULT, TARGET, "order.created")
        await store.insert_subscription(connection, other, VAULT, TARGET, "order.created")
        await store.delete_subscription(connection, staging, created.id)
        await store.insert_subscription(connection, acme, VAULT, TARGET, "order.created")


@pytest.mark.slow
async def test_the_limit_holds_when_creations_race(database: Database) -> None:
    async with database.connection(OPERATOR) as connection:
        acme = await make_principal(connection, "acme")
        for _ in range(95):
            await store.insert_subscription(connection, acme, VAULT, TARGET, "order.created")

    async def create() -> bool:
        async with database.transaction(OPERATOR) as connection:
            try:
                await store.insert_subscription(connection, acme, VAULT, TARGET, "order.created")
            except InvalidRequest:
                return False
            return True

    created = await asyncio.gather(*(create() for _ in range(16)))
    assert sum(created) == 5
    assert await database.fetchval(OPERATOR, "SELECT count(*) FROM webhook_subscriptions") == 100


DAY_S = 86_400


async def rotate(world: World, subscription_id: object, customer_id: int | None = None) -> store.RotatedSecret:
    customer = customer_id or world.principal.customer_id
    async with world.database.transaction(OPERATOR) as connection:
        return await store.rotate_secret(connection, world.vault, (customer, "production"), subscription_id)


async def deliver(world: World, receiver: Receiver) -> Got:
    await world.send()
    return receiver.got[-1]


def verifies(got: Got, secret: str) -> bool:
    try:
        Webhook(secret).verify(got.body, {name.lower(): value for name, value in got.headers.items()})
    except WebhookVerificationError:
        return False
    return True


async def test_of_two_rotations_at_once_one_is_refused_and_the_secret_of_receivers_goes_on(
    world: World, receiver: Receiver
) -> None:
    made = await world.subscribe(receiver.url())
    async with world.database.transaction(OPERATOR) as connection:
        await connection.execute("SELECT FROM webhook_subscriptions FOR UPDATE")
        both = [asyncio.create_task(rotate(world, made.id)) for _ in range(2)]
        await until(lambda: world.database.fetch(OPERATOR, f"SELECT WHERE ({WAITING}) = 2"))
    rotated, refused = sorted(
        await asyncio.gather(*both, return_exceptions=True), key=lambda one: isinstance(one, Exception)
    )
    assert isinstance(refused, StateConflict)
    assert isinstance(rotated, store.RotatedSecret)
    got = await deliver(world, receiver)
    assert verifies(got, made.secret)
    assert verifies(got, rotated.secret)


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
    await world.database.execute(WORKER, queues.END_PREVIOUS_SECRETS)
    assert await world.database.fetchval(OPERATOR, left) == 0


async def test_further_rotations_end_no_secret_that_receivers_may_have(world: World, receiver: Receiver) -> None:
    made = await world.subscribe(receiver.url())
    secrets = [made.secret, *[(await rotate(world, made.id)).secret for _ in range(store.MOST_PREVIOUS)]]
    got = await deliver(world, receiver)
    assert [verifies(got, one) for one in secrets] == [True] * len(secrets)
    assert got.is_signed_with(made.secret)
    secrets.append((await rotate(world, made.id)).secret)
    await world.database.execute(WORKER, queues.END_PREVIOUS_SECRETS)
    got = await deliver(world, receiver)
    assert [verifies(got, one) for one in secrets] == [False, *[True] * (store.MOST_PREVIOUS + 1)]
    await world.advance(DAY_S + 1)
    secrets.append((await rotate(world, made.id)).secret)
    got = await deliver(world, receiver)
    assert [verifies(got, one) for one in secrets] == [*[False] * (len(secrets) - 2), True, True], (
        "the earlier ones have ended"
    )
