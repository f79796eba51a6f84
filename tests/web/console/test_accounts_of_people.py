"""Which funding accounts a member may use: in every list, on every page, and for their orders."""

import httpx
import pytest
from tests.web.api.conftest import Service, on_database
from tests.web.console.conftest import Browser, SignIn, link_for, user_id
from tests.web.console.sending import WORLD, place, quote_in, ready
from tests.web.console.test_funding import report

__all__ = ["WORLD"]

CEM = "cem@acme.example"


@pytest.fixture
def service(own_service: Service) -> Service:
    """A service with a new database for each test: which accounts somebody may use is no other test's."""
    return own_service


def assign(service: Service, admin: Browser, *accounts: str, email: str = CEM) -> httpx.Response:
    path = f"/app/people/{user_id(service, email)}"
    admin.get(path)
    given = [str(service.ids["funding_accounts"][name]) for name in accounts]
    return admin.post(f"{path}/accounts", may_use=given)


def pages(service: Service, browser: Browser) -> list[bool]:
    """On which of the pages that tell of accounts the one for bots is seen."""
    account = service.ids["funding_accounts"]["bots"]
    statement = browser.get(f"/app/funding/{account}").status_code
    assert statement in {200, 404}
    seen = [statement == 200, browser.get(f"/app/funding/{account}/statement.csv").status_code == 200]
    for path in ("/app/funding", "/app/funding/top-ups/new"):
        browser.get(path)
        seen.append("For bots" in browser.text)
    return seen


def test_a_member_uses_and_sees_what_is_assigned_to_them(
    service: Service, ada: Browser, cem: Browser, sign_in: SignIn
) -> None:
    assert pages(service, cem) == [False] * 4
    assert pages(service, ada) == pages(service, sign_in("fin@acme.example")) == [True] * 4
    assert assign(service, ada, "bots").status_code == 303
    assert pages(service, cem) == [True] * 4
    assert "Used by Bot, Cem." in ada.read("/app/funding")

    path = ready(cem, service, account="bots")
    assert "For bots Balance £30.00, £10.00 afterwards" in cem.read(f"{path}/delivery")
    cem.get(f"{path}/review")
    quote = quote_in(cem)
    assert assign(service, ada).status_code == 303  # taken away between the look and the click
    refused = cem.post(f"{path}/place", quote=quote)
    assert refused.status_code == 409
    assert "Choose the account that pays." in refused.text
    assert service.balance("bots") == 30
    assert pages(service, cem) == [False] * 4

    assert assign(service, ada, "bots").status_code == 303
    cem.get(f"{path}/review")
    assert cem.post(f"{path}/place", quote=quote_in(cem)).headers["location"] == f"{path}/sent"
    assert service.balance("bots") == 10
    order = f"/app/orders/{path.rpartition('/')[2]}"
    assert "Balance £10.00" in cem.read(order)
    assert assign(service, ada).status_code == 303
    assert "Money" in cem.read(order)
    assert "Balance £10.00" not in cem.text, "of an account that is theirs no longer"
    acts = service.sql("SELECT subject, before, after FROM audit_events WHERE act = 'account.assigned' ORDER BY id")
    assert [tuple(act) for act in acts] == [
        (CEM, '{"accounts":[]}', '{"accounts":["For bots"]}'),
        (CEM, '{"accounts":["For bots"]}', '{"accounts":[]}'),
        (CEM, '{"accounts":[]}', '{"accounts":["For bots"]}'),
        (CEM, '{"accounts":["For bots"]}', '{"accounts":[]}'),
    ]


def test_who_is_invited_again_begins_without(service: Service, ada: Browser) -> None:
    assert assign(service, ada, "bots").status_code == 303
    cem = user_id(service, CEM)
    assert ada.submit(f"/app/people/{cem}/remove").status_code == 303
    assert assign_path(ada, cem) == 404
    assert ada.submit("/app/people", email=CEM, name="Cem", role="member").status_code == 200
    browser, link = Browser(service), link_for(service, CEM, "invitation")
    answer = browser.submit(link, name="Cem", password="correct horse battery", again="correct horse battery")
    assert answer.status_code == 303, answer.text
    assert pages(service, browser) == [False] * 4


def assign_path(admin: Browser, user: int) -> int:
    return admin.submit("/app/people", f"/app/people/{user}/accounts").status_code


def test_what_is_not_the_customers_is_not_assigned(service: Service, ada: Browser, gil: Browser) -> None:
    before = service.sql("SELECT * FROM account_users")
    assert assign(service, ada, "test-gbp").status_code == 404, "of the other environment"
    assert assign_path(ada, user_id(service, "gil@globex.example")) == 404
    assert assign_path(gil, user_id(service, "ada@acme.example")) == 404
    assert gil.get(f"/app/people/{user_id(service, 'ada@acme.example')}").status_code == 404
    assert service.sql("SELECT * FROM account_users") == before


@pytest.mark.slow
def test_a_member_filters_by_what_they_have_sent_themselves(service: Service, ada: Browser, cem: Browser) -> None:
    for browser, account in ((ada, "small"), (cem, "gbp")):
        path = ready(browser, service, account=account)
        place(browser, path)
    on_database(service.database_url, report)
    for browser, is_told in ((ada, True), (cem, False)):
        page = browser.get("/app/orders").text
        assert "Acme float" in page
        assert ("Small pot" in page) is is_told


def test_an_old_window_takes_away_nothing_that_was_assigned_meanwhile(service: Service, ada: Browser) -> None:
    made = service.sql(
        """
        INSERT INTO accounts (customer_id, environment, currency, kind, key, name, is_master, open_to_all)
        SELECT customer_id, environment, currency, kind, 'spare-' || n, 'Spare ' || n, false, false
        FROM accounts, generate_series(1, 60) AS n WHERE id = $1 RETURNING id
        """,
        service.ids["funding_accounts"]["bots"],
    )
    first, *others = [str(row["id"]) for row in made]
    path = f"/app/people/{user_id(service, CEM)}"

    def assigned() -> set[str]:
        rows = service.sql("SELECT account_id FROM account_users WHERE user_id = $1", user_id(service, CEM))
        return {str(row["account_id"]) for row in rows}

    ada.get(path)
    assert 'name="was_may_use" value=""' in ada.page.text
    old = ada.token
    ada.get(path)
    assert ada.post(f"{path}/accounts", may_use=others, was_may_use="").status_code == 303
    assert assigned() == set(others), "however many there are"
    assert ada.post(f"{path}/accounts", token=old, may_use=first, was_may_use="").status_code == 303
    assert assigned() == {first, *others}
    ada.get(path)
    assert ada.post(f"{path}/accounts", may_use=first, was_may_use=" ".join([first, *others])).status_code == 303
    assert assigned() == {first}
