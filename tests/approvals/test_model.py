"""The rules of approvals: which sends fall under one, who may approve, and when enough have."""

from typing import Any

import pytest

from largesse.approvals import service
from largesse.approvals.model import ApprovalRule, Grant, SendFacts, can_be_met, is_approved, may_decide, rules_of
from largesse.base.errors import InvalidRequest

SEND = SendFacts(1, "production", "member", "GBP", 1_000, 5, 7, None, is_beyond_budget=False)
ADA, BEA, CEM, FIN = 1, 2, 3, 4
PEOPLE = {ADA: "admin", BEA: "admin", CEM: "member", FIN: "finance"}


def rule(**changes: Any) -> ApprovalRule:
    return ApprovalRule(**{"customer_id": 1, "id": 1, "environment": "production", "name": "Rule", **changes})


@pytest.mark.parametrize(
    ("changes", "is_about"),
    [
        ({}, True),
        ({"customer_id": 2}, False),
        ({"environment": "staging"}, False),
        ({"role": "member"}, True),
        ({"role": "admin"}, False),
        ({"currency": "GBP", "above_minor": 999}, True),
        ({"currency": "GBP", "above_minor": 1_000}, False),
        ({"currency": "EUR", "above_minor": 1}, False),
        ({"beyond_budget": True}, False),
        ({"account_ids": frozenset({5})}, True),
        ({"account_ids": frozenset({6})}, False),
        ({"product_ids": frozenset({7})}, True),
        ({"product_ids": frozenset({8})}, False),
        ({"collection_ids": frozenset({7})}, False),
        ({"product_ids": frozenset({7}), "collection_ids": frozenset({1})}, True),
        ({"role": "member", "account_ids": frozenset({5}), "currency": "GBP", "above_minor": 1}, True),
        ({"role": "member", "account_ids": frozenset({6}), "currency": "GBP", "above_minor": 1}, False),
    ],
)
def test_which_sends_fall_under_a_rule(changes: dict[str, Any], is_about: bool) -> None:
    assert bool(rules_of(SEND, [rule(**changes)])) is is_about


def test_one_beyond_a_budget_falls_under_rules_of_that() -> None:
    assert rules_of(SEND._replace(is_beyond_budget=True), [rule(beyond_budget=True)])


def test_who_may_approve() -> None:
    anybody, named = rule(), rule(approver_ids=frozenset({FIN}))
    assert {one for one, role in PEOPLE.items() if may_decide([anybody], one, role, CEM)} == {ADA, BEA}
    assert {one for one, role in PEOPLE.items() if may_decide([anybody], one, role, ADA)} == {BEA}
    assert {one for one, role in PEOPLE.items() if may_decide([named], one, role, CEM)} == {FIN}
    assert {one for one, role in PEOPLE.items() if may_decide([named], one, role, FIN)} == set()
    assert {one for one, role in PEOPLE.items() if may_decide([anybody, named], one, role, CEM)} == {ADA, BEA, FIN}


@pytest.mark.parametrize(
    ("rules", "approvals", "requester", "approved"),
    [
        ([rule()], {}, CEM, False),
        ([rule()], {ADA: "admin"}, CEM, True),
        ([rule()], {ADA: "admin"}, ADA, False),
        ([rule()], {ADA: "member"}, CEM, False),
        ([rule(needed=2)], {ADA: "admin"}, CEM, False),
        ([rule(needed=2)], {ADA: "admin", BEA: "admin"}, CEM, True),
        ([rule(needed=2)], {ADA: "admin", BEA: "admin"}, ADA, False),
        ([rule(needed=2)], {ADA: "admin", FIN: "finance"}, CEM, False),
        ([rule(), rule(id=2, approver_ids=frozenset({FIN}))], {ADA: "admin"}, CEM, False),
        ([rule(), rule(id=2, approver_ids=frozenset({FIN}))], {ADA: "admin", FIN: "finance"}, CEM, True),
    ],
)
def test_when_enough_have_approved(
    rules: list[ApprovalRule], approvals: dict[int, str], requester: int, approved: bool
) -> None:
    assert is_approved(rules, approvals, requester) is approved


def test_whether_there_are_people_enough() -> None:
    assert can_be_met([rule(needed=2)], PEOPLE, CEM)
    assert not can_be_met([rule(needed=2)], PEOPLE, ADA)
    assert not can_be_met([rule(approver_ids=frozenset({CEM}))], PEOPLE, CEM)


def test_an_approval_is_of_what_was_quoted_at_its_price_and_of_its_rules() -> None:
    grant = Grant(b"digest", 1_000, frozenset({1, 2}))
    assert grant.covers([rule(), rule(id=2)], b"digest", 1_000)
    assert not grant.covers([rule()], b"other", 1_000)
    assert not grant.covers([rule()], None, 1_000)
    assert not grant.covers([rule()], b"digest", 1_001)
    assert not grant.covers([rule(id=3)], b"digest", 1_000)


@pytest.mark.parametrize(
    ("changes", "is_sound"),
    [
        ({"name": ""}, False),
        ({"name": "x"}, True),
        ({"name": "x" * service.MOST_NAME}, True),
        ({"name": "x" * (service.MOST_NAME + 1)}, False),
        ({"needed": 0}, False),
        ({"needed": 1}, True),
        ({"needed": 2}, True),
        ({"needed": 3}, False),
        ({"expires_days": 0}, False),
        ({"expires_days": 1}, True),
        ({"expires_days": 10}, True),
        ({"expires_days": 11}, False),
        ({"role": "member"}, True),
        ({"role": "finance"}, False),
        ({"currency": "GBP", "above_minor": 0}, True),
        ({"currency": "GBP", "above_minor": -1}, False),
        ({"currency": "GBP"}, False),
        ({"above_minor": 1}, False),
        *[
            ({f"{chosen}_ids": frozenset(range(service.MOST_CHOSEN + more))}, not more)
            for chosen in ("account", "product", "collection", "approver")
            for more in (0, 1)
        ],
    ],
)
def test_the_limits_of_a_rule(changes: dict[str, Any], is_sound: bool) -> None:
    if is_sound:
        service._require_sound(rule(**changes))
    else:
        with pytest.raises(InvalidRequest):
            service._require_sound(rule(**changes))
