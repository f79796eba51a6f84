"""Sending, as somebody does it without script: each page a plain form, and one order at its end."""

import asyncio
import re
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from tests.web.api.conftest import Service
from tests.web.console.conftest import Browser, SignIn, signed_in, user_id
from tests.web.console.sending import PEOPLE, WORLD, begin, place, quote_in, ready

from largesse.branding.model import NO_BRAND
from largesse.lines.attempts import read_typed_pin
from largesse.lines.codes import IssuedCode
from largesse.web.console.order_acts import MOST_QR_CODES, code_sheet
from largesse.web.kit.pages import qr_code

__all__ = ["WORLD"]


def test_a_gift_is_sent_step_by_step(own_service: Service) -> None:
    service, browser = own_service, signed_in(own_service, "cem@acme.example")
    browser.sees("/app/send", "Coffee House e-gift £5.00, £10.00, £25.00", "Autumn hamper £52.14")
    path = begin(browser, service)

    browser.get(f"{path}/recipients")
    assert browser.upload(f"{path}/file", PEOPLE.encode()).status_code == 303
    browser.sees(f"{path}/recipients", "Recipients 2 Gifts 2 Total £20.00", "All 2 Ready 2 Recipients")
    browser.says("Continue with 2")

    said = browser.submit(
        f"{path}/message", wrapping_key="confetti", from_name="Acme", message="Thanks!\r\nAll", then="go"
    )
    assert said.headers["location"] == f"{path}/delivery"

    assert "Acme float Balance £100,000.00, £99,980.00 afterwards" in browser.read(f"{path}/delivery")
    assert "For bots" not in browser.text
    account = str(service.ids["funding_accounts"]["gbp"])
    said = browser.post(f"{path}/delivery", when="now", account=account, reference="spring")
    assert said.headers["location"] == f"{path}/review"

    browser.sees(f"{path}/review", "Total £20.00", "Acme float afterwards £99,980.00", "Send 2 gifts for £20.00")
    browser.says("spring")
    sent = browser.post(f"{path}/place", quote=quote_in(browser))
    assert sent.headers["location"] == f"{path}/sent"

    assert "0 of 2 mails have left." in browser.read(f"{path}/sent")
    assert "Refresh" in browser.text, "two wait"
    assert "£20.00 was taken from Acme float." in browser.text
    reference = path.rpartition("/")[2]
    (order,) = service.sql("SELECT * FROM orders WHERE reference = $1", reference)
    assert (order["source"], order["service_account_id"], order["message"]) == ("web", None, "Thanks!\nAll")
    assert (order["user_id"], order["api_key_id"]) == (user_id(service, "cem@acme.example"), None)
    assert order["external_reference"] == "spring"
    lines = service.of_order(reference, "recipient_email, recipient_name", "lines", "ORDER BY number")
    assert [tuple(line) for line in lines] == [("zoe@example.com", "Zoë"), ("bo@example.com", "Bo")]
    assert service.sql("SELECT id FROM drafts UNION ALL SELECT draft_id FROM draft_rows") == []
    (event,) = service.sql("SELECT convert_from(body, 'UTF8') FROM events WHERE order_id = $1", order["id"])
    assert '"sourceType":"web"' in event[0]
    assert '"createdBy":null' in event[0]
    # Whoever comes back to its pages finds what became of it.
    for step in ("recipients", "contacts", "message", "delivery", "review"):
        assert browser.get(f"{path}/{step}").headers["location"] == f"{path}/sent"
    for form in ("recipients", "rows", "remove", "message", "delivery", "drop", "ask"):  # of windows opened before
        browser.get("/app")
        assert browser.post(f"{path}/{form}", message="Wait").headers["location"] == f"{path}/sent", form
        assert "This send was placed in another window." in browser.read(f"{path}/sent"), form
    ada = signed_in(service, "ada@acme.example")
    assert ada.get(f"{path}/recipients").status_code == 404, "it is somebody else's"
    assert ada.submit("/app", f"{path}/message", message="Wait").status_code == 404


def test_what_became_of_the_mails_is_counted(service: Service, ada: Browser) -> None:
    path = ready(ada, service, rows="a@example.com\nb@example.com\nc@example.com\nd@example.com\n")
    place(ada, path)
    (order,) = service.sql("SELECT customer_id, id FROM orders WHERE reference = $1", path.rpartition("/")[2])
    # Each state with how many of the four have left, came back, and whether some still wait.
    for number, (state, told) in enumerate(
        [
            ("pending", ("0 of 4 mails have left.", None, True)),
            ("sent", ("1 of 4 mails have left.", None, True)),
            ("captured", ("2 of 4 mails have left.", None, True)),
            ("bounced", ("2 of 4 mails have left.", "1 came back.", True)),
            ("sent", ("3 of 4 mails have left.", "1 came back.", False)),
        ]
    ):
        service.sql(
            """
            INSERT INTO messages
                (customer_id, order_id, environment, kind, edition, email, state, line_numbers, due_at, rank_at, created_at)
            VALUES ($1, $2, 'production', 'gift', $3, 'x@example.com', $4, ARRAY[1], now(), now(), now())
            """,
            *order,
            number,
            state,
        )
        ada.get(f"{path}/sent")
        left, back, waits = told
        assert left in ada.text
        assert ("came back" in ada.text) == (back is not None)
        assert back is None or back in ada.text
        assert ("Refresh" in ada.text) == waits
        assert f'max="4" value="{left[0]}"' in ada.page.text


