"""A program that uses the whole client, with the types that a checker must find. mypy and pyright read it; nothing runs it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import assert_type

from largesse_client import AsyncLargesse, Largesse, LargesseError, Recipient, errors, models, webhooks
from largesse_client.testing import Server, running


def blocking() -> None:
    with Largesse("https://gifts.example", "key", timeout_s=5, attempts=3) as largesse:
        order = largesse.send.gift(
            1,
            value=Decimal("12.50"),
            country="GB",
            recipients=[Recipient(email="sam@example.com", name="Sam", quantity=2), "ada@example.com"],
            account_id=1,
            external_reference="thanks-1",
            send_at=datetime(2030, 1, 1, tzinfo=UTC),
        )
        assert_type(order, models.Order)
        assert_type(order.total_cost, Decimal)
        assert_type(order.scheduled_for, datetime | None)
        quote = largesse.quote.gift(1, value=10, code_quantity=3, account_id=1)
        assert_type(quote, models.Quote)
        assert_type(largesse.send.gift(1, value=10, code_quantity=3, account_id=1, quote=quote.quote), models.Order)
        assert_type(largesse.send.collection(1, value=25, code_quantity=3), models.Order)
        assert_type(largesse.send.template(1, code_quantity=3, message="Welcome"), models.Order)
        assert_type(largesse.orders.list(after=0), Iterator[models.OrderRecord])
        assert_type(largesse.orders.newest(limit=5), tuple[models.OrderRecord, ...])
        assert_type(largesse.orders.get(order.reference), models.Order)
        assert_type(largesse.orders.request(order.reference), models.OrderRequest)
        assert_type(largesse.orders.cancel(order.reference), models.Cancellation)
        assert_type(largesse.orders.resend(order.reference, "sam@example.com"), models.RecipientDelivery)
        assert_type(largesse.orders.deliveries(order.reference), Iterator[models.RecipientDelivery])
        assert_type(largesse.products.list(country="IE", amount=10), Iterator[models.Product])
        assert_type(largesse.products.get(1), models.ProductInFull)
        assert_type(largesse.collections.list(), Iterator[models.Collection])
        assert_type(largesse.templates.list(), Iterator[models.Template])
        assert_type(largesse.wrappings.list(), Iterator[models.Wrapping])
        assert_type(largesse.funding_accounts.list(), Iterator[models.FundingAccount])
        assert_type(largesse.users.list(), Iterator[models.User])
        assert_type(largesse.webhooks.create("https://hooks.gifts.example/"), models.NewSubscription)
        assert_type(largesse.webhooks.list(), Iterator[models.Subscription])
        assert_type(largesse.me(), models.Identity)
        assert_type(largesse.health(), models.Health)
        largesse.webhooks.delete("7f3c1e0a-5b52-4d0e-9c55-0f3f5d1c2b6a")


async def awaiting() -> None:
    async with AsyncLargesse("https://gifts.example", "key") as largesse:
        order = await largesse.send.gift(1, value=10, code_quantity=3, account_id=1)
        assert_type(order, models.Order)
        both = await asyncio.gather(largesse.me(), largesse.orders.get(order.reference))
        assert_type(both, tuple[models.Identity, models.Order])
        async with asyncio.TaskGroup() as group:
            task = group.create_task(largesse.me())
        assert_type(task, asyncio.Task[models.Identity])
        assert_type(largesse.orders.list(), AsyncIterator[models.OrderRecord])
        async for product in largesse.products.list():
            assert_type(product, models.Product)
        await largesse.webhooks.delete("7f3c1e0a-5b52-4d0e-9c55-0f3f5d1c2b6a")


def wrong(largesse: Largesse) -> None:
    """A checker must report each of these lines: an unused `ignore` is an error, too."""
    largesse.send.gift(1, value=12.5, code_quantity=1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    largesse.send.gift("1", code_quantity=1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    largesse.send.gift(1, recipient="x")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    largesse.orders.get()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def hearing(body: bytes, headers: dict[str, str], secret: str) -> str | None:
    try:
        event = webhooks.verify(body, headers, secret)
    except errors.InvalidWebhook:
        return None
    assert_type(event.order, models.OrderRecord)
    return event.order.reference


def failing(largesse: Largesse) -> str | None:
    try:
        largesse.me()
    except errors.ReferenceUsed as used:
        assert_type(used.differences, tuple[str, ...])
        return used.order_reference
    except errors.Problem as problem:
        return problem.detail
    except LargesseError as error:
        return error.request_id
    return None


def trying() -> None:
    with running() as server:
        assert_type(server, Server)
        assert_type(server.client(), Largesse)
        assert_type(server.async_client(), AsyncLargesse)
