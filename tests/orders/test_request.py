"""The rules of a send body that need no database."""

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from largesse.base.errors import InvalidRequest
from largesse.customers.principal import Principal
from largesse.db.rights import TABLES
from largesse.orders import request
from largesse.orders.ids import is_reference, new_reference
from largesse.orders.options import OPTIONS, PERSONAL, Options
from largesse.orders.recipients import Recipient, read_recipients

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def read(plan: str = "pro", **members: Any) -> request.OrderSpec:
    if not members.keys() & {"recipients", "code_quantity"}:
        members["code_quantity"] = 1
    for kept in members.keys() & {"send_at", "expiry_after_days"}:
        members[kept] = msgspec.Raw(msgspec.json.encode(members[kept]))
    body = request.SendGift(product_id=1, **members)
    principal = Principal(1, "production", 1, "Acme", plan, "balance", 1, "bot", True)
    wanted = request.read_send(body, principal, NOW)
    steps = read_recipients(body.recipients or ())
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return msgspec.structs.replace(wanted, recipients=end.value)


@given(st.none() | st.text())
def test_a_source_becomes_a_short_token(text: str | None) -> None:
    token = request.read_source(text)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", token)
    assert len(token) <= request.MAX_SOURCE
    assert request.read_source(token) == token


@given(st.none() | st.text())
def test_a_reference_is_trimmed_bounded_and_without_control_characters(text: str | None) -> None:
    trimmed = (text or "").strip()
    if len(trimmed) > request.MAX_REFERENCE or CONTROL.search(trimmed):
        with pytest.raises(InvalidRequest, match="external_reference"):
            request.read_reference(text)
    else:
        assert request.read_reference(text) == (trimmed or None)


OFFSETS = st.integers(-23 * 60, 23 * 60).map(lambda minutes: timedelta(minutes=minutes))  # as JSON tells them


@given(st.datetimes(), st.none() | OFFSETS)
def test_send_at_is_an_instant_in_the_future_or_refused(at: datetime, offset: timedelta | None) -> None:
    zoned = at if offset is None else at.replace(tzinfo=timezone(offset))
    try:
        scheduled = read(recipients=[Recipient(email="sam@example.com")], send_at=zoned).scheduled_for
    except InvalidRequest as refused:
        assert "`send_at`" in refused.detail  # noqa: PT017 - both outcomes are right
        assert at - (offset or timedelta()) <= NOW.replace(tzinfo=None) if _fits(at, offset) else True
        return
    assert scheduled is not None
    assert scheduled.tzinfo is UTC
    assert scheduled > NOW
    assert scheduled == (at.replace(tzinfo=UTC) if offset is None else zoned)


def _fits(at: datetime, offset: timedelta | None) -> bool:
    try:
        at - (offset or timedelta())
    except OverflowError:
        return False
    return True


@pytest.mark.parametrize("send_at", [NOW - timedelta(days=1), "tomorrow", "", 7, 1.5, True, [], {"a": 1}, None])
def test_send_at_is_ignored_for_a_batch(send_at: Any) -> None:
    assert read(code_quantity=1, send_at=send_at).scheduled_for is None
    assert read(code_quantity=1, recipients=[], send_at=send_at).scheduled_for is None


def test_no_quantity_is_one() -> None:
    assert read(recipients=[Recipient(email="sam@example.com", quantity=None)]).code_count == 1


@pytest.mark.parametrize("blank", ["", " ", "\t \n", "\u00a0\u2003"])
def test_blank_texts_are_as_if_left_out(blank: str) -> None:
    recipients = [Recipient(email="sam@example.com", name=blank)]
    wanted = read(recipients=recipients, wrapping_key=blank, from_name=blank, message=blank)
    assert wanted.options == Options()
    assert wanted.recipients[0].name is None
    preset = Options(wrapping_key="gold", from_name="Ada", message="Hi")
    assert wanted.options.or_else(preset) == preset


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=30))
def test_codes_are_the_sum_of_quantities_and_at_most_five_thousand(quantities: list[int]) -> None:
    recipients = [Recipient(email=f"r{n}@example.com", quantity=q) for n, q in enumerate(quantities)]
    if sum(quantities) > 5000:
        with pytest.raises(InvalidRequest, match=f"at most 5000 codes in all, not {sum(quantities)}"):
            read(recipients=recipients)
    else:
        wanted = read(recipients=recipients)
        assert (wanted.code_count, wanted.recipient_count) == (sum(quantities), len(quantities))
        assert wanted.delivery_mode == "send"


