"""One order: what became of each gift, and what may be done about it."""

import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import largesse_client
import pytest
from largesse_client.errors import ReferenceUsed
from tests.distributed import IS_DISTRIBUTED
from tests.orders.test_cancelling import claim
from tests.web.api.conftest import OF_ORDER, Service
from tests.web.claim.conftest import Recipient
from tests.web.console import orders
from tests.web.console.conftest import Browser
from tests.web.console.orders import WORLD, ada, cem, filled, listed, placed_by, put_away, send, sent_mail, work

__all__ = ["WORLD", "ada", "cem", "filled"]


def test_one_order_tells_its_way_money_and_webhooks(ada: Browser, service: Service, filled: dict[str, str]) -> None:
    ada.sees(f"/app/orders/{filled['sent']}", "Ada King and 1 other", "PO-77")
    ada.says("Ada King ada.king@acme.example 2 gifts Sending", "Well done", "-£30.00", "Acme float")
    codes = service.send("gift", "coffee", value=5, codeQuantity=2).json()
    Recipient(service).gift(codes["codes"][1])
    work(service)
    assert "Claimed 1 50%" in ada.read(f"/app/orders/{codes['reference']}")
    assert re.search(r"Code 2 Claimed .*? ago Opened", ada.text)
    service.client("hr").post(f"/orders/{codes['reference']}/cancel")
    put_away(service, codes["reference"])


def test_orders_of_others_are_not_there(ada: Browser, filled: dict[str, str]) -> None:
    for name in ("foreign", "staging"):
        assert ada.get(f"/app/orders/{filled[name]}").status_code == 404
    assert ada.get("/app/orders/nothing").status_code == 404


@pytest.fixture
def order(service: Service, ada: Browser, filled: dict[str, str]) -> Iterator[str]:
    """An order whose mail has left, which is out of the way afterwards."""
    reference = send(service)
    work(service)
    sent_mail(service, reference)
    yield reference
    put_away(service, reference)


def mails(service: Service, reference: str) -> list[tuple[str, int, str]]:
    rows = service.of_order(reference, "email, edition, state", "messages", "ORDER BY email, edition")
    return [tuple(row) for row in rows]


def test_one_recipients_mail_is_sent_again(ada: Browser, service: Service, order: str) -> None:
    answer = ada.submit(f"/app/orders/{order}", f"/app/orders/{order}/resend?q=ben&state=unclaimed", number="3")
    assert answer.headers["location"] == f"/app/orders/{order}?q=ben&state=unclaimed#r3", "where one was"
    ada.sees(f"/app/orders/{order}", "The mail to ben@acme.example is sent again.", "Ada sent the mail to =Ben again")
    ada.says("Mailed 2 100%", "2 mails left")  # the first ones, although another waits
    assert ("ben@acme.example", 1, "pending") in mails(service, order)
    ada.post(f"/app/orders/{order}/resend", number="3")
    assert "The mail to this recipient has not left yet." in ada.read(f"/app/orders/{order}")


def test_all_who_have_not_claimed_get_it_again_once(ada: Browser, service: Service, order: str) -> None:
    claim(service, order, 3)
    assert "1 recipient of order" in ada.read(f"/app/orders/{order}/resend-unclaimed")
    assert "gets the mail again. They were last mailed: " in ada.text
    assert re.search(r"last mailed: [^.:]+ (Send|\d+ more)", ada.text), "without a full stop: German dates end with one"
    tokens = []
    for _ in range(2):
        ada.get(f"/app/orders/{order}")
        tokens.append(ada.token)
    with ThreadPoolExecutor(2) as pool:  # two presses at once
        for answer in pool.map(lambda token: ada.post(f"/app/orders/{order}/resend-unclaimed", token=token), tokens):
            assert answer.status_code == 303
    assert mails(service, order) == [
        ("ada.king@acme.example", 0, "sent"),
        ("ada.king@acme.example", 1, "pending"),
        ("ben@acme.example", 0, "sent"),
    ]
    acts = service.of_order(order, "act, user_id IS NOT NULL", "order_acts")
    assert [tuple(row) for row in acts] == [("resend", True)]
    [audited] = service.sql("SELECT after FROM audit_events WHERE subject = $1", f"order {order}")
    assert audited["after"] == '{"recipients":1}'


@pytest.mark.slow
def test_the_mail_to_all_pauses_for_a_day(ada: Browser, service: Service, order: str) -> None:
    path = f"/app/orders/{order}/resend-unclaimed"

    def press(said: str) -> int:
        assert said in ada.read(path)
        ada.post(path, token=ada.token if "token" in ada.page.text else token)
        sent_mail(service, order)
        return max(edition for _, edition, _ in mails(service, order))

    ada.get(path)
    token = ada.token
    assert press("2 recipients of order") == 1
    assert press("There is nobody to mail now. 2 more recipients are left out") == 1
    for hours, edition, said in ((23, 1, "There is nobody to mail now."), (25, 2, "Send 2 mails again")):
        service.sql("UPDATE messages SET created_at = clock_now() - $1 * interval '1 hour' WHERE edition = 1", hours)
        assert press(said) == edition


