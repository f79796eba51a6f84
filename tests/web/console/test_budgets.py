"""Budgets on pages: set, changed and ended by administrators, seen by those they are about, and held to at Review."""

import json
import re
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from tests.web.api.conftest import Service
from tests.web.console.conftest import Browser, SignIn, user_id
from tests.web.console.sending import WORLD as WORLD  # noqa: PLC0414 - the module's world, place
from tests.web.console.sending import place, quote_in, ready

from largesse.budgets.service import MOST_BUDGETS

_YEARS = count(2040)


@pytest.fixture(autouse=True)
def no_budgets(service: Service) -> Iterator[None]:
    """Each test has a year of its own, in which nothing was spent before."""
    service.sql(f"UPDATE clock SET ahead_by = '{next(_YEARS)}-05-10 12:00Z' - now()")
    yield
    for table in ("budget_orders", "budget_periods", "budget_people", "budgets"):
        service.sql(f"DELETE FROM {table}")
    service.sql("UPDATE accounts SET has_budgets = false")
    service.sql("UPDATE clock SET ahead_by = '0'")


def create(admin: Browser, **fields: Any) -> Any:
    admin.get("/app/budgets")
    form = {"name": "Thanks", "of": "role-member", "currency": "GBP", "period": "month", "limit": "25", "per_gift": ""}
    return admin.post("/app/budgets", **{**form, **fields})


def the_budget(service: Service) -> int:
    (row,) = service.sql("SELECT id FROM budgets WHERE ended_at IS NULL")
    return int(row["id"])


def test_a_member_sees_what_is_left_and_is_held_to_it(service: Service, ada: Browser, cem: Browser) -> None:
    assert create(ada, of=f"person-{user_id(service, 'cem@acme.example')}", limit="45").status_code == 303
    path = ready(cem, service)
    assert "Left in the budget Thanks now £45.00 £25.00" in cem.read(f"{path}/review")
    assert cem.post(f"{path}/place", quote=quote_in(cem)).status_code == 303
    cem.get("/app")
    assert re.search(r"Your budgets .* Thanks Cem .*£20.00 of £45.00.*£25.00 until 1 Jun 20", cem.text), cem.text
    path = ready(cem, service, rows="email\n" + "".join(f"p{number}@example.com\n" for number in range(3)))
    cem.sees(f"{path}/review", "The budget Thanks has £25.00 left. Send less, or ask an administrator for more.")
    assert 'name="quote"' not in (cem.page.text if cem.page else "")
    refused = cem.post(f"{path}/place", quote="")
    assert refused.status_code == 409
    assert "Nothing was charged" in refused.text
    assert "Your budgets" not in ada.read("/app"), "it is not about her"


@pytest.mark.slow
def test_what_becomes_too_much_meanwhile_is_refused_and_said(service: Service, ada: Browser, cem: Browser) -> None:
    first, second = ready(cem, service), ready(cem, service)
    cem.get(f"{second}/review")
    quote = quote_in(cem)
    create(ada, limit="30")
    place(cem, first)
    cem.get(f"{second}/review")
    before = service.state()
    refused = cem.post(f"{second}/place", quote=quote)
    assert refused.status_code == 409
    assert "has £10.00 left" in refused.text
    assert service.state() == before


def test_the_most_for_a_gift_is_said(service: Service, sign_in: SignIn) -> None:
    create(sign_in("ada@acme.example"), limit="", per_gift="9.99")
    cem = sign_in("cem@acme.example")
    path = ready(cem, service)
    assert "The budget Thanks allows at most £9.99 for a gift." in cem.read(f"{path}/review")


