"""After a 409: returns the order with the reference if it is the requested one, and raises an error if it is not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from largesse_client import Largesse, Recipient, errors
from largesse_client.recovery import address_key, normal_source

SAM = Recipient(email="sam@example.com", name="Sam")
ADA = Recipient(email="ada@example.com")
SOON = datetime(2090, 1, 1, 12, tzinfo=UTC)


def gift(world: Any, **changes: Any) -> dict[str, Any]:
    """Returns a gift with all options."""
    return {
        "product_id": world.coffee,
        "value": Decimal("10.00"),
        "country": "GB",
        "recipients": [SAM, Recipient(email="Ada@Example.com", quantity=2)],
        "account_id": world.account,
        "send_at": SOON,
        "wrapping_key": "confetti",
        "from_name": "Acme",
        "message": "Thank you!",
        "expiry_after_days": 30,
        "source": "HR portal",
    } | changes


def test_the_same_again_is_the_same_order(ask, world, balance, new_reference) -> None:
    reference, before = new_reference(), balance()
    order = ask(lambda c: c.send.gift(**gift(world, external_reference=reference)))
    assert order == ask(lambda c: c.send.gift(**gift(world, external_reference=f" {reference} ")))
    # The same request in another form: spellings, offsets, the order of recipients, one address in two entries.
    again = gift(
        world,
        external_reference=reference,
        value=10,
        country="gb",
        source="hr-PORTAL",
        send_at=SOON.astimezone(datetime.now().astimezone().tzinfo) + timedelta(0),
        recipients=["ada@example.com", SAM, "ADA@EXAMPLE.COM"],
    )
    assert order == ask(lambda c: c.send.gift(**again))
    assert before - balance() == 30


def test_codes_of_a_batch_come_back(ask, world, balance, new_reference) -> None:
    reference, before = new_reference(), balance()
    # A code batch ignores `send_at`.
    batch = {"code_quantity": 3, "account_id": world.account, "external_reference": reference, "send_at": SOON}
    order = ask(lambda c: c.send.gift(world.coffee, value=5, **batch))
    again = ask(lambda c: c.send.gift(world.coffee, value=5, **batch))
    assert again == order
    assert len(again.codes) == 3
    assert before - balance() == 15


def test_a_batch_comes_back_without_the_reminders_and_with_the_filled_in_message(ask, world, new_reference) -> None:
    reference = new_reference()
    batch = {"code_quantity": 1, "account_id": world.account, "external_reference": reference, "placeholders": True}
    message = "{first_name} Dear {first_name|friend}, {company} thanks you (again)."
    order = ask(lambda c: c.send.gift(world.coffee, value=5, message=message, reminder_days=[3, 7], **batch))
    assert ask(lambda c: c.send.gift(world.coffee, value=5, message=message, reminder_days=[3, 7], **batch)) == order
    for other in (message.replace("again", "twice"), "Dear {first_name|friend}", message + "!"):
        with pytest.raises(errors.ReferenceUsed) as used:
            ask(lambda c, other=other: c.send.gift(world.coffee, value=5, message=other, **batch))
        assert used.value.differences == ("message",)


def test_a_key_that_may_not_read_still_learns_that_the_reference_is_used(answer_with, http_answer) -> None:
    """ScopeRequired would mean that nothing was placed."""
    used = '{"type":"/problems/reference-used","title":"Used","status":409,"detail":"No.","instance":"/orders/F6Z9"}'
    refused = '{"type":"/problems/scope-required","title":"No","status":403,"detail":"No.","instance":null}'
    server = answer_with(
        http_answer("409 Conflict", "application/problem+json", used),
        http_answer("403 Forbidden", "application/problem+json", refused),
    )
    with Largesse(server.url, "lgs_test_of_send") as client, pytest.raises(errors.ReferenceUsed) as raised:
        client.send.gift(1, value=5, code_quantity=1, account_id=1, external_reference="once")
    assert raised.value.order_reference == "F6Z9"
    assert raised.value.differences == ()


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"value": Decimal(5)}, "value"),
        ({"country": "IE"}, "country"),
        ({"country": None, "value": 25}, "value"),
        ({"recipients": [SAM, ADA]}, "recipients"),
        ({"recipients": [SAM, Recipient(email="eve@example.com", quantity=2)]}, "recipients"),
        ({"recipients": [Recipient(email="sam@example.com", name="Samuel"), ADA, ADA]}, "recipients"),
        ({"recipients": None, "code_quantity": 3}, "code_quantity, send_at, recipients"),
        ({"account_id": "group"}, "account_id"),
        ({"send_at": SOON + timedelta(milliseconds=1)}, "send_at"),
        ({"send_at": None}, "send_at"),
        ({"wrapping_key": "stars"}, "wrapping_key"),
        ({"wrapping_key": None}, "wrapping_key"),
        ({"from_name": "Globex"}, "from_name"),
        ({"message": None}, "message"),
        ({"expiry_after_days": 31}, "expiry_after_days"),
        ({"expiry_after_days": None}, "expiry_after_days"),
        ({"source": None}, "source"),
        ({"product_id": "other"}, "product_id"),
    ],
)
def test_another_order_is_an_error_that_names_what_differs(
    largesse: Largesse, world, balance, held, changes: dict[str, Any], difference: str
) -> None:
    names = {"group": world.group_account, "other": world.hamper}
    changes = {name: names.get(value, value) if isinstance(value, str) else value for name, value in changes.items()}
    before = balance()
    with pytest.raises(errors.ReferenceUsed) as raised:
        largesse.send.gift(**gift(world, external_reference=held.external_reference, **changes))
    assert raised.value.differences == tuple(difference.split(", "))
    assert raised.value.order_reference == held.reference
    assert raised.value.request_id
    assert f" Order {held.reference} differs in {difference}: nothing was placed." in str(raised.value)
    assert balance() == before


@pytest.fixture(scope="module")
def held(largesse_server, world) -> Any:
    """Returns the order that has a reference."""
    with largesse_server.client() as largesse:
        return largesse.send.gift(**gift(world, external_reference="held"))


def test_another_kind_of_gift(largesse: Largesse, world, new_reference) -> None:
    batch = {"code_quantity": 1, "account_id": world.account, "external_reference": new_reference()}
    made = largesse.send.template(world.template, **batch)
    assert largesse.send.template(world.template, **batch) == made
    # A member that the template does not set is compared if the caller gives it.
    assert largesse.send.template(world.template, from_name="Everyone at Acme", **batch) == made
    for send, said in (
        (lambda: largesse.send.template(world.template, from_name="Bob", **batch), {"from_name"}),
        (lambda: largesse.send.gift(world.coffee, value=10, **batch), {"template_id", "wrapping_key"}),
        (lambda: largesse.send.collection(world.curated, value=10, **batch), {"collection_id", "product_id"}),
    ):
        with pytest.raises(errors.ReferenceUsed) as raised:
            send()
        assert said <= set(raised.value.differences)


def test_a_value_that_a_custom_collection_passes_over(largesse: Largesse, world, new_reference) -> None:
    batch = {"code_quantity": 1, "account_id": world.account, "external_reference": new_reference()}
    made = largesse.send.collection(world.custom, value=1, **batch)
    assert made.value != 1
    assert largesse.send.collection(world.custom, value=1, **batch) == made
    assert largesse.send.collection(world.custom, **batch) == made


def test_a_value_that_is_implied(largesse: Largesse, world, new_reference) -> None:
    batch = {"code_quantity": 1, "account_id": world.account, "external_reference": new_reference()}
    made = largesse.send.gift(world.hamper, **batch)
    assert largesse.send.gift(world.hamper, **batch) == made
    assert largesse.send.gift(world.hamper, value=made.value, **batch) == made


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Sam@Example.com", "sam@example.com", True),
        (" sam@example.com", "sam@example.com", True),
        ("sam@xn--bcher-kva.example", "sam@B\u00fccher.example", True),
        ("zoe\u0308@example.com", "zo\u00eb@example.com", True),
        ("sam@EX\uff21MPLE\u3002com", "sam@example.com", True),
        ("sam@example.com", "sam@example.org", False),
        ("stra\u00dfe@example.com", "strasse@example.com", False),
        ("a@xn--999.example", "A@xn--999.example", True),  # not valid Punycode
        ("a@xn--\u00e9.example", "a@e.example", False),
    ],
)
def test_spellings_of_an_address(one: str, other: str, same: bool) -> None:
    assert (address_key(one) == address_key(other)) is same


@pytest.mark.parametrize(
    ("source", "kept"),
    [(None, "api"), ("HR  Portal!", "hr-portal"), ("--", "api"), ("a" * 40, "a" * 32), ("x" * 31 + " y", "x" * 31)],
)
def test_sources_as_orders_keep_them(largesse: Largesse, world, source: str | None, kept: str) -> None:
    assert normal_source(source) == kept
    order = largesse.send.gift(world.coffee, value=5, code_quantity=1, account_id=world.account, source=source)
    assert largesse.orders.request(order.reference).source == kept