@pytest.mark.slow
def test_an_address_is_corrected_and_the_mail_goes_there(ada: Browser, service: Service, order: str) -> None:
    sent_mail(service, order, "bounced", "recipient")
    work(service)
    assert "The address does not accept mail. 550 no such user" in ada.read(f"/app/orders/{order}")
    for wrong, said in (
        ("no address", "The @ is missing"),
        ("BEN@acme.example", "this order already"),
        ("ada@gmial.com", "Did you mean ada@gmail.com?"),
    ):
        ada.page = ada.post(f"/app/orders/{order}/correct", email="ada.king@acme.example", corrected=wrong)
        assert ada.page.status_code == 422
        assert said in ada.text
        [beside] = re.findall(r'class="correct">(.*?)</form>', ada.page.text, re.DOTALL)
        assert f'value="{wrong}"' in beside, "what was typed is kept"
        assert 'value="ada.king@acme.example"' in beside
        assert re.search(r'aria-describedby=" ?corrected-error" aria-invalid="true" autofocus', beside)
        assert ada.page.text.count('id="corrected-error"') == 1
    answer = ada.post(f"/app/orders/{order}/correct", email="Ada.King@acme.example", corrected="ada.queen@ACME.example")
    assert answer.status_code == 303
    ada.sees(f"/app/orders/{order}", "the mail goes to ada.queen@acme.example")
    ada.says("Ada corrected the address of Ada King from a•••@acme.example to ada.queen@acme.example")
    assert "ada.king@" not in ada.text
    assert mails(service, order)[:2] == [
        ("ada.queen@acme.example", 0, "bounced"),
        ("ada.queen@acme.example", 1, "pending"),
    ]
    lines = service.of_order(order, "recipient_email", "lines", "ORDER BY number")
    assert [row[0] for row in lines] == ["ada.queen@acme.example", "ada.queen@acme.example", "ben@acme.example"]
    work(service)
    assert order in listed(ada, "?q=ada.queen")
    assert order not in listed(ada, "?q=ada.king%40acme.example")


def test_an_address_is_corrected_on_the_page_that_it_stands_on(ada: Browser, service: Service) -> None:
    recipients = [{"email": f"r{number:03}@many.example"} for number in range(101)]
    sent = service.send("gift", "coffee", value=5, recipients=recipients).json()
    page = f"/app/orders/{sent['reference']}"
    for _ in range(2):
        ada.get(page)
        [further] = re.findall(r'href="([^"]+)" rel="next"', ada.page.text)
    ada.get(f"{page}?q=r1&page=1&edit=101")
    [action] = re.findall(r'action="([^"]+/correct[^"]*)"', ada.page.text)
    ada.page = ada.post(action, email="r100@many.example", number="101", corrected="nobody")
    assert ada.page.status_code == 422
    assert 'value="nobody"' in ada.page.text
    assert "r099@many.example" not in ada.text, "the search goes on"
    done = ada.post(action, email="r100@many.example", number="101", corrected="r200@many.example")
    assert done.headers["location"] == f"{page}?q=r1#r101"
    assert further == f"{page}?page=2#recipients"
    service.client("hr").post(f"/orders/{sent['reference']}/cancel")
    put_away(service, sent["reference"])


def test_a_request_is_known_again_after_people_corrected_an_address(ada: Browser, service: Service) -> None:
    account, product = service.ids["funding_accounts"]["gbp"], service.ids["products"]["coffee"]
    with largesse_client.Largesse(service.url, service.keys["hr"]) as client:

        def place(*recipients: largesse_client.Recipient | str) -> largesse_client.models.Order:
            return client.send.gift(
                product, value=5, recipients=recipients, account_id=account, external_reference="corrected-1"
            )

        order = place(largesse_client.Recipient(email="Sam@typo.example", name="Sam"), "kim@example.com")
        for old, new in (
            ("sam@typo.example", "sam@example.com"),
            ("kim@example.com", "kim@typo.example"),
            ("kim@typo.example", "kim.ho@example.com"),
        ):
            ada.get(f"/app/orders/{order.reference}")
            ada.post(f"/app/orders/{order.reference}/correct", email=old, corrected=new)
        assert [(one.email, one.was_email) for one in client.orders.request(order.reference).recipients] == [
            ("sam@example.com", "S•••@typo.example"),
            ("kim.ho@example.com", "k•••@example.com"),
        ]
        for sam, kim in (("sam@typo.example", "kim@example.com"), ("sam@example.com", "kim.ho@example.com")):
            assert place(kim, largesse_client.Recipient(email=sam, name="Sam")) == order
        for sam, kim in (("sam@example.com", "ho@example.com"), ("tam@typo.example", "kim@example.com")):
            with pytest.raises(ReferenceUsed):
                place(kim, largesse_client.Recipient(email=sam, name="Sam"))
    put_away(service, order.reference)


