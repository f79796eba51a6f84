"""Claiming over HTTP: who gets in, who does not, and what is recorded."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from tests.web.claim.conftest import PATHS, Codes, form_of, link, lookup_of, sent_code, wrong


def states(service: Any, code: dict[str, str]) -> list[tuple[str, ...]]:
    """The state and the events of a code's line."""
    lookup = lookup_of(service, code)
    return [
        tuple(row)
        for row in service.sql(
            "SELECT e.event FROM lines l JOIN line_events e USING (customer_id, order_id, number) WHERE code_lookup = $1 "
            "ORDER BY at, array_position(ARRAY['opened', 'claimed', 'chosen', 'fulfilled', 'expired', 'cancelled'], event)",
            lookup,
        )
    ]


def test_the_link_and_its_pin_open_the_gift(
    service: Any, recipient: Any, codes: Codes, stock: Callable[..., Any]
) -> None:
    stock("coffee", ["COFFEE-1000-0"], "10")
    code = codes("gift", "coffee", value=10, wrappingKey="winter", fromName="Acme & <Co>", message="Line one\nTwo")[0]
    page = recipient.get(link(code))
    assert page.status_code == 200
    assert "theme-winter" in page.text
    assert "Acme &amp; &lt;Co&gt; sent you a gift" in page.text
    assert "Line one" not in page.text, "the message is for whoever has the PIN"
    claimed = recipient.claim(code)
    assert claimed.status_code == 303
    assert re.fullmatch(r"/claim/gift/[0-9a-f]{16}#open", claimed.headers["location"])
    cookie = claimed.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "Secure" in cookie
    assert f"Path={claimed.headers['location'].removesuffix('#open')};" in f"{cookie};", "no other gift's page gets it"
    gift = recipient.get(claimed.headers["location"])
    assert gift.status_code == 200
    for text in ("A gift from Acme &amp; &lt;Co&gt;", "Line one\nTwo", "Coffee House", "£10.00", "COFFEE-1000-0"):
        assert text in gift.text
    assert states(service, code) == [("opened",), ("claimed",), ("chosen",), ("fulfilled",)]


def test_an_address_typed_with_a_slash_at_its_end_leads_to_the_form(recipient: Any) -> None:
    answer = recipient.get("/claim/")
    assert (answer.status_code, answer.headers["location"]) == (303, "/claim")


def test_a_link_that_got_signs_behind_it_on_its_way_leads_to_its_gift(recipient: Any, codes: Codes) -> None:
    whole = link(codes(*PATHS, value=10)[0])
    for signs in ("/", ".", ")", "%3E.", "%C2%BB", "%20"):
        answer = recipient.get(whole + signs)
        assert (answer.status_code, answer.headers["location"]) == (303, whole), signs
    answer = recipient.get(f"{whole}/reminders/")
    assert answer.headers["location"] == f"{whole}/reminders"
    for nowhere in ("/claim/campaign/a/b/c", "/claim//evil.example", f"{whole}/opened", "/claim/a b"):
        answer = recipient.get(nowhere)
        assert answer.status_code == 404, nowhere
        assert "This link leads nowhere" in answer.text, "people read a page, not JSON"


def test_a_typed_code_opens_the_gift_however_it_is_typed(service: Any, recipient: Any, codes: Codes) -> None:
    code = codes("collection", "treats", value=10)[0]
    typed = code["code"].lower().replace("-", " ").replace("0", "o").replace("1", "l")
    assert recipient.post("/claim", code=f"  {typed} ", pin=f" {code['pin'][:3]} {code['pin'][3:]}").status_code == 303
    assert states(service, code) == [("opened",), ("claimed",)]


def test_reading_changes_nothing(service: Any, recipient: Any, codes: Codes) -> None:
    code = codes(*PATHS, value=10)[0]
    before = [service.sql(f"SELECT count(*) FROM {table}") for table in ("line_states", "line_events")]
    for method in ("GET", "HEAD"):
        for headers in ({}, {"Purpose": "prefetch", "Sec-Purpose": "prefetch;prerender"}):
            for _ in range(25):
                answer = service.client().request(method, link(code), headers=headers)
                assert answer.status_code == 200
    assert [service.sql(f"SELECT count(*) FROM {table}") for table in ("line_states", "line_events")] == before


