"""Seeing the web application as a customer does: for a reason the customer reads, for 30 minutes, and without anything that acts."""

import re

import pytest
from tests.web.api.conftest import Service
from tests.web.console.conftest import Browser
from tests.web.console.test_routes import path_of
from tests.web.office.conftest import SignIn, number_of

from largesse.customers.roles import RIGHTS, Right
from largesse.web.console.routes import ROUTES
from largesse.web.office.see_as import ROOT, SEEN

REASON = "Ticket 4711: the balance looks wrong"


@pytest.fixture
def view(service: Service, sign_in: SignIn) -> Browser:
    """The browser of somebody of support who sees what Acme sees."""
    return opened(service, sign_in, "acme")


def opened(service: Service, sign_in: SignIn, customer: str, environment: str = "production") -> Browser:
    browser, ask = sign_in("support"), f"/office/customers/{number_of(service, customer)}/see-as"
    begun = browser.submit(ask, environment=environment, reason=REASON)
    assert begun.headers["location"] == f"{ROOT}/app"
    return browser


def test_a_view_needs_a_reason_and_the_customer_reads_it(service: Service, sign_in: SignIn) -> None:
    customer_id = number_of(service, "acme")
    browser, ask = sign_in("support"), f"/office/customers/{customer_id}/see-as"
    browser.get(ask)
    assert browser.get(f"{ROOT}/app").headers["location"] == "/office/customers"
    browser.get(ask)
    for reason in ("", "a" * 9, "a" * 201):
        refused = browser.post(ask, environment="production", reason=reason)
        assert refused.status_code == 422
        assert "10 to 200 characters" in refused.text
    assert browser.post(ask, environment="moon", reason=REASON).status_code == 422
    for reason in ("a" * 10, "a" * 200):
        assert browser.submit(ask, environment="production", reason=reason).status_code == 303
    told = service.sql(
        "SELECT actor, actor_name, environment, after->>'reason' AS reason FROM audit_events WHERE act = 'customer.seen_as' AND customer_id = $1 ORDER BY id DESC LIMIT 1",
        customer_id,
    )
    assert [tuple(row) for row in told] == [("staff", "support@largesse.example", "production", "a" * 200)]


def test_a_view_shows_the_customers_pages_with_a_banner_and_links_into_itself(view: Browser) -> None:
    page = view.get(f"{ROOT}/app")
    assert page.status_code == 200
    assert "You see what Acme Ltd sees" in view.text
    own = [link for link in view.links if link.startswith("/") and "/assets/" not in link]
    assert own
    assert not [link for link in own if not link.startswith(f"{ROOT}/app") and not link.startswith("/docs")]
    for path in sorted(SEEN):
        if "{" not in path:
            answered = view.get(f"{ROOT}{path}")
            assert answered.status_code == 200 or path == "/app/funding/owed", path
            assert "You see what Acme Ltd sees" in view.text
            assert '<form method="post"' not in answered.text.replace(
                '<form method="post" action="/office/see-as/end">', ""
            ), path


def test_pictures_are_shown_from_where_everybody_sees_them(view: Browser) -> None:
    name = "5e2f0c9ab1d34f7e8a6b5c4d3e2f1a0b.png"
    assert view.get(f"{ROOT}/pictures/{name}").headers["location"] == f"/pictures/{name}"
    assert view.get(f"{ROOT}/pictures/../{name}").status_code == 404
    assert view.get(f"{ROOT}/pictures/a/{name}").status_code == 404


def test_a_view_has_the_customers_rows_and_no_others(service: Service, sign_in: SignIn) -> None:
    recipients = [{"email": "sam@example.com", "name": "Sam"}]
    references = {
        key: service.send("gift", "coffee", value=5, recipients=recipients, **more).json()["reference"]
        for key, more in (("acme", {}), ("globex", {"key": "globex", "account": "globex-gbp"}))
    }
    view = opened(service, sign_in, "acme")
    assert view.get(f"{ROOT}/app/orders/{references['acme']}").status_code == 200
    assert view.get(f"{ROOT}/app/orders/{references['globex']}").status_code == 404
    other = opened(service, sign_in, "globex")  # the same session's view moves on
    assert other.get(f"{ROOT}/app/orders/{references['globex']}").status_code == 200
    assert other.get(f"{ROOT}/app/orders/{references['acme']}").status_code == 404
    staging = opened(service, sign_in, "acme", "staging")
    assert staging.get(f"{ROOT}/app").status_code == 200
    assert staging.get(f"{ROOT}/app/orders/{references['acme']}").status_code == 404


