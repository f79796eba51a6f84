"""What one may do beside sending: have the mail sent to oneself as a test, and keep what was sent as a template."""

import email
import email.policy
import json
from collections.abc import Iterator
from email.message import EmailMessage

import pytest
from tests.conftest import Template
from tests.web.api.conftest import MASTER_KEY, Service, ServiceFactory, services_on
from tests.web.console.conftest import Browser
from tests.web.console.gifts import PICTURE, picture_coffee
from tests.web.console.sending import WORLD, begin, quote_in, ready

from largesse.encryption.vault import Vault
from largesse.mail.mailbox import sealing_context
from largesse.templates.service import MAX_NAME, MOST_TEMPLATES

SAID = {"wrapping_key": "confetti", "from_name": "Acme <b>", "message": "Thanks!\r\nAll of us"}


@pytest.fixture
def start_service(template: Template, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceFactory]:
    """Starts services on a new database for each test: one counts its mails, another makes all templates there may be."""
    with services_on(template, tmp_path_factory) as start:
        yield start


@pytest.fixture
def service(start_service: ServiceFactory) -> Service:
    """One with a mail server; nothing works here that would send."""
    return start_service(WORLD, smtp_url="smtp://127.0.0.1:1")


@pytest.fixture
def silent(service: Service, start_service: ServiceFactory) -> Service:
    """One of the same installation without a mail server."""
    return start_service(like=service)


def parsed(raw: bytes) -> EmailMessage:
    message = email.message_from_bytes(raw, policy=email.policy.default)
    assert isinstance(message, EmailMessage)
    return message


def mails(service: Service) -> list[tuple[str, EmailMessage]]:
    """The tests that wait, with the address of whom each is to."""
    rows = service.sql(
        "SELECT u.email, m.content FROM people_mails m JOIN users u ON u.id = m.user_id WHERE m.kind = 'test' ORDER BY m.id"
    )
    return [(row["email"], parsed(row["content"])) for row in rows]


def try_it(browser: Browser, path: str) -> str:
    """Has the mail of a draft sent as a test; what the page says then."""
    answer = browser.submit(f"{path}/message", **SAID, then="try")
    assert (answer.status_code, answer.headers["location"]) == (303, f"{path}/message")
    browser.get(f"{path}/message")
    return browser.text


def test_the_mail_comes_to_who_sends_it_as_it_will_be(service: Service, cem: Browser) -> None:
    picture_coffee(service)
    path = ready(cem, service)
    said = try_it(cem, path)
    assert "A test mail to cem@acme.example is on its way." in said
    assert "All of us" in said, "what was typed is kept"
    [(to, message)] = mails(service)
    assert (to, message["To"]) == ("cem@acme.example", "Cem <cem@acme.example>")
    assert message["Subject"] == "[Test] Acme <b> sent you a gift"
    html, text = (message.get_body((kind,)).get_content() for kind in ("html", "plain"))
    for part in (html, text):
        assert "This is a test, sent to you alone." in part
        assert "Coffee House e-gift" in part
        assert "All of us" in part
        assert "https://gifts.example/claim" in part
        assert "Zo\u00eb" not in part, "nobody who is to get it is named"
    assert "Acme <b>" not in html
    assert f'src="https://gifts.example/pictures/{PICTURE.name}"' in html
    assert service.sql("SELECT count(*) FROM orders")[0][0] == 0
    assert "Acme <b>" in cem.read(f"{path}/review")


def test_a_test_is_sent_six_times_and_then_one_waits(service: Service, ada: Browser, cem: Browser) -> None:
    path = ready(ada, service)
    for _ in range(6):
        assert "is on its way" in try_it(ada, path)
    ids = {message["Message-ID"] for to, message in mails(service) if to == "ada@acme.example"}
    assert len(ids) == 6
    assert "Too many attempts. Wait a minute" in try_it(ada, path)
    assert len(mails(service)) == 6
    assert "is on its way" in try_it(cem, ready(cem, service)), "each person has their own"
    service.sql("UPDATE clock SET ahead_by = ahead_by + interval '61 seconds'")
    try:
        assert "is on its way" in try_it(ada, path)
    finally:
        service.sql("UPDATE clock SET ahead_by = '0'")


def test_in_test_mode_it_is_captured(service: Service, cem: Browser) -> None:
    cem.submit("/app", "/app/environment", environment="staging")
    path = ready(cem, service, account="test-gbp")
    before = len(mails(service))
    assert "A test mail to cem@acme.example is in the test mailbox." in try_it(cem, path)
    assert len(mails(service)) == before
    [row] = service.sql("SELECT * FROM captured_mail")
    assert (row["environment"], row["recipient"], row["message_id"] < 0) == ("staging", "cem@acme.example", True)
    assert row["subject"] == "[Test] Acme <b> sent you a gift"
    raw = Vault((MASTER_KEY,)).captured.open(row["sealed"], sealing_context(row["message_id"]))
    assert parsed(raw)["Subject"] == row["subject"]