def test_names_in_other_scripts_stay_apart(service: Any, recipient: Any) -> None:
    members = {"fromName": "חברת אקמה", "recipients": [{"email": "ada@example.com", "name": "עדה"}]}
    order = service.send("gift", "coffee", value=10, **members).json()["reference"]
    page = recipient.get(link(sent_code(service, order)))
    names = (f'<span dir="auto">{name}</span>' for name in ("עדה", "חברת אקמה"))
    assert "{}, {} sent you a gift".format(*names) in page.text


def test_a_person_touching_the_page_opens_it_once(service: Any, recipient: Any, codes: Codes) -> None:
    code = codes(*PATHS, value=10)[0]
    for _ in range(3):
        assert recipient.post(f"{link(code)}/opened").status_code == 204
    assert states(service, code) == [("opened",)]
    strange = service.client().post(f"{link(code)}/opened", headers={"Sec-Fetch-Site": "cross-site"})
    assert strange.status_code == 403


def test_the_second_who_knows_the_pin_is_told_and_let_in(service: Any, recipient: Any, codes: Codes) -> None:
    code = codes("collection", "treats", value=10)[0]
    recipient.gift(code)
    events = states(service, code)
    again = recipient.claim(code)
    assert again.status_code == 409
    assert "has been opened before" in again.text
    assert recipient.get(re.findall(r'href="(/claim/gift/\w+)"', again.text)[0]).status_code == 200
    assert states(service, code) == events


def test_a_cancelled_line_cannot_be_claimed(service: Any, recipient: Any) -> None:
    sent = service.send("gift", "coffee", value=10, codeQuantity=1).json()
    service.client("hr").post(f"/orders/{sent['reference']}/cancel")
    code = sent["codes"][0]
    assert "withdrawn" in recipient.get(link(code)).text
    assert recipient.claim(code, wrong(code)).status_code == 403
    answer = recipient.claim(code)
    assert answer.status_code == 410
    assert "withdrawn" in answer.text
    assert "set-cookie" not in answer.headers


def test_a_staging_code_is_void_in_production_and_the_reverse(
    service: Any, staging: Any, recipient: Any, codes: Codes
) -> None:
    real = codes("collection", "treats", value=10)[0]
    test = staging.send("collection", "treats", key="hr-test", account="test-gbp", value=10).json()["codes"][0]
    for visited, code in ((service, test), (staging, real)):
        recipient.service = visited
        assert recipient.get(link(code)).status_code == 404
        assert recipient.claim(code).status_code == 403
    recipient.service = staging
    assert recipient.claim(test).status_code == 303
    assert recipient.get(link(test)).text.count("Test environment") == 1


def test_a_staging_gift_gets_a_test_voucher(staging: Any, recipient: Any) -> None:
    code = staging.send("gift", "coffee", key="hr-test", account="test-gbp", value=10).json()["codes"][0]
    recipient.service = staging
    gift = recipient.get(recipient.gift(code))
    assert "This is a test voucher" in gift.text
    assert re.search(r"TEST-[A-Z2-7]{4}-", gift.text)
    [banner] = re.findall(r"<header>.*?</header>", gift.text, re.DOTALL)
    assert "Test environment" in banner, "all text of a page is in a landmark"


def test_a_scheduled_gift_cannot_be_claimed_before_its_time(
    service: Any, recipient: Any, move_clock: Callable[[timedelta], None]
) -> None:
    at = (datetime.now(UTC) + timedelta(hours=2)).isoformat()
    sent = service.send("collection", "treats", value=10, recipients=[{"email": "a@example.com"}], sendAt=at).json()
    code = sent_code(service, sent["reference"])
    assert recipient.get(link(code)).status_code == 404
    assert recipient.claim(code).status_code == 403
    move_clock(timedelta(hours=2, minutes=1))
    assert recipient.get(link(code)).status_code == 200
    assert recipient.claim(code).status_code == 303