@pytest.mark.slow
def test_no_form_no_step_up_no_code_and_no_file_works_in_a_view(service: Service, view: Browser) -> None:
    """Every address of the web application is tried with every method: only what may be seen is there, and only to be read."""
    view.get("/office/customers")
    counted = "SELECT (SELECT count(*) FROM audit_events), (SELECT count(*) FROM code_readings), (SELECT count(*) FROM order_acts)"
    before = service.sql(counted)
    for route in ROUTES:
        path = ROOT + path_of(route)
        if route.method == "GET" and route.path not in SEEN:
            assert view.get(path).status_code == 404, path
        view.get("/office/security")
        for fields in ({}, {"reason": REASON, "name": "x", "email": "x@example.com", "sure": "yes"}):
            assert view.post(path, **fields).status_code == 404, path
    assert service.sql(counted) == before


def test_what_may_be_seen_is_for_viewers_and_reads() -> None:
    """What shows codes, keys, secrets, sign-ins or files is not in the list, nor what a viewer may not open."""
    routes = {route.path: route for route in ROUTES if route.method == "GET"}
    assert set(routes) >= SEEN
    for path in SEEN:
        route = routes[path]
        assert not route.step_up
        assert not isinstance(route.who, Right) or "viewer" in RIGHTS[route.who], path
        assert not re.search(r"csv|code|key|secret|security|prove|link|webhook|verify|notes|sign", path), path


def test_a_view_ends_after_30_minutes_when_asked_and_with_the_session(
    service: Service, sign_in: SignIn, view: Browser
) -> None:
    other = opened(service, sign_in, "globex")
    view.get(f"{ROOT}/app")
    (token,) = re.findall(
        r'action="/office/see-as/end"><input type="hidden" name="token" value="([^"]+)"',
        view.page.text if view.page else "",
    )
    assert view.post("/office/see-as/end", token=token).status_code == 303
    assert view.get(f"{ROOT}/app").headers["location"] == "/office/customers"
    assert "You see what Globex sees" in other.read(f"{ROOT}/app"), "a view of another session stays"
    ask = f"/office/customers/{number_of(service, 'acme')}/see-as"
    view.submit(ask, environment="production", reason=REASON)
    service.sql(
        "UPDATE customer_views SET ends_at = ends_at - interval '29 minutes 50 seconds' WHERE ends_at > clock_now()"
    )
    assert view.get(f"{ROOT}/app").status_code == 200
    service.sql("UPDATE customer_views SET ends_at = ends_at - interval '10 seconds' WHERE ends_at > clock_now()")
    assert view.get(f"{ROOT}/app").headers["location"] == "/office/customers"
    view.submit(ask, environment="production", reason=REASON)
    service.sql("UPDATE staff_sessions SET ended_at = clock_now()")
    assert view.get(f"{ROOT}/app").headers["location"].startswith("/office/sign-in")


def test_a_view_is_for_its_own_session_and_for_support(service: Service, sign_in: SignIn, view: Browser) -> None:
    assert sign_in("owner").get(f"{ROOT}/app").headers["location"] == "/office/customers"
    for role in ("catalogue", "finance", "warehouse", "auditor"):
        browser = sign_in(role)
        assert browser.get(f"{ROOT}/app").status_code == 403
        assert browser.get(f"/office/customers/{number_of(service, 'acme')}/see-as").status_code == 403
    stranger = Browser(service)
    assert stranger.get(f"{ROOT}/app").headers["location"].startswith("/office/sign-in")
