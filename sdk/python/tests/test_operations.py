"""Every operation, through both clients, on a real service."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from uuid import UUID, uuid4

import msgspec
import pytest

from largesse_client import Ignored, Recipient, errors, models

SAM = Recipient(email="sam@example.com", name="Sam")


def test_who_asks(ask) -> None:
    me = ask(lambda c: c.me())
    assert (me.customer_name, me.environment) == ("Acme Ltd", models.Environment.PRODUCTION)
    assert ask(lambda c: c.health()).status is models.HealthStatus.PASS
    assert {user.email for user in ask(lambda c: c.users.list(page_size=1))} >= {"ada@acme.example"}


def test_the_catalogue(ask, world) -> None:
    products = ask(lambda c: c.products.list(page_size=3))
    assert products == ask(lambda c: c.products.list())
    assert len({product.id for product in products}) == len(products) > 6
    hamper = ask(lambda c: c.products.get(world.hamper, country="IE"))
    assert isinstance(hamper.total_price, Decimal)
    assert hamper.total_price.as_tuple().exponent >= -2
    assert hamper != ask(lambda c: c.products.get(world.hamper))
    assert isinstance(hamper.picture, str)
    assert isinstance(hamper.description, str)
    cheap = ask(lambda c: c.products.list(currency="gbp", amount=Decimal("5.00"), keyword="coffee"))
    assert [product.id for product in cheap] == [world.coffee]
    assert ask(lambda c: c.products.list(amount=Decimal("0.001"))) == []
    curated = ask(lambda c: c.collections.get(world.curated))
    assert curated in ask(lambda c: c.collections.list(country="GB", currency="GBP", amount=1000))
    assert all(isinstance(point, Decimal) for point in curated.value_points)
    assert "confetti" in {wrapping.key for wrapping in ask(lambda c: c.wrappings.list())}
    templates = ask(lambda c: c.templates.list(page_size=2))
    assert templates == ask(lambda c: c.templates.list())
    assert templates[0].creation_date.utcoffset() == timedelta()


def test_a_gift_by_mail(ask, world, new_reference) -> None:
    at = datetime.now(UTC) + timedelta(days=1)
    reference = new_reference()
    order = ask(
        lambda c: c.send.gift(
            world.coffee,
            value=Decimal(10),
            country="GB",
            recipients=[SAM, "ada@example.com"],
            account_id=world.account,
            external_reference=reference,
            send_at=at,
            wrapping_key="confetti",
            from_name="Zo\u00eb",
            message="Thank you!",
            expiry_after_days=30,
            source="HR portal",
        )
    )
    assert (order.value, order.total_cost, order.currency) == (Decimal(10), Decimal(20), "GBP")
    assert order.delivery_mode is models.DeliveryMode.SEND
    assert order.scheduled_for == at
    assert order.codes == ()
    assert ask(lambda c: c.orders.get(order.reference)) == order
    request = ask(lambda c: c.orders.request(order.reference))
    assert (request.external_reference, request.source) == (reference, "hr-portal")
    deliveries = ask(lambda c: c.orders.deliveries(order.reference, page_size=1))
    assert [one.email for one in deliveries] == ["sam@example.com", "ada@example.com"]
    assert {one.state for one in deliveries} == {models.MailState.SCHEDULED}
    assert ask(lambda c: c.orders.newest(limit=1))[0].reference == order.reference
    cancelled = ask(lambda c: c.orders.cancel(order.reference))
    assert (cancelled.cancelled_count, cancelled.refunded) == (2, Decimal(20))
    assert ask(lambda c: c.orders.cancel(order.reference)) == cancelled


def test_a_collection_and_a_template_as_codes(ask, world) -> None:
    for order in (
        ask(lambda c: c.send.collection(world.curated, value=25, code_quantity=2, account_id=world.account)),
        ask(lambda c: c.send.template(world.template, code_quantity=2, account_id=world.account)),
    ):
        assert len({code.code for code in order.codes}) == 2
        assert order.delivery_mode is models.DeliveryMode.MANUAL
        assert order.codes[0].pin not in repr(order)
        assert ask(lambda c, order=order: c.orders.get(order.reference)) == order


def test_quotes(ask, world, balance) -> None:
    before = balance()
    asked = {"code_quantity": 2, "account_id": world.account}
    quotes = [
        ask(lambda c: c.quote.gift(world.coffee, value=5, country="GB", **asked)),
        ask(lambda c: c.quote.collection(world.curated, value=25, **asked)),
        ask(lambda c: c.quote.template(world.template, **asked)),
    ]
    assert [quote.total_cost for quote in quotes] == [10, 50, 20]
    assert [before - quote.balance_after for quote in quotes] == [10, 50, 20]
    assert balance() == before
    order = ask(lambda c: c.send.gift(world.coffee, value=5, quote=quotes[0].quote, **asked))
    assert before - balance() == order.total_cost == 10
    with pytest.raises(errors.QuoteChanged):
        ask(lambda c: c.send.gift(world.coffee, value=10, quote=quotes[0].quote, **asked))
    with pytest.raises(errors.InvalidRequest) as raised:
        ask(lambda c: c.quote.gift(world.coffee, value=6, country="ZZ", recipients=["x@"], account_id=1))
    assert len(raised.value.errors) > 1
    listed = [f"- {one.pointer}: {one.detail}" for one in raised.value.errors]
    assert str(raised.value).splitlines()[1:] == listed


def test_orders_are_listed_page_by_page(ask, world) -> None:
    before = ask(lambda c: c.orders.newest(limit=1))
    after = before[0].id if before else 0
    sent = [
        ask(lambda c: c.send.gift(world.coffee, value=5, code_quantity=1, account_id=world.account)).reference
        for _ in range(5)
    ]
    listed = ask(lambda c: c.orders.list(after=after, page_size=2))
    assert [record.reference for record in listed] == sent
    assert [record.id for record in listed] == sorted(record.id for record in listed)


def test_events_are_followed_page_by_page(ask, world, eventually) -> None:
    newest = ask(lambda c: c.events.newest(limit=1))
    after = newest[0].cursor if newest else "start"
    order = ask(lambda c: c.send.gift(world.coffee, value=5, code_quantity=3, account_id=world.account))
    ask(lambda c: c.orders.cancel(order.reference))

    def of_order() -> list[models.StreamedEvent]:
        found = ask(lambda c: c.events.list(after=after, page_size=2))
        return [one for one in found if msgspec.json.decode(one.data)["reference"] == order.reference]

    eventually(lambda: len(of_order()) == 4)
    placed, *cancelled = of_order()
    assert (placed.event, placed.order.reference) == ("order.created", order.reference)
    assert [(one.gift.event, one.gift.number) for one in cancelled] == [("gift.cancelled", n) for n in (1, 2, 3)]
    with pytest.raises(msgspec.DecodeError):
        _ = placed.gift
    with pytest.raises(msgspec.DecodeError):
        _ = cancelled[0].order
    assert ask(lambda c: c.events.list(after=cancelled[-1].cursor)) == []


def test_mail_is_sent_again(ask, world, eventually) -> None:
    order = ask(lambda c: c.send.gift(world.coffee, value=5, recipients=[SAM], account_id=world.account))

    def has_left(times: int) -> bool:
        (one,) = ask(lambda c: c.orders.deliveries(order.reference))
        return one.sent_at is not None and one.resends == times

    for times in range(5):
        eventually(lambda times=times: has_left(times))
        again = ask(lambda c, times=times: c.orders.resend(order.reference, "sam@example.com", resends=times))
        assert (again.email, again.resends) == ("sam@example.com", times + 1)
    eventually(lambda: has_left(5))
    with pytest.raises(errors.TooManyRequests) as refused:
        ask(lambda c: c.orders.resend(order.reference, "sam@example.com"))
    assert refused.value.retry_after_s


def test_subscriptions(ask, receiver, eventually) -> None:
    several = ask(lambda c: c.webhooks.create(receiver.url, events=["gift.claimed", "order.created"]))
    assert (several.event, several.events) == (None, ("gift.claimed", "order.created"))
    assert several.secret not in repr(several)
    assert ask(lambda c: c.webhooks.test(several.id, event="order.created")).event == "order.created"
    rotated = ask(lambda c: c.webhooks.rotate_secret(several.id))
    assert rotated.secret != several.secret
    assert rotated.secret not in repr(rotated)
    assert ask(lambda c: c.webhooks.delete(several.id)) is None
    made = ask(lambda c: c.webhooks.create(receiver.url))
    assert made.secret not in repr(made)
    assert made.id in [one.id for one in ask(lambda c: c.webhooks.list())]
    sample = ask(lambda c: c.webhooks.test(made.id))
    assert sample.order_id is None
    eventually(lambda: ask(lambda c: c.webhooks.deliveries(made.id))[0].state == "delivered")
    again = ask(lambda c: c.webhooks.redeliver(str(made.id), sample.id))
    assert (again.id, again.state) == (sample.id, models.DeliveryState.PENDING)
    ask(lambda c: c.webhooks.test(made.id))
    eventually(lambda: len(receiver.received) >= 3)
    listed = ask(lambda c: c.webhooks.deliveries(made.id, page_size=1))
    assert [one.id for one in listed][-1] == sample.id
    assert len(listed) == 2
    assert ask(lambda c: c.webhooks.delete(made.id)) is None
    with pytest.raises(errors.NotFound):
        ask(lambda c: c.webhooks.delete(made.id))


@pytest.mark.parametrize(
    ("question", "error", "status"),
    [
        (lambda c: c.orders.get("0" * 20), errors.NotFound, 404),
        (lambda c: c.products.get(2**31 - 1), errors.NotFound, 404),
        (lambda c: c.webhooks.delete(uuid4()), errors.NotFound, 404),
        (lambda c: c.send.gift(2**31 - 1, code_quantity=1, account_id=1), errors.InvalidRequest, 400),
        (lambda c: c.webhooks.create("https://10.0.0.1/hook"), errors.InvalidRequest, 400),
    ],
)
def test_problems_have_their_classes(ask, question: Callable, error: type, status: int) -> None:
    with pytest.raises(error) as raised:
        ask(question)
    problem = raised.value
    assert (problem.status, problem.type) == (status, f"/problems/{error.slug}")
    assert problem.request_id
    assert problem.request_id in str(problem)
    assert problem.detail in str(problem)


def test_wrong_recipients_are_all_named(ask, world) -> None:
    wrong = ["sam@example.com", "Sam", "y@.example"]
    with pytest.raises(errors.InvalidRequest) as raised:
        ask(lambda c: c.send.gift(world.coffee, value=5, recipients=wrong, account_id=world.account))
    assert [one.pointer for one in raised.value.errors] == ["#/recipients/1/email", "#/recipients/2/email"]


def test_an_account_that_is_too_small(ask, world, balance) -> None:
    before = balance()
    with pytest.raises(errors.InsufficientBalance) as raised:
        ask(lambda c: c.send.gift(world.coffee, value=25, code_quantity=5000, account_id=world.group_account))
    assert raised.value.status == 402
    assert balance() == before


def test_an_unknown_key(largesse_server) -> None:
    from largesse_client import Largesse

    with Largesse(largesse_server.base_url, "lgs_live_nobody") as largesse:
        with pytest.raises(errors.Unauthorized) as raised:
            largesse.me()
        assert "lgs_live_nobody" not in f"{raised.value!r} {raised.value} {largesse!r} {vars(raised.value)}"


def test_what_the_service_ignores_is_reported(largesse_server, caplog: pytest.LogCaptureFixture) -> None:
    """A parameter that only a later client would send."""
    found: list[Ignored] = []
    later = {"later": "1"}
    with largesse_server.client(on_ignored=found.append) as client:
        client._driver._client.params = later
        client.orders.newest(limit=1)
    (ignored,) = found
    assert (ignored.method, ignored.path, ignored.names) == ("GET", "/orders", ("later",))
    assert ignored.request_id
    assert "ignored" not in caplog.text

    async def ask() -> None:
        async with largesse_server.async_client() as client:
            client._driver._client.params = later
            await client.orders.newest(limit=1)

    asyncio.run(ask())
    assert "ignored later of GET /orders" in caplog.text


def test_ids_are_uuids(ask, receiver) -> None:
    made = ask(lambda c: c.webhooks.create(receiver.url))
    assert isinstance(made.id, UUID)
    ask(lambda c: c.webhooks.delete(str(made.id)))


def test_contacts_are_listed_from_the_last_one(ask, new_reference) -> None:
    first, last = (
        ask(lambda client: client.contacts.create(models.ContactChange(email=f"{new_reference()}@example.com")))
        for _ in range(2)
    )
    assert ask(lambda client: client.contacts.list(after=first.id, page_size=1)) == [last]