@pytest.mark.parametrize(
    ("members", "days"), [({"expiryAfterDays": 30}, 30), ({}, 365)], ids=["of the order", "of the installation"]
)
def test_the_expiry_counts_from_the_claim_and_is_shown(
    service: Any, recipient: Any, codes: Codes, members: dict[str, int], days: int
) -> None:
    code = codes("collection", "treats", value=10, **members)[0]
    gift = recipient.get(recipient.gift(code))
    row = service.sql(
        "SELECT claimed_at, expires_at FROM line_states JOIN lines USING (customer_id, order_id, number) WHERE code_lookup = $1",
        lookup_of(service, code),
    )[0]
    assert row["expires_at"] - row["claimed_at"] == timedelta(days=days)
    day = row["expires_at"].astimezone(ZoneInfo("Europe/London")) + timedelta(minutes=1)
    assert f"Please choose before {day.day} {day:%B %Y}." in gift.text


def test_the_day_of_expiry_is_one_on_which_the_gift_is_there_everywhere_in_its_country(
    service: Any, recipient: Any, codes: Codes
) -> None:
    code = codes("collection", "treats", value=10)[0]
    path = recipient.gift(code)
    [key] = service.sql("SELECT customer_id, order_id FROM lines WHERE code_lookup = $1", lookup_of(service, code))
    service.sql("UPDATE orders SET country = 'US' WHERE customer_id = $1 AND id = $2", *key)
    service.sql(
        "UPDATE line_states SET expires_at = '2031-12-01T04:30Z' WHERE customer_id = $1 AND order_id = $2", *key
    )
    assert "Please choose before 30 November 2031." in recipient.get(path).text, (
        "in Boston, it ends at half past eleven"
    )


def test_an_expired_gift_says_so_and_stays_so(
    service: Any, recipient: Any, codes: Codes, move_clock: Callable[[timedelta], None]
) -> None:
    code = codes("collection", "treats", value=10, expiryAfterDays=1)[0]
    path = recipient.gift(code)
    product = str(service.ids["products"]["coffee"])
    key = form_of(recipient.get(f"{path}/choose?product={product}"))["key"]
    move_clock(timedelta(days=1, minutes=1))
    assert recipient.claim(code).status_code == 409
    assert "has expired" in recipient.get(path).text
    old = recipient.cookie
    form = form_of(recipient.get(path))
    assert old
    assert form == {}
    assert recipient.post(f"{path}/choose", key=key, product=product, sure="yes").status_code == 403
    assert "has expired" in recipient.get(path).text


def test_a_gift_that_ended_early_names_no_day_to_come(service: Any, recipient: Any, codes: Codes) -> None:
    code = codes("collection", "treats", value=10)[0]
    path = recipient.gift(code)
    service.sql(
        "UPDATE line_states SET state = 'expired' FROM lines WHERE code_lookup = $1 AND (line_states.customer_id, "
        "line_states.order_id, line_states.number) = (lines.customer_id, lines.order_id, lines.number)",
        lookup_of(service, code),
    )
    said = recipient.get(path).text
    assert "has expired" in said
    assert "could be used until" not in said


def test_the_page_of_a_gift_is_for_whoever_claimed_it(service: Any, recipient: Any, codes: Codes) -> None:
    mine, theirs = codes("collection", "treats", 2, value=10)
    path = recipient.gift(mine)
    cookie = recipient.cookie
    other = type(recipient)(service)
    other_path = other.gift(theirs)
    assert path != other_path
    assert recipient.get(path).status_code == 200
    # In the middle: the last characters of base64 may carry bits that mean nothing.
    changed = cookie[:20] + ("B" if cookie[20] == "A" else "A") + cookie[21:]
    for presented in ("", "x", changed, other.cookie, "é" * 3):
        recipient.cookie = presented
        try:
            answer = recipient.get(path)
        except UnicodeEncodeError:
            continue
        assert answer.status_code == 403
        assert "type your PIN again" in answer.text


