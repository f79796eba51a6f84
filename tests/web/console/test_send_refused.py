"""Sending, where it is refused: nothing is lost, nothing charged, and nothing shown to whom it is not."""

import pytest
from tests.web.api.conftest import Service
from tests.web.console.conftest import Browser, SignIn
from tests.web.console.sending import PEOPLE, WORLD, begin, browser_text, place, quote_in, ready

from largesse.web.console.routes import ROUTES

__all__ = ["WORLD"]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "The file is empty: it has 0 bytes."),
        (b" \n", "It is empty."),
        (b"email,name\n", "It has headings, and no rows below them."),
        (b"a\x00b", "This is neither a CSV file nor a workbook of Excel"),
        (b"PK\x03\x04x", "This is neither a CSV file nor a workbook of Excel"),
        (b"\xd0\xcf\x11\xe0" + bytes(99), "This workbook is of an older kind, or has a password."),
        (b"a@example.com\n" * 5002, "There are more than 5,000 rows: send them in several orders."),
        (b"x" * (4 * 1024 * 1024 + 1), "The file is too large: at most 4,194,304 bytes are read."),
        (b'a,"b', "A quotation mark in row 1 is not closed"),
        (None, "Choose a file."),
    ],
)
def test_a_file_that_is_none_is_told_beside_its_field(
    service: Service, ada: Browser, data: bytes | None, said: str
) -> None:
    path = begin(ada, service)
    ada.get(f"{path}/recipients")
    answer = ada.upload(f"{path}/file", data or b"", file_name="" if data is None else "people.csv")
    assert answer.status_code == 422
    assert said in browser_text(answer.text)
    assert 'aria-describedby="file-help file-error"' in answer.text


def test_what_is_beyond_all_limits_is_refused(service: Service, ada: Browser) -> None:
    path = begin(ada, service)
    ada.get(f"{path}/recipients")
    answer = ada.upload(f"{path}/file", bytes(9 * 1024 * 1024))
    assert answer.status_code == 413
    assert "What you sent is too large." in browser_text(answer.text)


def test_an_account_that_ran_dry_and_a_price_that_changed_are_told(service: Service, ada: Browser) -> None:
    first, second = [ready(ada, service, account="small") for _ in range(2)]
    quotes = []
    for path in (first, second):
        ada.get(f"{path}/review")
        quotes.append(quote_in(ada))
    assert ada.post(f"{first}/place", quote=quotes[0]).status_code == 303
    before = service.state()
    ada.get("/app")  # another page's token: with the same it would be the first form again
    dry = ada.post(f"{second}/place", quote=quotes[1])
    assert dry.status_code == 409
    assert "Nothing was charged." in browser_text(dry.text)
    assert "balance is too low." in browser_text(dry.text)
    assert "Zoë zoe@example.com" in ada.read(f"{second}/recipients"), "the draft stays"

    parcel = ready(ada, service, gift="hamper", value="")
    ada.sees(f"{parcel}/review", "Gift £38.50 \u00d7 2 £77.00", "Postage £4.95 \u00d7 2 £9.90")
    ada.says("VAT £8.69 \u00d7 2 £17.38", "Total £104.28")
    quote = quote_in(ada)
    service.sql("UPDATE products SET cost_minor = 4000 WHERE NOT is_digital")
    try:
        dearer = ada.post(f"{parcel}/place", quote=quote)
        assert dearer.status_code == 409
        assert "The price or the draft has changed since you saw it. Nothing was charged" in browser_text(dearer.text)
        assert "Send 2 gifts for £117.48" in browser_text(dearer.text)
        assert service.state() == before
        place(ada, parcel)
    finally:
        service.sql("UPDATE products SET cost_minor = 3500 WHERE NOT is_digital")


def test_nobody_else_sees_a_draft_or_what_became_of_it(service: Service, sign_in: SignIn) -> None:
    browser = sign_in("cem@acme.example")
    draft, sent = [ready(browser, service) for _ in range(2)]
    place(browser, sent)
    before = service.state()
    paths = [(route.method, route.path.rpartition("/")[2]) for route in ROUTES if "/send/{draft}" in route.path]
    shown, posted = [[part for method, part in paths if method == one] for one in ("GET", "POST")]
    shown.remove("review")  # leads anybody to `sent`
    for email in ("ada@acme.example", "gil@globex.example"):
        other = sign_in(email)
        for path in (draft, sent):
            for part in shown:
                assert other.get(f"{path}/{part}").status_code == 404, part
            other.get("/app")
            for part in posted:
                assert other.post(f"{path}/{part}", quantity="1").status_code == 404, part
    browser.submit("/app", "/app/environment", environment="staging")
    assert browser.get(f"{draft}/recipients").status_code == 404
    assert browser.submit("/app/send", f"{draft}/place").status_code == 404
    assert sign_in("fin@acme.example").get("/app/send").status_code == 403
    assert service.state() == before


def test_what_is_typed_is_shown_and_never_run(service: Service, ada: Browser) -> None:
    evil = "<script>alert(1)</script>\"'>"
    path = begin(ada, service)
    ada.submit(f"{path}/recipients", rows=f"email,{evil}\n{evil},{evil}\nx@example.com,{evil}")
    ada.submit(f"{path}/message", wrapping_key="gold", from_name=evil[:32], message=evil, then="look")
    ada.get(f"{path}/delivery")
    account = str(service.ids["funding_accounts"]["gbp"])
    ada.post(f"{path}/delivery", when="now", account=account, reference=evil)
    for part in ("recipients", "message", "mail", "claim", "delivery", "review"):
        page = ada.get(f"{path}/{part}")
        assert page.status_code == 200
        assert "<script>alert" not in page.text, part
        policy = page.headers["content-security-policy"]
        assert "unsafe" not in policy, part
        assert ("frame-src 'self'" in policy) is (part == "message")
        assert ("script-src 'self'" in policy) is (part not in {"mail", "claim"})
    mail = ada.get(f"{path}/mail?lang=de")
    assert "sandbox" in mail.headers["content-security-policy"]
    assert '<html lang="de"' in mail.text
    assert "&lt;script&gt;" in mail.text
    assert "x-frame-options" not in mail.headers


def test_what_lacks_is_told_on_the_review(service: Service, ada: Browser) -> None:
    path = begin(ada, service)
    assert "Add recipients, and fix the rows with errors." in ada.read(f"{path}/review")
    before = service.state()
    assert ada.post(f"{path}/place").status_code == 409
    ada.submit(f"{path}/recipients", rows=PEOPLE)
    assert "Choose the account that pays." in ada.read(f"{path}/review")
    assert "invoice" not in ada.text, "a customer with accounts is not invoiced"
    assert ada.post(f"{path}/place").status_code == 409
    assert service.state() == before
    ada.post(f"{path}/drop")
    assert ada.get(f"{path}/recipients").status_code == 404
