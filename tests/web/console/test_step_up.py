"""What matters is done by who showed a moment ago that it is still them: the table of routes says what that is."""

import pytest
from tests.web.api.conftest import Service
from tests.web.console.conftest import Browser, SignIn, signed_in
from tests.web.console.sending import quote_in, ready
from tests.web.console.test_access import all_that_counts
from tests.web.console.test_proving import carried, send
from tests.web.console.test_routes import path_of
from tests.web.console.test_security import PASSWORD, with_password

from largesse.customers.roles import Right
from largesse.web.console.page_routes import Access
from largesse.web.console.routes import ROUTES

ADA = "ada@acme.example"
# Rights whose forms all ask, but for those that say why not.
ASKING = {Right.SETTINGS, Right.MOVE_FUNDS, Right.TRANSFER, Right.SEE_FUNDS, Right.AUDIT, Right.READ_CODES}
WITHOUT = {
    "/app/webhooks/{subscription}/test": "sends a sample to an address that was confirmed when it was added",
    "/app/webhooks/{subscription}/again": "sends what such an address was sent before",
    "/app/prove": "is where somebody shows that it is them",
    "/app/environment": "changes what pages are about and nothing else",
    "/app/security/sessions/{session:int}/end": "only takes access away, and must be quick",
    "/app/security/sessions/end": "only takes access away, and must be quick",
    "/app/security/name": "changes how colleagues see a person, and the audit log has both names",
    "/app/security/preferences": "is about language and time alone",
    "/app/branding/logo": "changes how mail looks, not who it is from or where answers go",
    "/app/branding/logo/remove": "changes how mail looks, not who it is from or where answers go",
    "/app/branding/wrappings": "adds a look that nothing has yet",
    "/app/branding/wrappings/{key}/remove": "changes how gifts look, and nothing else",
    "/app/notes": "says whether recipients may write back, and nothing else",
}
# Forms of these rights spend within what an administrator set; a large send asks (below).
SPENDING = {Right.SEND, Right.TEMPLATES}
# Forms of this right change the views that a person has saved, and nothing else.
LOOKING = {Right.SEE_ORDERS}
# Forms of this right change whom a company may send to, and send nothing.
ADDRESSES = {Right.CONTACTS}


@pytest.fixture(scope="module")
def ada(service: Service) -> Browser:
    return with_password(service, ADA)


@pytest.fixture(autouse=True)
def a_while_ago(service: Service, ada: Browser) -> None:
    service.sql("DELETE FROM sign_in_allowances")
    forget(service)


def forget(service: Service) -> None:
    service.sql("UPDATE sessions SET proved_at = now() - interval '1 day'")


def test_every_form_that_matters_asks_or_says_why_not() -> None:
    forms = [route for route in ROUTES if route.method == "POST" and route.is_of_customer]
    mattering = [route for route in forms if route.who in {*ASKING, Access.MEMBER}]
    assert {route.path for route in mattering if not route.step_up} == set(WITHOUT)
    assert {route.who for route in forms} <= {*ASKING, *SPENDING, *LOOKING, *ADDRESSES, Access.MEMBER}


def test_no_form_that_matters_is_carried_out_for_who_showed_it_a_while_ago(service: Service, ada: Browser) -> None:
    before = all_that_counts(service)
    for route in ROUTES:
        if route.step_up:
            ada.page = ada.submit("/app", path_of(route), role="admin", email="new@acme.example", name="x", amount="1")
            assert "Confirm it's you" in ada.text, route.path
    assert all_that_counts(service) == before


def test_an_invitation_is_carried_out_once_it_was_shown(service: Service, ada: Browser) -> None:
    ada.get("/app/people")
    typed = {"token": ada.token, "email": "zoe@acme.example", "name": "Zoe", "role": "admin"}
    send(ada, "/app/people", dict(typed))
    assert service.sql("SELECT count(*) FROM users WHERE email = 'zoe@acme.example'")[0][0] == 0
    send(ada, "/app/people", {**carried(ada), "proof": PASSWORD})
    assert service.sql("SELECT role FROM users WHERE email = 'zoe@acme.example'")[0][0] == "admin"