def test_codes_are_handed_out_for_an_hour_and_each_reading_is_kept(service: Service, cem: Browser) -> None:
    path = begin(cem, service)
    cem.get(f"{path}/recipients")
    for wrong in ("0", "5001", "", "x", "1.5"):
        assert cem.post(f"{path}/codes", quantity=wrong).status_code == 422
    for most_and_some in ("5000", "3"):
        assert cem.submit(f"{path}/recipients", f"{path}/codes", quantity=most_and_some).status_code == 303
    cem.submit(f"{path}/message", wrapping_key="confetti", from_name="Acme", message="", then="go")
    cem.submit(f"{path}/delivery", account=str(service.ids["funding_accounts"]["gbp"]))
    place(cem, path)
    assert "3 codes were made." in cem.read(f"{path}/sent")
    assert "Codes as a file" in cem.text
    handed = cem.get(f"{path}/codes.csv").text.splitlines()
    assert handed[0].endswith("code,pin,link")
    assert len(handed) == 4
    code, pin, link = handed[1].split(",")
    assert re.fullmatch(r"\d{3}-\d{3}", pin)  # a spreadsheet would drop a zero in front
    assert read_typed_pin(pin) == pin.replace("-", "")
    pin = pin.replace("-", "")
    sheet = cem.get(f"{path}/codes").text
    cem.says(code, pin)
    assert str(qr_code(f"{link}#pin={pin}", mask=3)) in sheet
    assert sheet.count('class="qr"') == 3
    assert sheet.count("<strong>A gift from Acme</strong>") == 3, "each slip is for somebody who knows nothing of it"
    typed_at = link.rpartition("/")[0].removeprefix("https://")
    assert sheet.count(f"Scan the QR code. Or type the code and the PIN at {typed_at}.") == 3
    assert service.client().get(link.removeprefix(service.settings.public_url)).status_code == 200
    reference = path.rpartition("/")[2]
    readings = service.of_order(reference, "user_id, api_key_id", "code_readings")
    assert len(readings) == 2
    assert all(row["user_id"] and row["api_key_id"] is None for row in readings)
    aged = "UPDATE orders SET created_at = now() - $2 * interval '1 minute' WHERE reference = $1"
    service.sql(aged, reference, 59.0)
    assert cem.get(f"{path}/codes").status_code == 200
    service.sql(aged, reference, 61.0)
    assert cem.get(f"{path}/codes").status_code == 403
    assert cem.get(f"{path}/codes.csv").status_code == 403
    assert code not in cem.text
    assert "Codes as a file" not in cem.read(f"{path}/sent")


def test_texts_of_a_template_can_be_left_out(service: Service, ada: Browser) -> None:
    """A field that was emptied had the template's text again, and that was sent."""
    emptied = {"wrapping_key": "confetti", "from_name": "", "message": "", "then": "go"}
    template = str(service.ids["templates"]["welcome"])
    ada.get(f"/app/send/gift?template={template}")
    path = ada.post("/app/send/gift", template=template).headers["location"].removesuffix("/recipients")
    assert ada.submit(f"{path}/recipients", rows="zoe@example.com").status_code == 303
    assert ada.submit(f"{path}/message", **emptied).status_code == 303
    ada.get(f"{path}/message")
    assert 'value="Acme"' not in ada.page.text
    assert "&lt;b&gt;Hello" not in ada.page.text
    ada.submit(f"{path}/delivery", when="now", account=str(service.ids["funding_accounts"]["gbp"]))
    ada.get(f"{path}/review")
    assert ada.post(f"{path}/place", quote=quote_in(ada)).headers["location"] == f"{path}/sent"
    [order] = service.sql(
        "SELECT template_id, wrapping_key, from_name, message FROM orders WHERE reference = $1", path.rpartition("/")[2]
    )
    assert tuple(order) == (int(template), "confetti", None, None)
    # Another template gives its texts.
    ada.get(f"/app/send/gift?template={template}")
    path = ada.post("/app/send/gift", template=template).headers["location"].removesuffix("/recipients")
    ada.submit(f"{path}/message", **emptied)
    draft = path.rpartition("/")[2]
    ada.get(f"/app/send/gift?template={template}&draft={draft}")
    ada.post("/app/send/gift", template=template, draft=draft)
    assert 'value="Acme"' in ada.get(f"{path}/message").text


