"""The page of approval rules with a catalogue of more gifts than it offers at once."""

import json
import re

import pytest
from tests.web.api.conftest import Service
from tests.web.console.approving import set_rule
from tests.web.console.conftest import Browser, acme_with, user_id

from largesse.web.console.approval_rules import MOST_FIELDS, MOST_OFFERED

GIFTS = "\n".join(
    f"  - {{key: g{n}, name: Gift {n:03}, digital: true, currency: GBP, countries: [{'GB, ' if n % 2 else ''}IE], denominations: [10]}}"
    for n in range(MOST_OFFERED + 5)
)
ACCOUNTS = "funding_accounts: [{key: gbp, name: Float, currency: GBP, master: true}]"
WORLD = acme_with(ada="admin", bea="admin").replace("]}", f"], {ACCOUNTS}}}") + f"products:\n{GIFTS}\n"


def offered(browser: Browser) -> dict[str, bool]:
    """The ids of the products in the form, each with whether it is selected."""
    found = re.findall(r'name="product" value="(\d+)"( checked)?', browser.page.text)
    return {number: bool(checked) for number, checked in found}


def test_a_gift_beyond_those_shown_is_found_by_its_name(service: Service, ada: Browser) -> None:
    first, last = (str(service.ids["products"][key]) for key in ("g0", f"g{MOST_OFFERED + 4}"))
    ada.sees("/app/approvals/rules", f"At most {MOST_OFFERED} gifts and {MOST_OFFERED} collections are shown.")
    assert (len(offered(ada)), last in offered(ada)) == (MOST_OFFERED, False)
    typed = "name=For+two&above=10&currency=GBP&beyond_budget=yes&role=member&needed=2&days=3&approver=1&approver=2"
    ada.get(f"/app/approvals/rules?{typed}&product={first}&q=gift+{MOST_OFFERED + 4}")
    assert offered(ada) == {first: True, last: False}
    for kept in (
        'value="For two"',
        'value="3"',
        '"yes" checked',
        'value="member" selected',
        'name="approver" value="2" checked',
    ):
        assert kept in ada.page.text
    assert set_rule(ada, product=[first, last]).status_code == 303
    assert f"Gift 000, Gift {MOST_OFFERED + 4}" in ada.read("/app/approvals/rules")


@pytest.mark.parametrize("field", ["account", "product", "approver"])
def test_too_many_choices_are_said_beside_the_form(service: Service, ada: Browser, field: str) -> None:
    ada.page = set_rule(ada, **{field: [str(number) for number in range(1, MOST_FIELDS - 20)]})
    assert ada.page.status_code == 422
    ada.says("Choose at most 100.")


def test_the_log_has_who_alone_may_approve_and_what_the_rule_is_about(service: Service, ada: Browser) -> None:
    bea, gift = user_id(service, "bea@acme.example"), service.ids["products"]["g1"]
    assert set_rule(ada, name="Only Bea", approver=str(bea), product=str(gift)).status_code == 303
    ada.sees("/app/audit?act=approval_rule.created&q=Only+Bea", "Ada", "People: Bea")
    [made] = service.sql(
        "SELECT after::json FROM audit_events WHERE act = 'approval_rule.created' AND after ->> 'name' = 'Only Bea'"
    )
    assert {"people": [bea], "product_ids": [gift]}.items() <= json.loads(made["after"]).items()
