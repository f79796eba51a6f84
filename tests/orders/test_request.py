"""The rules of a send body that need no database."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from largesse.errors import InvalidRequest
from largesse.orders.reference import is_reference, new_reference
from largesse.orders.request import (
    MAX_REFERENCE,
    MAX_SOURCE,
    Recipient,
    SendGift,
    Wanted,
    read_reference,
    read_send,
    read_source,
)

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def read(plan: str = "pro", **members: Any) -> Wanted:
    if not members.keys() & {"recipients", "code_quantity"}:
        members["code_quantity"] = 1
    return read_send(SendGift(product_id=1, **members), plan=plan, now=NOW)


@given(st.none() | st.text())
def test_a_source_becomes_a_short_token(text: str | None) -> None:
    token = read_source(text)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", token)
    assert len(token) <= MAX_SOURCE
    assert read_source(token) == token


@given(st.none() | st.text())
def test_a_reference_is_trimmed_bounded_and_without_control_characters(text: str | None) -> None:
    trimmed = (text or "").strip()
    if len(trimmed) > MAX_REFERENCE or CONTROL.search(trimmed):
        with pytest.raises(InvalidRequest, match="externalReference"):
            read_reference(text)
    else:
        assert read_reference(text) == (trimmed or None)


@given(st.datetimes(), st.none() | st.timedeltas(timedelta(hours=-23), timedelta(hours=23)))
def test_send_at_is_an_instant_in_the_future_or_refused(at: datetime, offset: timedelta | None) -> None:
    zoned = at if offset is None else at.replace(tzinfo=timezone(offset))
    try:
        scheduled = read(recipients=[Recipient(email="sam@example.com")], send_at=zoned).scheduled_for
    except InvalidRequest as refused:
        assert "`sendAt`" in refused.detail  # noqa: PT017 - both outcomes are right
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


def test_send_at_is_ignored_for_a_batch() -> None:
    assert read(code_quantity=1, send_at=NOW - timedelta(days=1)).scheduled_for is None


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
