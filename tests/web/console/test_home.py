"""The first page: its figures, what needs attention, and the first steps of a new customer."""

import re
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from tests.web.api.conftest import Service, on_database
from tests.web.console.conftest import SignIn

from largesse.base.i18n.languages import LANGUAGES
from largesse.base.i18n.templates import translations
from largesse.ledger.statements import DAYS, read_history
from largesse.web.console.charts import Change, change_of, change_of_share
from largesse.web.console.layout import CATALOGUES


@pytest.fixture
def service(own_service: Service) -> Service:
    """A service with a new database for each test: what a balance was is in no other test's days."""
    return own_service


@pytest.fixture
def later(service: Service) -> Iterator[Callable[[int], None]]:
    """`later(days)`: it is so many days after now."""
    yield lambda days: service.sql("UPDATE clock SET ahead_by = make_interval(days => $1)", days) and None
    service.sql("UPDATE clock SET ahead_by = '0'")


def test_balances_have_a_line_of_the_last_days(service: Service, later: Callable[[int], None], sign_in: SignIn) -> None:
    team, sales = (service.ids["funding_accounts"][name] for name in ("team", "sales"))
    for days, value in ((10, 25), (20, 10), (20, 10)):
        later(days)
        assert service.send("gift", "coffee", account="team", value=value).status_code == 200
    later(25)
    history = on_database(service.database_url, lambda connection: read_history(connection, 1, [team, sales, 999]))
    assert DAYS == 30
    # The file was loaded 25 days ago: before there was nothing.
    assert history[team] == [0] * 2 + [5000] * 5 + [2500] * 5 + [500] * 3
    assert history[sales] == [0] * 2 + [2000] * 13
    assert history[999] == [0] * 15
    ada = sign_in("ada@acme.example")
    page = ada.get("/app").text
    drawn = dict(re.findall(r"<title>([^<]+)</title><desc>([^<]+)</desc>", page))
    assert drawn == {"Balance, GBP": "Between £0.00 and £1,000,070.00 in the last 30 days"}
    assert "Test float" not in page
    cem = sign_in("cem@acme.example")
    assert 'class="line"' in cem.get("/app").text
    assert "Balance, GBP, 1 account" in cem.text, "not those that are not theirs"


def stub(language: str = "en") -> Any:
    """What figures need of a context."""
    said = translations(language, CATALOGUES)
    return SimpleNamespace(
        language=LANGUAGES[language],
        ngettext=lambda one, many, count, **values: said.ngettext(one, many, count) % {"count": count, **values},
    )


@pytest.mark.parametrize(
    ("now", "before", "change"),
    [
        (112, 100, (1, "12%")),
        (88, 100, (-1, "12%")),
        (100, 100, (0, "0%")),
        (1000, 100, (1, "900%")),
        (1001, 100, None),
        (5, 0, None),
        (5, -5, None),
        (0, 100, (-1, "100%")),
    ],
)
def test_a_sum_changes_by_a_share_where_that_means_something(
    now: int, before: int, change: tuple[int, str] | None
) -> None:
    found = change_of(stub(), now, before)
    assert (found and (found.direction, found.by)) == change


def test_a_share_changes_by_points() -> None:
    assert change_of_share(stub(), 0.78, 0.74) == Change(1, "4 points")
    assert change_of_share(stub("de"), 0.5, 0.51) == Change(-1, "1 Prozentpunkt")
    assert change_of_share(stub(), 0.504, 0.499) == Change(0, "0 points")


def test_a_new_customer_has_four_steps_until_all_are_done(service: Service, sign_in: SignIn) -> None:
    for _ in range(2):
        assert service.send("gift", "coffee", value=10).status_code == 200
    ada = sign_in("ada@acme.example")
    assert "First steps 3 of 4 done" in ada.read("/app")
    assert "First steps" not in sign_in("cem@acme.example").get("/app").text, "for administrators"
    # The step that is left is one of test mode: its button goes there.
    page = ada.get("/app").text
    assert "Start in test mode" in page
    assert ada.post("/app/environment", environment="staging", next="/app/send").headers["location"] == "/app/send"
    assert "Start in test mode" not in ada.read("/app")
    assert "3 of 4 done" in ada.text
    away = ada.post("/app/environment", environment="production", next="https://evil.example/app")
    assert away.headers["location"] == "/app"
    service.sql("UPDATE orders SET environment = 'staging' WHERE id = (SELECT min(id) FROM orders)")
    assert "First steps" not in ada.get("/app").text
    service.sql("UPDATE orders SET environment = 'production'")
    assert "First steps" in ada.get("/app").text
    service.sql("UPDATE customers SET created_at = clock_now() - interval '31 days'")
    assert "First steps" not in ada.get("/app").text
    service.sql("UPDATE customers SET created_at = clock_now()")


def test_what_needs_attention_names_it_and_offers_the_action(service: Service, sign_in: SignIn) -> None:
    team = service.ids["funding_accounts"]["team"]
    service.sql("INSERT INTO account_watches VALUES (1, $1, 100000, true)", team)
    [[subscription]] = service.sql(
        """
        INSERT INTO webhook_subscriptions (id, customer_id, environment, event, target_url, sealed_secret, service_account_id)
        SELECT gen_random_uuid(), 1, 'production', 'order.created', 'https://crm.acme.example/hook', ''::bytea, min(id)
        FROM service_accounts RETURNING id
        """
    )
    service.sql(
        "INSERT INTO subscription_queues (customer_id, subscription_id, failing, due_at) VALUES (1, $1, true, 'infinity')",
        subscription,
    )
    ada = sign_in("ada@acme.example")
    ada.sees("/app", "People team is below £1,000.00 £", " left. Top up")
    ada.says("A webhook fails crm.acme.example does not accept deliveries. See the deliveries")
    assert {f"/app/funding/top-ups/new?account={team}", f"/app/webhooks/{subscription}"} <= set(ada.links)
    cem = sign_in("cem@acme.example")
    assert "A webhook fails" not in cem.get("/app").text