def test_the_session_ends_after_an_hour(recipient: Any, codes: Codes, move_clock: Callable[[timedelta], None]) -> None:
    path = recipient.gift(codes("collection", "treats", value=10)[0])
    move_clock(timedelta(minutes=59))
    assert recipient.get(path).status_code == 200
    move_clock(timedelta(minutes=2))
    assert recipient.get(path).status_code == 403
    for form in ({"note": "Thank <b>you</b>"}, {"name": "Thank <b>you</b>", "city": "Leeds"}):
        late = recipient.post(f"{path}/{'thank' if 'note' in form else 'address'}", key="late", **form)
        assert late.status_code == 403
        assert "Thank &lt;b&gt;you&lt;/b&gt;" in late.text, "what was typed is not lost"
        assert ">late" not in late.text
    assert "\nLeeds</blockquote>" in late.text, "in the order of the form"
    endless = recipient.post(f"{path}/thank", note="x" * 70_000)
    assert (endless.status_code, "Go back, and type less." in endless.text) == (413, True)


def test_every_page_forbids_what_it_does_not_need(recipient: Any, codes: Codes) -> None:
    code = codes("collection", "treats", value=10)[0]
    path = recipient.gift(code)
    for page in (recipient.get("/claim"), recipient.get(link(code)), recipient.get("/claim/none"), recipient.get(path)):
        assert page.headers["cache-control"] == "no-store"
        assert page.headers["referrer-policy"] == "no-referrer"
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert not re.search(r"""(?:src|href|action)=["'](?:https?:)?//""", page.text), "nothing from elsewhere"
        assert " style=" not in page.text
        assert " onclick=" not in page.text


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ({"Sec-Fetch-Site": "cross-site"}, b"pin=%d"),  # tests/web/kit/test_body.py has the others
        ({}, b"pin=%ff%fe"),
    ],
)
def test_what_no_form_of_ours_posts_is_refused(
    service: Any, codes: Codes, headers: dict[str, str], body: bytes
) -> None:
    code = codes(*PATHS, value=10)[0]
    form = {"Content-Type": "application/x-www-form-urlencoded"} | headers
    answer = service.client().post(link(code), content=body.replace(b"%d", code["pin"].encode()), headers=form)
    assert answer.status_code == 403
    assert states(service, code) == []


def test_the_customer_sees_what_became_of_each_code(service: Any, recipient: Any) -> None:
    sent = service.send("collection", "treats", value=10, codeQuantity=3).json()
    recipient.post(f"{link(sent['codes'][0])}/opened")
    recipient.claim(sent["codes"][1])
    told = service.client("hr").get(f"/orders/{sent['reference']}/deliveries").json()
    assert [entry["state"] for entry in told] == ["manual"] * 3
    [opened], [claimed], [untouched] = (entry["lines"] for entry in told)
    assert (opened["state"], bool(opened["openedAt"]), opened["claimedAt"]) == ("issued", True, None)
    assert (claimed["state"], bool(claimed["openedAt"]), bool(claimed["claimedAt"])) == ("claimed", True, True)
    assert (untouched["state"], untouched["openedAt"]) == ("issued", None)


def test_a_cancelled_scheduled_order_is_told_as_cancelled(service: Any) -> None:
    at = (datetime.now(UTC) + timedelta(days=2)).isoformat()
    people = [{"email": "a@example.com", "quantity": 2}, {"email": "b@example.com"}]
    sent = service.send("gift", "coffee", value=10, recipients=people, sendAt=at).json()
    path = f"/orders/{sent['reference']}/deliveries"
    assert [entry["state"] for entry in service.client("hr").get(path).json()] == ["scheduled"] * 2
    service.client("hr").post(f"/orders/{sent['reference']}/cancel")
    told = service.client("hr").get(path).json()
    assert [(entry["email"], entry["state"], len(entry["lines"])) for entry in told] == [
        ("a@example.com", "cancelled", 2),
        ("b@example.com", "cancelled", 1),
    ]
    assert {line["state"] for entry in told for line in entry["lines"]} == {"cancelled"}