def test_recipients_are_counted_without_regard_to_letter_case() -> None:
    addresses = ["sam@example.com", "SAM@example.com", "Sam@EXAMPLE.com", "kim@example.com"]
    wanted = read(recipients=[Recipient(email=address) for address in addresses])
    assert (wanted.code_count, wanted.recipient_count) == (4, 2)


def test_addresses_that_only_look_alike_are_two_recipients() -> None:
    addresses = ["stra\u00dfe@example.com", "strasse@example.com", "STRA\u00dfE@example.com"]
    assert read(recipients=[Recipient(email=address) for address in addresses]).recipient_count == 2


def test_a_batch_has_no_recipients() -> None:
    wanted = read(code_quantity=7)
    assert (wanted.delivery_mode, wanted.code_count, wanted.recipient_count) == ("manual", 7, 0)


@pytest.mark.parametrize(("plan", "kept"), [("enterprise", 30), ("pro", None)])
def test_expiry_is_for_enterprise_plans(plan: str, kept: int | None) -> None:
    assert read(plan=plan, expiry_after_days=30).expiry_after_days == kept


@pytest.mark.parametrize("number", [0, -1, 36_501, 2**31, 10**30, 1.5, -0.0, 1e300])
def test_below_enterprise_any_number_of_days_is_ignored(number: float) -> None:
    assert read(plan="pro", expiry_after_days=number).expiry_after_days is None
    with pytest.raises(InvalidRequest, match=r"^`expiryAfterDays` "):
        read(plan="enterprise", expiry_after_days=number)


@pytest.mark.parametrize("other", ["30", True, [], {}])
def test_what_is_no_number_of_days_is_refused_on_every_plan(other: Any) -> None:
    for plan in ("pro", "enterprise"):
        with pytest.raises(InvalidRequest, match=r"^`expiryAfterDays` must be an integer or null"):
            read(plan=plan, expiry_after_days=other)


def test_references_are_opaque_unique_and_told_apart_from_other_texts() -> None:
    references = {new_reference(NOW) for _ in range(1000)}
    assert len(references) == 1000
    assert all(is_reference(reference) for reference in references)
    reference = references.pop()
    for other in ("", reference[:-1], reference + "0", reference.lower() + "", "I" * 20, reference + "\n"):
        assert is_reference(other) == (other == reference)


def test_references_of_one_hour_begin_alike_and_tell_nothing_more() -> None:
    starts = {new_reference(NOW + timedelta(seconds=n))[:4] for n in range(3600)}
    assert len(starts) == 1
    assert new_reference(NOW + timedelta(hours=1))[:4] not in starts
    positions = zip(*(new_reference(NOW)[4:] for _ in range(500)), strict=True)
    assert all(len(set(position)) > 16 for position in positions)


def test_a_text_is_personal_unless_it_says_otherwise() -> None:
    assert set(OPTIONS) - set(PERSONAL) == {"wrapping_key"}, "name here a text that is not personal"


def test_who_erases_may_change_personal_texts_and_no_others() -> None:
    erased = {f"UPDATE({name})" for name in (*PERSONAL, "external_reference")}
    marks = {"UPDATE(placed_digest)", "UPDATE(mac)"}
    assert set(TABLES["orders"].operator.split(", ")) == erased | marks, (
        "_ERASING of db/rights.py has the personal texts"
    )
    assert set(TABLES["orders"].worker.split(", ")) == erased | marks | {"UPDATE(erased_at)"}