def test_there_is_none_of_codes_nor_without_a_mail_server(service: Service, silent: Service, cem: Browser) -> None:
    path = begin(cem, service)
    cem.submit(f"{path}/recipients", f"{path}/codes", quantity="3")
    before = len(mails(service))
    assert "as a test" not in cem.get(f"{path}/message").text
    assert "on its way" not in try_it(cem, path)
    gone = Browser(silent, cookies=cem.cookies)
    path = ready(gone, silent)
    assert "as a test" not in gone.get(f"{path}/message").text
    assert "No mail server is set here: nothing was sent." in try_it(gone, path)
    assert len(mails(service)) == before


def sent(browser: Browser, service: Service, **gift: str) -> str:
    """The path of what was just sent."""
    path = ready(browser, service, **gift)
    browser.submit(f"{path}/message", **SAID, then="go")
    browser.get(f"{path}/review")
    assert browser.post(f"{path}/place", quote=quote_in(browser)).headers["location"] == f"{path}/sent"
    browser.get(f"{path}/sent")
    return path


def test_what_was_sent_is_kept_as_a_template_and_sent_again(service: Service, cem: Browser) -> None:
    path = sent(cem, service)
    kept = cem.post(f"{path}/template", name="Spring <i>thanks</i>")
    assert (kept.status_code, kept.headers["location"]) == (303, f"{path}/sent")
    assert "Spring <i>thanks</i>" not in cem.get(f"{path}/sent").text
    assert "Saved as the template Spring <i>thanks</i>." in cem.text
    [row] = service.sql("SELECT * FROM templates WHERE name LIKE 'Spring%'")
    assert (row["product_id"], row["value_minor"], row["currency"]) == (service.ids["products"]["coffee"], 1000, "GBP")
    assert (row["wrapping_key"], row["from_name"], row["message"]) == ("confetti", "Acme <b>", "Thanks!\nAll of us")
    cem.get(f"/app/send/gift?template={row['id']}")
    assert cem.post("/app/send/gift", template=str(row["id"])).status_code == 303
    [act] = service.sql("SELECT actor_name, subject, after FROM audit_events WHERE act = 'template.created'")
    assert tuple(act) == ("cem@acme.example", f"template {row['id']}", '{"name":"Spring <i>thanks</i>"}')


def test_an_order_is_repeated_from_its_page_by_who_sent_it(service: Service, cem: Browser, ada: Browser) -> None:
    reference = sent(cem, service).rpartition("/")[2]
    again = f"/app/send/{reference}/again"
    assert f'action="{again}"' not in ada.get(f"/app/orders/{reference}").text
    assert f'action="{again}"' in cem.get(f"/app/orders/{reference}").text
    draft = cem.post(again).headers["location"].split("/")[3]
    assert content_of(service, draft) == {
        "product_id": service.ids["products"]["coffee"], "country": "GB", "value": 10.0, "wrapping_key": "confetti",
        "from_name": "Acme <b>", "message": "Thanks!\nAll of us", "account_id": service.ids["funding_accounts"]["gbp"],
    }  # fmt: skip
    assert "10.00" in cem.read(f"/app/send/{draft}/recipients")


def content_of(service: Service, draft: str) -> dict[str, object]:
    """What is chosen in a draft."""
    [row] = service.sql("SELECT content FROM drafts WHERE id = $1", draft)
    return {name: value for name, value in json.loads(row["content"]).items() if value is not None}


def test_a_parcel_is_kept_too(service: Service, cem: Browser) -> None:
    path = sent(cem, service, gift="hamper", value="")
    assert cem.post(f"{path}/template", name="x" * MAX_NAME).status_code == 303
    [row] = service.sql("SELECT id, value_minor FROM templates WHERE name LIKE 'xx%'")
    assert row["value_minor"] == 3850
    cem.get(f"/app/send/gift?template={row['id']}")
    assert cem.post("/app/send/gift", template=str(row["id"])).status_code == 303
    draft = cem.submit(f"{path}/sent", f"{path}/again").headers["location"].split("/")[3]
    assert "value" not in content_of(service, draft), "its price may have changed"


@pytest.mark.parametrize("name", ["", "x" * (MAX_NAME + 1), "a\u202eb"])
def test_what_is_wrong_with_its_name_is_said(service: Service, cem: Browser, name: str) -> None:
    path = sent(cem, service)
    before = service.sql("SELECT count(*) FROM templates")
    answer = cem.post(f"{path}/template", name=name)
    assert answer.status_code == 422
    assert 'id="name-error"' in answer.text
    assert service.sql("SELECT count(*) FROM templates") == before


def test_nobody_keeps_what_somebody_else_sent_nor_one_too_many(
    service: Service, cem: Browser, ada: Browser, gil: Browser
) -> None:
    path = sent(cem, service)
    for other in (ada, gil):
        other.get("/app/send")
        assert other.post(f"{path}/template", name="theirs", token=other.token).status_code == 404
    service.sql(
        "INSERT INTO templates (customer_id, key, name, gift_name, product_id, value_minor, currency, country) "
        "SELECT 1, 'm' || n, 'm', 'g', $1, 500, 'GBP', 'GB' FROM generate_series(1, $2) AS n",
        service.ids["products"]["coffee"],
        MOST_TEMPLATES,
    )
    answer = cem.post(f"{path}/template", name="one more")
    assert answer.status_code == 422
    assert "Your company has 500 templates." in answer.text