def test_collections_templates_and_amounts(service: Service, ada: Browser) -> None:
    assert "Welcome" in ada.read("/app/send?tab=templates")
    template, treats = service.ids["templates"]["welcome"], service.ids["collections"]["treats"]
    ada.get(f"/app/send/gift?template={template}")
    path = ada.post("/app/send/gift", template=str(template)).headers["location"].removesuffix("/recipients")
    ada.get(f"{path}/message")
    assert 'value="Acme"' in ada.page.text
    assert "&lt;b&gt;Hello" in ada.page.text
    # The draft keeps what was said when its gift is another.
    ada.get(f"/app/send/gift?collection={treats}&draft={path.rpartition('/')[2]}")
    again = ada.post("/app/send/gift", collection=str(treats), value="25.00", draft=path.rpartition("/")[2])
    assert again.headers["location"] == f"{path}/recipients"
    # The notice names what it replaced, which another window may have chosen.
    ada.sees(f"{path}/recipients", "The gift was changed. Before, it was: Coffee House e-gift, £10.00.")
    again = ada.submit(
        f"/app/send/gift?collection={treats}",
        "/app/send/gift",
        collection=str(treats),
        value="25.00",
        draft=path.rpartition("/")[2],
    )
    assert "The gift was changed" not in ada.read(again.headers["location"])
    books = str(service.ids["products"]["books"])
    ada.get(f"/app/send/gift?product={books}")
    for wrong in ("", "x", "4.99", "200.01", "1e400", "nan", "10.001", "-5"):
        answer = ada.post("/app/send/gift", product=books, country="GB", value=wrong)
        assert answer.status_code == 422, wrong
        assert 'id="value-error"' in answer.text
    for fine in ("5", "12,50", "200.00"):
        assert ada.post("/app/send/gift", product=books, country="GB", value=fine).status_code == 303
    coffee = str(service.ids["products"]["coffee"])
    ada.page = ada.submit(
        f"/app/send/gift?product={coffee}", "/app/send/gift", product=coffee, country="GB", value="11"
    )
    ada.says("It can be sent for: £5.00, £10.00, £25.00.")
    for unknown in ("product=999999", "product=x", "collection=0", "template=2147483648", ""):
        assert ada.get(f"/app/send/gift?{unknown}").status_code == 404


def test_a_time_is_in_the_persons_zone_and_not_over(service: Service, ada: Browser) -> None:
    service.sql("UPDATE people SET zone = 'Europe/Berlin' WHERE email = 'ada@acme.example'")
    path = ready(ada, service)
    account = str(service.ids["funding_accounts"]["gbp"])
    ada.get(f"{path}/delivery")
    for wrong in ("", "soon", "2020-01-01T10:00", "9999-12-31T23:59x"):
        answer = ada.post(f"{path}/delivery", when="later", at=wrong, account=account)
        assert answer.status_code == 422, wrong
        assert 'id="at-error"' in answer.text
    ada.post(f"{path}/delivery", when="later", at="2099-07-01T10:00", account=account)
    assert "UTC: 2099-07-01 08:00" in ada.read(f"{path}/delivery")
    wrong = ada.post(f"{path}/delivery", when="later", at="2020-01-01T10:00", account=account)
    assert "UTC: 2099" not in wrong.text, "beside another time"
    assert "(UTC 2099-07-01 08:00)" in ada.read(f"{path}/review")
    ada.post(f"{path}/place", quote=quote_in(ada))
    (order,) = service.sql("SELECT scheduled_for FROM orders WHERE reference = $1", path.rpartition("/")[2])
    assert order["scheduled_for"].isoformat() == "2099-07-01T08:00:00+00:00"


def test_who_pays_sees_what_is_left_or_missing_and_tops_up(service: Service, sign_in: SignIn) -> None:
    browser, gil = sign_in("ada@acme.example"), sign_in("gil@globex.example")
    path = begin(browser, service)
    browser.submit(f"{path}/recipients", rows="a@x.com,A,4")
    assert "Small pot Balance £30.00 £10.00 missing Top up Small pot" in browser.read(f"{path}/delivery")
    small, gbp = (service.ids["funding_accounts"][name] for name in ("small", "gbp"))
    chosen = re.findall(r'name="account" value="(\d+)" checked', browser.page.text)
    assert chosen == [str(gbp)], "the first whose balance is enough"
    assert f"/app/funding/top-ups/new?account={small}&amp;amount=10.00" in browser.page.text
    browser.get(f"/app/funding/top-ups/new?account={small}&amount=10.00")
    assert 'value="10.00"' in browser.page.text
    assert "It is put on" not in browser.text
    path = begin(gil, service)
    assert "Top up" not in gil.read(f"{path}/delivery")