@pytest.mark.slow
def test_each_role_sees_its_own(service: Service, ada: Browser, sign_in: SignIn) -> None:
    create(ada, name="Members", of="role-member")
    create(ada, name="Administrators", of="role-admin")
    create(ada, name="Both", of="group", who=[str(user_id(service, f"{one}@acme.example")) for one in ("ada", "cem")])
    create(ada, name="Float", of=f"account-{service.ids['funding_accounts']['gbp']}")
    create(ada, name="Robots", of=f"account-{service.ids['funding_accounts']['bots']}")
    seen = {
        "ada@acme.example": {"Members", "Administrators", "Both", "Float", "Robots"},
        "fin@acme.example": {"Members", "Administrators", "Both", "Float", "Robots"},
        "cem@acme.example": {"Members", "Both", "Float"},
        "gil@globex.example": set(),
    }
    for email, names in seen.items():
        browser = sign_in(email)
        page = browser.get("/app/budgets")
        assert page.status_code == 200
        assert {one for one in seen["ada@acme.example"] if f">{one}</" in page.text} == names, email
        assert ("/app/budgets/" in page.text) is (email == "ada@acme.example")


def test_one_is_changed_and_ended(service: Service, ada: Browser) -> None:
    create(ada, of="group", who=[str(user_id(service, "cem@acme.example"))])
    budget_id = the_budget(service)
    page = ada.get(f"/app/budgets/{budget_id}").text
    assert re.findall(r'name="(limit|per_gift)"[^>]* value="([^"]*)"', page) == [("limit", "25.00"), ("per_gift", "")]
    both = [str(user_id(service, f"{one}@acme.example")) for one in ("ada", "cem")]
    refused = ada.post(f"/app/budgets/{budget_id}", name="Team", limit="25")
    assert (refused.status_code, "checked" in refused.text) == (422, False), "nobody was ticked"
    ada.get(f"/app/budgets/{budget_id}")
    assert ada.post(f"/app/budgets/{budget_id}", name="Team", limit="", per_gift="12", who=both).status_code == 303
    row = service.sql("SELECT name, limit_minor, per_gift_minor FROM budgets")[0]
    assert tuple(row) == ("Team", None, 1200)
    assert service.sql("SELECT count(*) FROM budget_people")[0][0] == 2
    assert "End the budget Team?" in ada.read(f"/app/budgets/{budget_id}/end")
    assert ada.post(f"/app/budgets/{budget_id}/end").status_code == 303
    assert ada.get(f"/app/budgets/{budget_id}").status_code == 404
    acts = service.sql("SELECT act FROM audit_events WHERE act LIKE 'budget.%' ORDER BY id DESC LIMIT 3")
    assert [row["act"] for row in acts] == ["budget.ended", "budget.changed", "budget.created"]
    ada.sees("/app/audit?kind=money", "Ada ended the budget Team", "Ada changed the budget Team")
    ada.says("Limit: £25.00 → None Name: Thanks → Team People: Cem → Ada, Cem Per gift: None → £12.00")
    [created] = service.sql(
        "SELECT after::json FROM audit_events WHERE act = 'budget.created' ORDER BY id DESC LIMIT 1"
    )
    assert json.loads(created["after"]) == {
        "name": "Thanks",
        "people": [user_id(service, "cem@acme.example")],
        "period": "month",
        "limit_minor": 25_00,
        "per_gift_minor": None,
        "currency": "GBP",
    }


def test_the_log_names_whom_a_budget_limits_instead_of_others(service: Service, ada: Browser) -> None:
    cem, own = (str(user_id(service, f"{one}@acme.example")) for one in ("cem", "ada"))
    create(ada, of="group", who=[own])
    budget_id = the_budget(service)
    ada.get(f"/app/budgets/{budget_id}")
    assert ada.post(f"/app/budgets/{budget_id}", name="Thanks", limit="25", per_gift="", who=[cem]).status_code == 303
    ada.sees("/app/audit?kind=money", "Ada changed the budget Thanks People: Ada → Cem")


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"name": ""}, "name"),
        ({"name": "x" * 61}, "name"),
        ({"of": ""}, "of"),
        ({"of": "person-999999"}, "of"),
        ({"of": "account-1; DROP"}, "of"),
        ({"of": "group"}, "who"),
        ({"of": "group", "who": "999999"}, "of"),
        ({"currency": "XXX"}, "currency"),
        ({"period": "week"}, "period"),
        ({"limit": ""}, "limit"),
        ({"limit": "0"}, "limit"),
        ({"limit": "much"}, "limit"),
        ({"limit": "1.005"}, "limit"),
        ({"per_gift": "-1"}, "per_gift"),
        ({"currency": "EUR", "of": "account"}, "of"),
    ],
)
def test_what_is_wrong_is_said_beside_its_field(
    service: Service, sign_in: SignIn, fields: dict[str, str], wrong: str
) -> None:
    if fields.get("of") == "account":
        fields = {**fields, "of": f"account-{service.ids['funding_accounts']['gbp']}"}
    refused = create(sign_in("ada@acme.example"), **fields)
    assert refused.status_code == 422
    assert re.findall(r'class="error" id="(\w+)-error"', refused.text) == [wrong]
    assert fields.get("name", "Thanks")[:60] in refused.text, "what was typed is there"
    assert service.sql("SELECT count(*) FROM budgets")[0][0] == 0