def test_a_correction_of_an_address_asks_as_the_claim_link_does(service: Service, ada: Browser) -> None:
    """It mails the code and the PIN to whatever address is typed."""
    answer = service.send("gift", "coffee", value=10, recipients=[{"email": "lin@example.com"}])
    path = f"/app/orders/{answer.json()['reference']}"
    ada.get(path)
    typed = {"token": ada.token, "email": "lin@example.com", "corrected": "lin@elsewhere.example"}
    to = "SELECT l.recipient_email FROM lines l JOIN orders o ON o.id = l.order_id WHERE o.reference = $1"
    send(ada, f"{path}/correct", dict(typed))
    assert "Confirm it's you" in ada.text
    assert service.sql(to, answer.json()["reference"])[0][0] == "lin@example.com"
    send(ada, f"{path}/correct", {**carried(ada), "proof": PASSWORD})
    assert ada.page.status_code == 303
    assert service.sql(to, answer.json()["reference"])[0][0] == "lin@elsewhere.example"


def set_amount(service: Service, ada: Browser, currency: str, above: str) -> int:
    service.sql("UPDATE sessions SET proved_at = now()")
    ada.page = ada.submit("/app/security", "/app/security/large-sends", currency=currency, above=above)
    forget(service)
    return ada.page.status_code


@pytest.mark.parametrize(("above", "asks"), [("19.99", True), ("20", False), ("", False)])
def test_a_send_above_the_amount_that_was_set_asks_first(
    service: Service, ada: Browser, above: str, asks: bool
) -> None:
    assert set_amount(service, ada, "GBP", above) == 303
    assert set_amount(service, ada, "EUR", "1") == 303, "of another currency"
    path = ready(ada, service)  # two of £10
    ada.get(f"{path}/review")
    fields: dict[str, str | list[str]] = {"token": ada.token, "quote": quote_in(ada)}
    orders = service.sql("SELECT count(*) FROM orders")[0][0]
    send(ada, f"{path}/place", dict(fields))
    if asks:
        assert "Confirm it's you" in ada.text
        assert service.sql("SELECT count(*) FROM orders")[0][0] == orders
        send(ada, f"{path}/place", {**carried(ada), "proof": PASSWORD})
    assert ada.page.headers["location"] == f"{path}/sent"
    assert service.sql("SELECT count(*) FROM orders")[0][0] == orders + 1


def test_the_amount_is_an_act_of_its_own_and_for_administrators(
    service: Service, ada: Browser, sign_in: SignIn
) -> None:
    set_amount(service, ada, "GBP", "")
    assert set_amount(service, ada, "GBP", "1,000") == 303
    acts = "SELECT before::text, after::text FROM audit_events WHERE act = 'sends.confirmed_above' ORDER BY id DESC LIMIT 1"
    [act] = service.sql(acts)
    assert act["before"] == '{"currency":"GBP","above_minor":null}'
    assert act["after"] == '{"currency":"GBP","above_minor":100000}'
    assert "Amount: None → £1,000.00" in ada.read("/app/audit?act=sends.confirmed_above")
    assert "More than £1,000.00" in ada.read("/app/security")
    for wrong in ("0", "-1", "much"):
        assert set_amount(service, ada, "GBP", wrong) == 422
        assert 'id="above-error"' in ada.page.text
    assert set_amount(service, ada, "XXX", "1") == 422
    cem = sign_in("cem@acme.example")
    assert "Large sends" not in cem.read("/app/security")
    assert cem.post("/app/security/large-sends", currency="GBP", above="").status_code == 403
    gil = signed_in(service, "gil@globex.example")
    assert "1,000.00" not in gil.read("/app/security"), "of another customer"