def test_a_correction_of_a_scheduled_order_sends_nothing_and_says_so(ada: Browser, service: Service) -> None:
    order = send(service, sendAt="2999-01-01T09:00:00Z")
    work(service)
    path = f"/app/orders/{order}"
    assert "Correct the address" in re.findall(r'<button type="submit">([^<]+)', ada.get(f"{path}?edit=1").text)
    answer = ada.post(f"{path}/correct", email="ada.king@acme.example", corrected="ada.queen@acme.example")
    assert answer.status_code == 303
    assert "ada.queen@acme.example" in ada.read(path)
    work(service)
    assert service.of_order(order, "count(*)", "messages")[0][0] == 0
    put_away(service, order)


@pytest.mark.parametrize(
    ("tag", "said"), [("de", "Ada hat die Adresse eines Empfängers korrigiert"), ("fr", "Ada a corrigé l\u2019adresse")]
)
def test_a_correction_is_in_the_timeline_once_its_recipient_is_erased(
    ada: Browser, service: Service, order: str, tag: str, said: str
) -> None:
    ada.get(f"/app/orders/{order}")
    answer = ada.post(f"/app/orders/{order}/correct", email="Ada.King@acme.example", corrected="ada.queen@acme.example")
    assert answer.status_code == 303
    erased = "recipient_name = NULL, recipient_email = 'erased-1@erased.invalid'"
    service.sql(f"UPDATE lines SET {erased} WHERE {OF_ORDER}", order)
    ada.headers["Accept-Language"] = tag
    try:
        assert said in ada.read(f"/app/orders/{order}")
    finally:
        ada.headers["Accept-Language"] = "en"


@pytest.mark.skipif(IS_DISTRIBUTED, reason="a cluster does not add an interval to a column")
def test_the_timeline_says_in_german_how_long_the_first_claim_took(
    ada: Browser, service: Service, filled: dict[str, str]
) -> None:
    codes = service.send("gift", "coffee", value=5, codeQuantity=1).json()
    Recipient(service).gift(codes["codes"][0])
    service.sql(f"UPDATE line_events SET at = at + interval '50 hours' WHERE {OF_ORDER}", codes["reference"])
    ada.headers["Accept-Language"] = "de"
    try:
        assert "1 Geschenk eingelöst, Zeit bis zum ersten: 2 Tage" in ada.read(f"/app/orders/{codes['reference']}")
    finally:
        ada.headers["Accept-Language"] = "en"
    put_away(service, codes["reference"])


def test_the_timeline_says_that_older_acts_are_left_out(ada: Browser, service: Service, order: str) -> None:
    said = "Only the newest 100 of people's actions are shown."
    for acts, is_said in ((100, False), (1, True)):
        service.sql(
            """
            INSERT INTO order_acts (customer_id, order_id, act, codes, acted_at)
            SELECT customer_id, id, 'cancel', 1, now() - n * interval '1 minute' FROM orders, generate_series(1, $2::int) AS n
            WHERE reference = $1
            """,
            order,
            acts,
        )
        assert (said in ada.read(f"/app/orders/{order}")) == is_said
    service.sql(f"DELETE FROM order_acts WHERE {OF_ORDER}", order)


@pytest.mark.slow
def test_what_was_claimed_or_is_leaving_is_not_corrected(ada: Browser, service: Service, order: str) -> None:
    claim(service, order, 3)
    leaving = "state = 'pending', finished_at = NULL, leased_until = now() + interval '1 minute'"
    orders.change_mail(service, order, leaving, "ada%")
    before = mails(service, order)
    for email, said in (
        ("ben@acme.example", "has claimed"),
        ("ada.king@acme.example", "just leaving"),
        ("x@y.example", "Nobody at that address is a recipient"),
    ):
        ada.get(f"/app/orders/{order}")
        answer = ada.post(f"/app/orders/{order}/correct", email=email, corrected="new@acme.example")
        if answer.status_code == 303:  # who has no such form: said above
            ada.get(answer.headers["location"])
        else:
            ada.page = answer
        assert said in ada.text
    assert mails(service, order) == before


