"""Invalid arguments are refused before anything is sent, and the error names the argument."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from largesse_client import AsyncLargesse, Largesse, Recipient, errors, webhooks
from largesse_client.models import ContactChange

NAIVE = datetime(2090, 1, 1)  # noqa: DTZ001 - that is the point
BATCH = {"code_quantity": 1}


@pytest.fixture
def nowhere(listen) -> str:
    """A server that fails the test when anybody connects."""
    heard: list[object] = []
    listener = listen(heard.append)
    yield listener.url
    assert heard == []


REFUSED: list[tuple[str, Callable]] = [
    ("recipients", lambda c: c.send.gift(1, value=1)),
    ("recipients", lambda c: c.send.gift(1, value=1, recipients=["a@b.example"], code_quantity=1)),
    ("recipients", lambda c: c.send.gift(1, value=1, recipients=[])),
    ("recipients", lambda c: c.send.gift(1, value=1, recipients="sam@example.com")),
    ("recipients", lambda c: c.send.gift(1, value=1, recipients=["a@b.example"] * 5001)),
    ("recipients[1]", lambda c: c.send.gift(1, value=1, recipients=["a@b.example", 7])),
    ("recipients[0].email", lambda c: c.send.gift(1, value=1, recipients=[Recipient(email="")])),
    ("recipients[0].name", lambda c: c.send.gift(1, recipients=[Recipient(email="a@b.example", name=7)])),
    ("recipients[0].quantity", lambda c: c.send.gift(1, recipients=[Recipient(email="a@b.example", quantity=0)])),
    ("recipients[0].quantity", lambda c: c.send.gift(1, recipients=[Recipient(email="a@b.x", quantity=1001)])),
    ("code_quantity", lambda c: c.send.gift(1, code_quantity=0)),
    ("contact", lambda c: c.contacts.create(ContactChange(email="a@b.example", name="\ud83c"))),
    ("code_quantity", lambda c: c.send.gift(1, code_quantity=5001)),
    ("code_quantity", lambda c: c.send.gift(1, code_quantity=True)),
    ("product_id", lambda c: c.send.gift("1", **BATCH)),
    ("product_id", lambda c: c.send.gift(0, **BATCH)),
    ("product_id", lambda c: c.send.gift(2**31, **BATCH)),
    ("collection_id", lambda c: c.send.collection(-1, **BATCH)),
    ("template_id", lambda c: c.send.template(None, **BATCH)),
    ("value", lambda c: c.send.gift(1, value=12.5, **BATCH)),
    ("value", lambda c: c.send.collection(1, value=1e1, **BATCH)),
    ("value", lambda c: c.send.gift(1, value="12.50", **BATCH)),
    ("value", lambda c: c.send.gift(1, value=True, **BATCH)),
    ("value", lambda c: c.send.gift(1, value=Decimal("NaN"), **BATCH)),
    ("value", lambda c: c.send.gift(1, value=Decimal("Infinity"), **BATCH)),
    ("value", lambda c: c.send.gift(1, value=0, **BATCH)),
    ("value", lambda c: c.send.gift(1, value=Decimal("-0.01"), **BATCH)),
    ("country", lambda c: c.send.gift(1, country="GBR", **BATCH)),
    ("send_at", lambda c: c.send.gift(1, send_at=NAIVE, **BATCH)),
    ("send_at", lambda c: c.send.gift(1, send_at="2090-01-01T00:00:00Z", **BATCH)),
    ("send_at", lambda c: c.send.template(1, send_at=datetime.now(UTC).date(), **BATCH)),
    ("account_id", lambda c: c.send.gift(1, account_id=0, **BATCH)),
    ("external_reference", lambda c: c.send.gift(1, external_reference=" ", **BATCH)),
    ("external_reference", lambda c: c.send.gift(1, external_reference="x" * 129, **BATCH)),
    ("external_reference", lambda c: c.send.gift(1, external_reference=7, **BATCH)),
    ("from_name", lambda c: c.send.gift(1, from_name="x" * 33, **BATCH)),
    ("from_name", lambda c: c.send.gift(1, from_name="half of a character: \ud83c", **BATCH)),
    ("recipients[0].name", lambda c: c.send.gift(1, recipients=[Recipient(email="sam@example.com", name="\ud83c")])),
    ("message", lambda c: c.send.gift(1, message="x" * 257, **BATCH)),
    ("wrapping_key", lambda c: c.send.gift(1, wrapping_key="x" * 65, **BATCH)),
    ("expiry_after_days", lambda c: c.send.gift(1, expiry_after_days=0, **BATCH)),
    ("quote", lambda c: c.send.gift(1, quote="", **BATCH)),
    ("reference", lambda c: c.orders.get("../me")),
    ("reference", lambda c: c.orders.cancel("")),
    ("email", lambda c: c.orders.resend("0" * 20, " ")),
    ("after", lambda c: c.orders.list(after=-1)),
    ("page_size", lambda c: c.orders.list(page_size=51)),
    ("limit", lambda c: c.orders.newest(limit=0)),
    ("page_size", lambda c: c.products.list(page_size=201)),
    ("amount", lambda c: c.products.list(amount=5.0)),
    ("currency", lambda c: c.collections.list(currency="pound")),
    ("subscription_id", lambda c: c.webhooks.delete("7")),
    ("target_url", lambda c: c.webhooks.create("")),
    ("events", lambda c: c.webhooks.create("https://gifts.example", events=[])),
    ("events[1]", lambda c: c.webhooks.create("https://gifts.example", events=["gift.sent", ""])),
    ("events", lambda c: c.webhooks.create("https://gifts.example", "gift.sent", events=["gift.opened"])),
    ("delivery_id", lambda c: c.webhooks.redeliver("7f3c1e0a-5b52-4d0e-9c55-0f3f5d1c2b6a", 0)),
]


@pytest.mark.parametrize(("argument", "question"), REFUSED)
def test_an_argument_that_cannot_be_right(nowhere: str, argument: str, question: Callable) -> None:
    with Largesse(nowhere, "key") as client, pytest.raises(errors.InvalidArgument) as raised:
        question(client)
    assert raised.value.argument == argument
    assert str(raised.value).startswith(f"`{argument}` ")
    assert isinstance(raised.value, ValueError)


def test_the_client_that_is_awaited_refuses_the_same(nowhere: str) -> None:
    async def refuse_all() -> None:
        async with AsyncLargesse(nowhere, "key") as client:
            for argument, question in REFUSED:
                with pytest.raises(errors.InvalidArgument) as raised:
                    await question(client)  # a list raises at once, the others when awaited
                assert raised.value.argument == argument

    asyncio.run(refuse_all())


@pytest.mark.parametrize("value", [5, Decimal("5.0"), Decimal("5E0")])
def test_an_exact_amount_is_as_good_as_another(largesse, world, value) -> None:
    assert largesse.send.gift(world.coffee, value=value, account_id=world.account, **BATCH).value == 5


def test_the_longest_there_may_be(largesse, world, new_reference) -> None:
    order = largesse.send.gift(
        world.coffee,
        value=5,
        recipients=[Recipient(email="sam@example.com", name="", quantity=2)],
        account_id=world.account,
        from_name="x" * 32,
        message="x" * 256,
        wrapping_key="x" * 64,
        external_reference=new_reference().ljust(128, "x"),
    )
    assert order.code_count == 2


def test_arguments_nobody_knows(nowhere: str) -> None:
    with Largesse(nowhere, "key") as client:
        for sends in (client.send, client.quote):
            with pytest.raises(TypeError, match="'external_ref', 'recipient'"):
                sends.gift(1, recipient="sam@example.com", external_ref="r-1")
    with pytest.raises(TypeError, match="emial"):
        Recipient(emial="sam@example.com")
    with Largesse(nowhere, "key") as client, pytest.raises(errors.InvalidArgument, match="not dict"):
        client.send.gift(1, recipients=[{"email": "sam@example.com", "quantitiy": 2}])


@pytest.mark.parametrize("what", ["send", "quote"])
def test_all_that_is_wrong_is_said_at_once(nowhere: str, what: str) -> None:
    people = [Recipient(email=" ", quantity=0), "ada@example.com", Recipient(email="", name="Eve")]
    with Largesse(nowhere, "key") as client, pytest.raises(errors.InvalidArgument) as raised:
        getattr(client, what).gift(0, value=12.5, country="GBR", recipients=people, message="x" * 257)
    wrong = [
        "product_id",
        "value",
        "country",
        "recipients[0].email",
        "recipients[0].quantity",
        "recipients[2].email",
        "message",
    ]
    assert raised.value.argument == wrong[0]
    assert [error.argument for error in raised.value.errors] == wrong
    first, *listed = str(raised.value).splitlines()
    assert first == "7 arguments are wrong:"
    assert [line.split("` ")[0] for line in listed] == [f"- `{name}" for name in wrong]
    again = pickle.loads(pickle.dumps(raised.value))  # noqa: S301 - our own
    assert (str(again), [error.argument for error in again.errors]) == (str(raised.value), wrong)


def test_the_text_lists_the_first_hundred(nowhere: str) -> None:
    with Largesse(nowhere, "key") as client, pytest.raises(errors.InvalidArgument) as raised:
        client.send.gift(1, value=1, recipients=[""] * 300)
    assert len(raised.value.errors) == 300
    first, *listed, last = str(raised.value).splitlines()
    assert (first, len(listed), last) == ("300 arguments are wrong:", 100, "- and 200 more")


@pytest.mark.parametrize(
    ("argument", "options"),
    [
        ("base_url", {"base_url": "gifts.example"}),
        ("base_url", {"base_url": "ftp://gifts.example"}),
        ("base_url", {"base_url": "lgs_live_key", "api_key": "https://gifts.example"}),
        ("base_url", {"base_url": "https://"}),
        ("base_url", {"base_url": "https://me:secret@gifts.example"}),
        ("base_url", {"base_url": "https://gifts.example/?x=1"}),
        ("base_url", {"base_url": None}),
        ("base_url", {"base_url": "http://[::1"}),
        ("api_key", {"api_key": ""}),
        ("api_key", {"api_key": "lgs live"}),
        ("api_key", {"api_key": "lgs\r\nX: y"}),
        ("api_key", {"api_key": None}),
        ("timeout_s", {"timeout_s": 0}),
        ("attempts", {"attempts": 0}),
        ("patience_s", {"patience_s": -1}),
    ],
)
@pytest.mark.parametrize("kind", [Largesse, AsyncLargesse])
def test_a_client_that_cannot_work(kind: type, argument: str, options: dict[str, object]) -> None:
    with pytest.raises(errors.InvalidArgument) as raised:
        kind(**{"base_url": "https://gifts.example", "api_key": "k", **options})
    assert raised.value.argument == argument
    assert "secret" not in str(raised.value)
    assert "lgs" not in str(raised.value)


def test_the_body_of_a_webhook_is_bytes() -> None:
    for argument, body, secret in (
        ("body", "{}", "whsec_AAAA"),
        ("secret", b"{}", "AAAA"),
        ("secret", b"", "whsec_A%"),
        ("secret", b"", "whsec_"),
        ("secret", b"{}", []),
        ("secret", b"{}", None),
        ("secret", b"{}", b"whsec_AAAA"),
        ("secret", b"{}", ["whsec_AAAA", 7]),
    ):
        with pytest.raises(errors.InvalidArgument) as raised:
            webhooks.verify(body, {}, secret)
        assert raised.value.argument == argument