def test_the_review_shows_the_first_recipients_and_what_happens_when(service: Service, ada: Browser) -> None:
    path = ready(ada, service, rows="\n".join(f"p{n}@x.com,Person {chr(64 + n)}" for n in range(1, 8)))
    ada.sees(f"{path}/review", "7 recipients", "Person E p5@x.com 1 Show all 7", "£70.00 is taken from Acme float.")
    ada.says("7 mails leave.")
    assert "Person F" not in ada.text
    ada.get(f"{path}/delivery")
    account = str(service.ids["funding_accounts"]["gbp"])
    ada.post(f"{path}/delivery", when="later", at="2099-07-01T10:00", account=account)
    place(ada, path)
    assert "7 mails leave on 1 Jul 2099, 10:00 ." in ada.read(f"{path}/sent")
    assert "<h1>Scheduled</h1>" in ada.page.text
    assert "data-refresh" not in ada.page.text


def test_a_time_beside_at_once_is_asked_about_and_one_that_is_over_is_not(service: Service, ada: Browser) -> None:
    path = ready(ada, service)
    account = str(service.ids["funding_accounts"]["gbp"])
    ada.get(f"{path}/delivery")
    assert " min=" not in ada.page.text  # which keeps a browser from sending the form
    for asked in ("2099-07-01T10:00", "soon"):
        answer = ada.post(f"{path}/delivery", when="now", at=asked, account=account)
        assert answer.status_code == 422, asked
        assert "A time is filled in." in answer.text
        assert 'value="later" checked' in answer.text
        assert f'value="{asked}"' in answer.text
    assert ada.post(f"{path}/delivery", when="now", at="2020-01-01T10:00", account=account).status_code == 303
    # Who chose a time before and now chooses "At once" has seen it.
    ada.post(f"{path}/delivery", when="later", at="2099-07-01T10:00", account=account)
    assert ada.post(f"{path}/delivery", when="now", at="2099-07-01T10:00", account=account).status_code == 303
    assert "2099" not in ada.read(f"{path}/review")


def test_everybody_in_a_list_that_is_typed_gets_a_gift(service: Service, ada: Browser) -> None:
    path = ready(ada, service, rows='a@x.com, b@x.com\nAda <c@x.com>; "Byron, Ada" <d@x.com>')
    place(ada, path)
    ada.sees(f"/app/orders/{path.rpartition('/')[2]}", "a@x.com", "b@x.com", "Ada c@x.com", "Ada Byron d@x.com")
    assert "Your reference" not in ada.text, "none was typed"
    path = ready(ada, service)
    ada.submit(f"{path}/recipients", rows="a@x.com, Ada, b@x.com")
    assert "“b@x.com” is in the same row." in ada.read(f"{path}/recipients")


def test_an_invoiced_customer_names_no_account(service: Service, gil: Browser) -> None:
    path = begin(gil, service)
    gil.submit(f"{path}/recipients", rows=PEOPLE)
    assert "This goes on your company's invoice." in gil.read(f"{path}/delivery").replace("&#39;", "'")
    gil.post(f"{path}/delivery", when="now")
    gil.get(f"{path}/review")
    sent = gil.post(f"{path}/place", quote=quote_in(gil))
    assert sent.status_code == 303
    again = gil.submit(f"{path}/sent", f"{path}/again")
    assert re.fullmatch(r"/app/send/\w{20}/recipients", again.headers["location"])


def slips(count: int) -> Sequence[tuple[IssuedCode, str]]:
    """What the sheet of so many codes shows."""
    shown: dict[str, Any] = {}
    context: Any = SimpleNamespace(page=lambda _, **values: shown.update(values))
    codes = [IssuedCode(f"0000-{number}", "123456", f"https://gifts.example/claim/{number}") for number in range(count)]
    asyncio.run(code_sheet(context, "Acme", codes, NO_BRAND))
    return list(shown["slips"])


@pytest.mark.parametrize(("count", "has_qr"), [(1, True), (MOST_QR_CODES, True), (MOST_QR_CODES + 1, False)])
def test_a_sheet_has_a_qr_code_for_each_up_to_its_limit(count: int, has_qr: bool) -> None:
    found = slips(count)
    assert len(found) == count
    assert all(bool(qr) is has_qr for _, qr in found)
    assert len({qr for _, qr in found}) == (count if has_qr else 1)


def test_a_qr_code_is_a_drawing_without_style() -> None:
    assert "style=" not in qr_code("https://gifts.example")
    assert qr_code("https://gifts.example", mask=3) == qr_code("https://gifts.example", mask=3)