def test_what_comes_back_is_said_before_it_is_cancelled(ada: Browser, service: Service, order: str) -> None:
    before = service.balance("gbp")
    assert "Void 3 codes and return £30.00 to Acme float" in ada.read(f"/app/orders/{order}/cancel")
    token = ada.token
    for _ in range(3):
        assert ada.post(f"/app/orders/{order}/cancel", token=token).status_code == 303
    assert service.balance("gbp") == before + 30
    ada.sees(f"/app/orders/{order}", "Codes cancelled: 3. Refunded: £30.00.", "Refund")
    assert "there is nothing to cancel" in ada.read(f"/app/orders/{order}/cancel")


def test_a_refund_is_among_the_entries_however_much_was_done_since(ada: Browser, service: Service, order: str) -> None:
    time.sleep(2.1)  # the entries of two seconds around each time are read
    assert ada.submit(f"/app/orders/{order}/recipients/1/cancel").status_code == 303
    refund = re.compile("Refund [^£]*ago £20.00 Balance")
    assert refund.search(ada.read(f"/app/orders/{order}"))
    service.sql(
        """
        INSERT INTO code_readings (customer_id, order_id, line_number, user_id, read_at)
        SELECT customer_id, id, 3, (SELECT id FROM users WHERE email = 'ada@acme.example'), now() + n * interval '1 ms'
        FROM orders, generate_series(1, 110) AS n WHERE reference = $1
        """,
        order,
    )
    assert refund.search(ada.read(f"/app/orders/{order}"))


def test_a_member_does_it_with_their_own(cem: Browser, service: Service, order: str) -> None:
    assert cem.get(f"/app/orders/{order}/cancel").status_code == 404
    placed_by(service, order, "cem@acme.example")
    assert cem.submit(f"/app/orders/{order}/cancel").status_code == 303
    [act] = service.of_order(order, "act", "order_acts")
    assert act["act"] == "cancel"


def test_codes_are_shown_again_to_who_proves_that_it_is_them(
    ada: Browser, cem: Browser, service: Service, filled: dict[str, str]
) -> None:
    sent = service.send("gift", "coffee", value=5, codeQuantity=2).json()
    path = f"/app/orders/{sent['reference']}/codes"
    assert cem.get(path).status_code == 404
    service.sql("UPDATE sessions SET proved_at = now() - interval '1 day'")
    asked = ada.get(path)
    assert (asked.status_code, asked.headers["location"].split("?")[0]) == (303, "/app/prove")
    asked = ada.submit(f"/app/orders/{sent['reference']}", path)
    assert "This action needs a password" in asked.text
    assert sent["codes"][0]["code"] not in asked.text
    service.sql("UPDATE sessions SET proved_at = now()")
    ada.get(path)
    assert sent["codes"][0]["code"] not in ada.page.text
    shown = ada.post(path)
    for one in sent["codes"]:
        assert one["code"] in shown.text
        assert one["pin"] in shown.text
    assert shown.headers["cache-control"] == "no-store"
    assert service.of_order(sent["reference"], "count(*)", "code_readings")[0][0] == 1
    [audited] = service.sql("SELECT act FROM audit_events WHERE subject = $1", f"order {sent['reference']}")
    assert audited["act"] == "codes.read"
    assert ada.get(f"/app/orders/{filled['sent']}/codes").status_code == 404
    put_away(service, sent["reference"])


@pytest.mark.slow
def test_many_recipients_come_in_pages_and_are_searched(ada: Browser, service: Service, filled: dict[str, str]) -> None:
    recipients = [{"email": f"r{n}@acme.example", "name": f"Zoë {n}"} for n in range(120)]
    reference = send(service, recipients=recipients)
    work(service)
    sent_mail(service, reference)
    page = f"/app/orders/{reference}"

    def shown(query: str = "") -> list[int]:
        assert ada.get(page + query).status_code == 200
        return [int(number) for number in re.findall(r'<tr id="r(\d+)">', ada.page.text)]

    assert shown() == list(range(1, 51))
    assert "Page 1 of 3" in ada.text
    assert shown("?page=3") == list(range(101, 121))
    assert shown("?page=999&state=nonsense") == list(range(101, 121))
    assert shown("?q=zoe+117") == [118]
    assert "1 recipient found" in ada.text
    assert shown("?q=R119@ACME") == [120]
    assert shown("?q=nobody") == []
    assert "No recipient matches “nobody”." in ada.text
    orders.change_mail(service, reference, "state = 'bounced', reason = '550'", "r70@acme.example")
    for number in (3, 4):
        claim(service, reference, number)
    assert shown("?state=problems") == [71]
    assert "All 120 Unclaimed 118 Needs attention 1 Claimed 2" in ada.text
    assert shown("?state=claimed") == [3, 4]
    assert len(shown("?state=unclaimed&page=3")) == 18
    put_away(service, reference)