@pytest.mark.slow
def test_a_sum_below_what_is_spent_is_refused_with_what_is_spent(service: Service, ada: Browser, cem: Browser) -> None:
    path = ready(cem, service)
    place(cem, path)
    refused = create(ada, limit="19.99")
    assert refused.status_code == 422
    assert "£20.00 has been spent in this period." in refused.text
    assert 'value="19.99"' in refused.text
    assert create(ada, limit="20").status_code == 303
    create_again = create(ada, name="THANKS", limit="20")
    assert "Another budget has this name." in create_again.text
    budget_id = the_budget(service)
    refused = ada.submit(f"/app/budgets/{budget_id}", name="Thanks", limit="5", per_gift="")
    assert "£20.00 has been spent in this period." in refused.text
    assert service.sql("SELECT limit_minor FROM budgets")[0][0] == 20_00


def test_there_are_at_most_two_hundred(service: Service, ada: Browser) -> None:
    """Ended budgets and those of the other environment leave room."""
    for environment, ended_at, existing in (
        ("production", None, MOST_BUDGETS - 1),
        ("production", "now()", MOST_BUDGETS),
        ("staging", None, MOST_BUDGETS),
    ):
        service.sql(
            f"""
            INSERT INTO budgets (customer_id, environment, currency, name, kind, role, period, limit_minor, starts_at, ended_at)
            SELECT c.id, $1, 'GBP', $1 || number, 'role', 'member', 'month', 1, now(), {ended_at or "NULL"}
            FROM customers c, generate_series(1, $2) AS number WHERE c.key = 'acme'
            """,
            environment,
            existing,
        )
    assert create(ada).status_code == 303
    refused = create(ada, name="One more")
    assert refused.status_code == 422
    assert "Your company has 200 budgets. End one first." in refused.text


def test_an_old_window_keeps_what_somebody_else_changed_meanwhile(service: Service, sign_in: SignIn) -> None:
    ada, bob = sign_in("ada@acme.example"), sign_in("ada@acme.example")
    people = [str(user_id(service, f"{name}@acme.example")) for name in ("ada", "cem")]
    assert create(ada, of="group", who=people[0], limit="100").status_code == 303
    here = f"/app/budgets/{the_budget(service)}"
    was = {"was_name": "Thanks", "was_limit": "100.00", "was_per_gift": "", "was_who": people[0]}
    for browser in (ada, bob):
        browser.get(here)
    assert all(f'name="{name}" value="{value}"' in ada.page.text for name, value in was.items())
    theirs = {**was, "name": "Thanks", "limit": "50", "per_gift": "", "who": people}
    assert bob.post(here, **theirs).status_code == 303
    mine = {**was, "name": "Thank you", "limit": "100.00", "per_gift": "20", "who": people[0]}
    assert ada.post(here, **mine).status_code == 303
    [row] = service.sql("SELECT id, name, limit_minor, per_gift_minor FROM budgets WHERE ended_at IS NULL")
    assert tuple(row)[1:] == ("Thank you", 50_00, 20_00), "the limit stays lowered"
    assert len(service.sql("SELECT FROM budget_people WHERE budget_id = $1", row["id"])) == 2
    bob.page = bob.submit(
        here, **{**theirs, "name": "Thanks a lot", "limit": "40", "was_limit": "50.00", "who": people[0]}
    )
    assert bob.page.status_code == 422
    bob.says("It is now: Thank you")
    assert 'name="was_name" value="Thank you"' in bob.page.text, "who saves it again has seen it"
