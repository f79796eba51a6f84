"""Approvals of campaigns: what approvers see of one, and that they approved just its visitors and its days."""

from collections.abc import Iterator

import pytest
from tests.web.api.conftest import Service
from tests.web.console.approving import WORLD, as_before, decided, orders_of, set_rule, state
from tests.web.console.conftest import Browser
from tests.web.console.test_campaigns import fields

__all__ = ["WORLD", "as_before"]


@pytest.fixture(autouse=True)
def without_campaigns(service: Service) -> Iterator[None]:
    yield
    service.sql("UPDATE campaigns SET closes_at = clock_now(), ended_at = clock_now() WHERE ended_at IS NULL")


def asked(sender: Browser, service: Service, **changes: str) -> str:
    """A campaign of 20.00 that waits for approval; the reference of its send."""
    form = fields(service, **{"gifts": "2", "domains": "acme.example", **changes})
    review = str(sender.submit("/app/campaigns/new", **form).headers["location"])
    assert "This send needs approval" in sender.read(review)
    assert sender.post(review.replace("/review", "/ask")).status_code == 303
    return review.split("/")[3]


def test_approvers_see_who_is_invited_and_what_a_campaign_says(service: Service, ada: Browser, cem: Browser) -> None:
    set_rule(ada)
    shown = ada.read(f"/app/approvals/{asked(cem, service, greeting='Come to the party')}")
    for said in ("From Acme", "Message <b>Hello</b>", "Who is invited acme.example", "Greeting Come to the party"):
        assert said in shown


def test_approvers_see_the_name_of_a_campaign_and_the_addresses_that_it_lists(
    service: Service, ada: Browser, cem: Browser
) -> None:
    set_rule(ada)
    addresses = "\n".join(f"guest{number}@example.com" for number in range(11, 23))
    shown = ada.read(f"/app/approvals/{asked(cem, service, name='Party', domains='', addresses=addresses)}")
    assert "Campaign Party Who is invited For 12 listed addresses" in shown
    assert "guest20@example.com and 2 more guest21@example.com guest22@example.com" in shown


def test_a_campaign_that_changes_after_its_approval_needs_another(service: Service, ada: Browser, cem: Browser) -> None:
    set_rule(ada)
    small = str(service.ids["funding_accounts"]["small"])
    reference = asked(cem, service, account=small)
    service.sql("UPDATE accounts SET balance_minor = balance_minor - 1500 WHERE id = $1", int(small))
    decided(ada, reference)
    service.sql("UPDATE accounts SET balance_minor = balance_minor + 1500 WHERE id = $1", int(small))
    assert (state(service, reference), orders_of(service, reference)) == ("approved", [])
    number = service.sql("SELECT id FROM campaigns ORDER BY id DESC LIMIT 1")[0]["id"]
    elsewhere = fields(service, gifts="2", domains="elsewhere.example", account=small)
    assert cem.submit(f"/app/campaigns/{number}/edit", **elsewhere).status_code == 303
    assert state(service, reference) == "withdrawn"
    assert "This send needs approval" in cem.read(f"/app/send/{reference}/review")
    assert cem.post(f"/app/send/{reference}/ask").status_code == 303
    decided(ada, reference)
    assert [row["total_minor"] for row in orders_of(service, reference)] == [20_00]
    assert service.findings() == []
