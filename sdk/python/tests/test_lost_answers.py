"""Answers get lost: orders with references are still placed once, and orders without are sent once."""

from __future__ import annotations

import asyncio
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from uuid import uuid4

import pytest

from largesse_client import AsyncLargesse, Largesse, errors

ORDERS = int(os.environ.get("CLIENT_ORDERS", "100"))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("orders", [ORDERS, pytest.param(1000, marks=pytest.mark.long)])
def test_every_order_is_placed_once(largesse_server, largesse, world, drop_answers, balance, orders: int) -> None:
    """Every third answer is lost, also the answers to requests about orders."""
    proxy, before, prefix = drop_answers(3), balance(), uuid4()
    last = max((record.id for record in largesse.orders.newest(limit=1)), default=0)

    async def place() -> list[str]:
        async with AsyncLargesse(proxy.url, largesse_server.api_key, attempts=20) as client:
            turns = asyncio.Semaphore(40)

            async def one(number: int) -> str:
                async with turns:
                    order = await client.send.gift(
                        world.coffee,
                        value=5,
                        code_quantity=1,
                        account_id=world.account,
                        external_reference=f"{prefix}-{number}",
                    )
                assert len(order.codes) == 1
                assert order.external_reference == f"{prefix}-{number}"
                return order.reference

            return await asyncio.gather(*map(one, range(orders)))

    heard = asyncio.run(place())
    placed = [record.reference for record in largesse.orders.list(after=last)]
    doubled = len(placed) - len(set(heard))
    print(f"{len(placed)} orders, {len(heard)} results, {doubled} doubled")  # noqa: T201 - what the test is for
    assert sorted(placed) == sorted(heard)
    assert len(set(heard)) == orders
    assert before - balance() == Decimal(5) * orders


@pytest.mark.long
def test_the_same_from_threads(largesse_server, largesse, world, drop_answers, balance) -> None:
    proxy, before = drop_answers(3), balance()
    with Largesse(proxy.url, largesse_server.api_key, attempts=20) as client, ThreadPoolExecutor(8) as threads:

        def place(number: int) -> str:
            return client.send.gift(
                world.coffee,
                value=5,
                recipients=["sam@example.com"],
                account_id=world.account,
                external_reference=f"threads-{number}",
            ).reference

        heard = list(threads.map(place, range(60)))
    assert len(set(heard)) == 60
    assert before - balance() == 300


def test_without_a_reference_nothing_is_sent_twice(largesse_server, world, drop_answers, balance) -> None:
    proxy, before = drop_answers(1), balance()
    with Largesse(proxy.url, largesse_server.api_key) as client, pytest.raises(errors.NoAnswer) as raised:
        client.send.gift(world.coffee, value=5, code_quantity=1, account_id=world.account)
    assert before - balance() == 5
    assert not isinstance(raised.value, errors.Unreachable)
    assert raised.value.request_id


@pytest.mark.parametrize(
    "ask",
    [
        lambda c: c.orders.resend("0" * 20, "sam@example.com"),
        lambda c: c.webhooks.create("https://gifts.example/hook"),
        lambda c: c.webhooks.test(uuid4()),
        lambda c: c.webhooks.redeliver(uuid4(), 1),
    ],
    ids=["resend", "create", "test", "redeliver"],
)
def test_what_would_happen_twice_is_not_repeated(listen, ask) -> None:
    """Each of these requests would do something again."""
    heard: list[int] = []

    def hang_up(connection) -> None:
        heard.append(len(connection.recv(65536)))

    with Largesse(listen(hang_up).url, "key") as client, pytest.raises(errors.NoAnswer):
        ask(client)
    assert len(heard) == 1


def test_a_resend_whose_answer_is_lost_sends_one_mail(
    largesse_server, largesse, world, drop_answers, eventually
) -> None:
    order = largesse.send.gift(world.coffee, value=5, recipients=["sam@example.com"], account_id=world.account)

    def has_left(times: int) -> bool:
        (one,) = largesse.orders.deliveries(order.reference)
        return one.sent_at is not None and one.resends == times

    eventually(lambda: has_left(0))
    with Largesse(drop_answers(2).url, largesse_server.api_key) as client:
        client.me()
        assert client.orders.resend(order.reference, "sam@example.com", resends=0).resends == 1
    eventually(lambda: has_left(1))


def test_a_subscription_whose_end_nobody_confirmed_has_ended(largesse_server, largesse, receiver, drop_answers) -> None:
    made = largesse.webhooks.create(receiver.url)
    proxy = drop_answers(2)
    with Largesse(proxy.url, largesse_server.api_key) as client:
        client.me()
        client.webhooks.delete(made.id)
    assert made.id not in [one.id for one in largesse.webhooks.list()]


def test_an_answer_that_takes_too_long(largesse_server, largesse, world, listen, balance, new_reference) -> None:
    """The first attempt is accepted and never answered. The second attempt returns the order."""
    silent = threading.Event()
    before, reference = balance(), new_reference()

    def say_nothing(connection) -> None:
        connection.recv(65536)
        silent.wait(30)

    try:
        with (
            Largesse(listen(say_nothing).url, largesse_server.api_key, timeout_s=0.2, attempts=2) as client,
            pytest.raises(errors.NoAnswer, match="ReadTimeout") as raised,
        ):
            client.send.gift(
                world.coffee, value=5, code_quantity=1, account_id=world.account, external_reference=reference
            )
    finally:
        silent.set()
    assert raised.value.__notes__ == ["It may have been carried out.", "It was tried 2 times."]
    assert balance() == before
