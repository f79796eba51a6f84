"""The list of orders: its filters and search, whose orders it has, and the same as a file."""

import csv
import html
import io
import re

import pytest
from tests.orders.test_cancelling import claim
from tests.web.api.conftest import Service
from tests.web.console.conftest import Browser, signed_in
from tests.web.console.everything import Forms, route_of
from tests.web.console.orders import (
    WORLD,
    ada,
    cem,
    change_mail,
    changed,
    filled,
    listed,
    put_away,
    send,
    sent_mail,
    work,
)

from largesse.reports.filters import MAX_NAME, MOST_VIEWS
from largesse.web.console import orders

__all__ = ["WORLD", "ada", "cem", "filled"]


def test_the_list_has_the_customers_orders_newest_first(ada: Browser, filled: dict[str, str]) -> None:
    assert listed(ada) == [filled["own"], filled["sent"], filled["batch"]]
    ada.says("3 orders, £90.00", "0 of 3")


def test_the_headline_is_who_gets_the_gift(ada: Browser, service: Service, filled: dict[str, str]) -> None:
    listed(ada)
    assert "Ada King and 1 other Coffee House e-gift, £10.00 each · PO-77 " in ada.text
    assert "BATCH-1 Coffee House e-gift, £10.00 each " in ada.text
    plain = send(service, recipients=None, codeQuantity=1)
    one = send(service, recipients=[{"email": "solo@acme.example"}])
    work(service)
    listed(ada)
    assert f'<span class="code whole">…{plain[-6:]}</span>' in ada.page.text
    assert "solo@acme.example Coffee House e-gift, £10.00 " in ada.text
    assert plain not in ada.text, "the whole reference is on the order's page alone"
    for reference in (plain, one):
        put_away(service, reference)


def test_a_gift_whose_mail_bounced_needs_nobody_once_it_is_cancelled(
    ada: Browser, service: Service, filled: dict[str, str]
) -> None:
    reference = send(service)
    work(service)
    sent_mail(service, reference)
    change_mail(service, reference, "state = 'bounced'", "ada%")
    changed(service, reference)
    work(service)
    bounced = listed(ada, "?state=bounced")
    assert reference in bounced
    assert "1 bounced" in ada.text
    assert ada.submit(f"/app/orders/{reference}/recipients/1/cancel").status_code == 303
    assert "bounced" not in ada.read(f"/app/orders/{reference}").split("Mailed")[0]
    work(service)
    assert listed(ada, "?state=bounced") == [one for one in bounced if one != reference]
    put_away(service, reference)


@pytest.mark.slow
def test_states_are_neutral_unless_somebody_must_act(ada: Browser, service: Service, filled: dict[str, str]) -> None:
    reference = send(service)
    work(service)

    def state() -> tuple[str, str]:
        assert listed(ada)[0] == reference
        return re.findall(r'<span class="state (\w+)">([^<]+)', ada.page.text)[0]

    assert state() == ("still", "Sending")
    sent_mail(service, reference)
    assert state() == ("still", "Sent")
    change_mail(service, reference, "state = 'held'")
    assert state() == ("waiting", "Mail on hold")
    sent_mail(service, reference, "bounced", "recipient")
    assert state() == ("bad", "All mail bounced")
    change_mail(service, reference, "state = 'sent'", "ben%")
    changed(service, reference)
    assert state() == ("waiting", "1 bounced")
    claim(service, reference, 1)
    assert service.client("hr").post(f"/orders/{reference}/cancel").status_code == 200
    work(service)
    assert state() == ("good", "Claimed, rest cancelled")
    later = send(service, sendAt="2999-01-01T09:00:00Z")
    work(service)
    assert listed(ada, "?state=scheduled") == [later]
    assert "Scheduled 1 Jan 2999, 09:00" in ada.text
    assert "Sent" not in ada.text
    for one in (reference, later):
        put_away(service, one)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("?q=ben%40acme.example", ["own", "sent"]),
        ("?q=king+board", ["sent"]),
        ("?q=PO-7", ["sent"]),
        ("?q=nobody", []),
        ("?source=crm", ["batch"]),
        ("?state=waiting&source=web", ["own"]),
        ("?state=cancelled", []),
        ("?since=2999-01-01", []),
        ("?until=2999-01-01", ["own", "sent", "batch"]),
        ("?until=31.12.2999", ["own", "sent", "batch"]),
        ("?since=31/12/2999", []),
        ("?account=0", []),
        ("?q=%00", ["own", "sent", "batch"]),
        ("?state=nonsense&gift=x&by=person-&account=%C2%B2&before=x&after=-1", ["own", "sent", "batch"]),
    ],
)
def test_filters_and_searches_are_in_the_address(
    ada: Browser, filled: dict[str, str], query: str, found: list[str]
) -> None:
    assert listed(ada, query) == [filled[name] for name in found]


def test_an_order_is_found_by_its_whole_reference(ada: Browser, filled: dict[str, str]) -> None:
    assert listed(ada, f"?q={filled['batch'].lower()}") == [filled["batch"]]


def test_who_placed_and_what_was_sent_are_offered(ada: Browser, filled: dict[str, str]) -> None:
    listed(ada)
    [value] = re.findall(r'<a href="/app/orders\?by=(person-\d+)">Cem</a>', ada.page.text)
    assert listed(ada, f"?by={value}") == [filled["own"]]
    listed(ada)
    [gift] = re.findall(r'<a href="/app/orders\?gift=(product-\d+)">Coffee House e-gift</a>', ada.page.text)
    assert len(listed(ada, f"?gift={gift}")) == 3


def test_a_wrong_day_is_said_beside_its_field(ada: Browser, filled: dict[str, str]) -> None:
    assert ada.get("/app/orders?since=tomorrow").status_code == 422
    assert 'id="since-error"' in ada.page.text


def test_older_and_newer_lead_there_and_back(
    ada: Browser, filled: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("largesse.web.console.orders._AT_ONCE", 2)
    assert listed(ada) == [filled["own"], filled["sent"]]
    [older] = re.findall(r'href="([^"]+)" rel="next"', ada.page.text)
    assert listed(ada, older.removeprefix("/app/orders")) == [filled["batch"]]
    [newer] = re.findall(r'href="([^"]+)" rel="prev"', ada.page.text)
    assert listed(ada, newer.removeprefix("/app/orders")) == [filled["own"], filled["sent"]]


def test_columns_sort_both_ways(ada: Browser, service: Service, filled: dict[str, str]) -> None:
    large = send(service, value=25)
    work(service)
    newest = [large, filled["own"], filled["sent"], filled["batch"]]
    assert listed(ada) == newest
    assert 'aria-sort="descending"><a href="/app/orders?sort=oldest">Placed' in ada.page.text
    assert listed(ada, "?sort=oldest") == newest[::-1]
    assert 'aria-sort="ascending"><a href="/app/orders">Placed' in ada.page.text
    assert listed(ada, "?sort=highest")[0] == large
    assert 'aria-sort="descending"><a href="/app/orders?sort=lowest">Total' in ada.page.text
    assert listed(ada, "?sort=lowest&state=waiting")[-1] == large
    assert listed(ada, "?sort=oldest&q=ben") == [filled["sent"], filled["own"], large]
    assert "3 orders, £" in ada.text
    put_away(service, large)


def test_filters_are_chips_that_can_be_taken_away(ada: Browser, filled: dict[str, str]) -> None:
    listed(ada, "?state=waiting&period=this-month&q=ben&sort=oldest")
    chips = re.findall(r'<a class="chip" aria-current="true" href="([^"]+)">([^<]+)', ada.page.text)
    assert [(html.unescape(address), said.strip()) for address, said in chips] == [
        ("/app/orders?state=waiting&period=this-month&sort=oldest", "Search: ben"),
        ("/app/orders?state=waiting&q=ben&sort=oldest", "Period: This month"),
        ("/app/orders?period=this-month&q=ben&sort=oldest", "State: Unclaimed"),
    ]
    listed(ada, "?since=2026-01-01&until=2999-01-02")
    assert "Period: 1 Jan 2026 \N{EN DASH} 2 Jan 2999" in ada.text
    assert listed(ada, "?period=last-month") == []
    for filtered in ("account=999", "gift=product-999", "by=key-999", "source=other"):
        assert listed(ada, f"?{filtered}") == []
        assert ": Not in this list" in ada.text, "the chip of a filter that leaves nothing can be taken away"
    listed(ada, "?account=x&gift=x&by=x&state=x")
    assert "Not in this list" not in ada.text


def test_chosen_orders_are_exported(ada: Browser, cem: Browser, filled: dict[str, str]) -> None:
    chosen = f"?of=chosen&order={filled['batch']}&order={filled['sent']}&order={filled['foreign']}"
    rows = list(csv.reader(io.StringIO(ada.get(f"/app/orders.csv{chosen}").text.removeprefix("\ufeff"))))
    assert [row[0] for row in rows[1:]] == [filled["sent"], filled["batch"]]
    assert dict(zip(rows[0], rows[1], strict=True))["First recipient"] == "Ada King"
    assert cem.get(f"/app/orders.csv{chosen}").text.count("\n") == 1, "none is Cem's own"
    many = "&".join(f"order={number}" for number in range(101))
    for wrong in ("?of=chosen&state=waiting", f"?of=chosen&state=waiting&{many}"):
        answer = ada.get(f"/app/orders.csv{wrong}")
        assert (answer.status_code, answer.headers["location"]) == (303, "/app/orders?state=waiting&of=chosen")
        assert ada.get("/app/orders?state=waiting&of=chosen").status_code == 422
        assert "Choose the orders to export first, at most 100." in ada.text
    assert ada.get(f"/app/orders.csv?of=chosen&{many.removesuffix('&order=100')}").status_code == 200


def test_a_member_sees_what_is_their_own(cem: Browser, filled: dict[str, str]) -> None:
    assert listed(cem) == [filled["own"]]
    assert listed(cem, "?by=key-1&q=ben") == [filled["own"]]
    assert "1 order, £30.00" in cem.text
    assert cem.get(f"/app/orders/{filled['own']}").status_code == 200
    for name in ("sent", "batch", "foreign", "staging"):
        assert cem.get(f"/app/orders/{filled[name]}").status_code == 404, name


def test_the_file_has_the_same_orders_and_no_formula(ada: Browser, service: Service, filled: dict[str, str]) -> None:
    reference = send(service, externalReference="=1+1", source="file")
    work(service)
    answer = ada.get("/app/orders.csv?source=file")
    heading, row = csv.reader(io.StringIO(answer.text.removeprefix("\ufeff")))
    assert (heading[0], heading[1]) == ("Reference", "Your reference")
    assert row[:2] == [reference, "'=1+1"]
    assert row[4:10] == ["3", "0", "0", "30.00", "GBP", "Sending"]
    put_away(service, reference)


def test_the_page_says_where_the_file_has_not_all(
    ada: Browser, filled: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "of these orders. Choose a shorter period for others."
    assert said not in ada.read("/app/orders")
    monkeypatch.setattr(orders, "MOST_OF_FILE", 2)
    assert f"The export has the newest 2 {said}" in ada.read("/app/orders")
    assert len(list(csv.reader(io.StringIO(ada.get("/app/orders.csv").text)))) == 3
    assert said not in ada.read("/app/orders?source=crm")


@pytest.mark.slow
def test_pages_show_what_was_just_done_before_the_read_models_follow(ada: Browser, service: Service) -> None:
    reference = send(service)
    assert "Claimed 0 0%" in ada.read(f"/app/orders/{reference}")  # although no worker has seen it
    work(service)
    assert ada.submit(f"/app/orders/{reference}/cancel").status_code == 303
    ada.get(f"/app/orders/{reference}")
    assert 'state still">Cancelled' in ada.page.text
    for gone in ("Cancel the unclaimed gifts", "Send again to"):
        assert gone not in ada.text
    for path in ("/app", "/app/orders"):
        ada.get(path)
        assert re.search(rf'{reference}">.*?<span class="state still">Cancelled', ada.page.text, re.DOTALL), path
    put_away(service, reference)


def test_files_have_the_words_of_the_pages(ada: Browser, service: Service, filled: dict[str, str]) -> None:
    service.sql("UPDATE orders SET external_reference = reference WHERE reference = $1", filled["own"])
    rows = list(csv.reader(io.StringIO(ada.get("/app/orders.csv").text.removeprefix("\ufeff"))))
    state, own = rows[0].index("State"), rows[0].index("Your reference")
    [row] = [row for row in rows if row[0] == filled["own"]]
    assert (row[own], row[state]) == ("", "Sending")
    assert "BATCH-1" in {row[own] for row in rows}
    service.sql("UPDATE orders SET external_reference = '000123' WHERE reference = $1", filled["own"])
    ada.headers["Accept-Language"] = "de"
    rows = list(csv.reader(io.StringIO(ada.get("/app/orders.csv").text.removeprefix("\ufeff")), delimiter=";"))
    assert rows[0][:4] == ["Referenz", "Ihre Referenz", "Aufgegeben (UTC)", "Geschenk"]
    [row] = [row for row in rows if row[0] == filled["own"]]
    assert (row[own], row[state]) == ("'000123", "Wird versendet"), "a spreadsheet would drop the zeros"
    ada.headers["Accept-Language"] = "en"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["vic", *(pytest.param(name, marks=pytest.mark.slow) for name in ("cem", "fay"))])
def test_no_page_offers_what_would_be_refused(service: Service, filled: dict[str, str], name: str) -> None:
    """Neither a link nor a form leads anywhere where a role may not go. Cem may use the account that orders of others were paid from."""
    browser, waiting, seen = signed_in(service, f"{name}@acme.example"), ["/app"], set[str]()
    [[role]] = service.sql("SELECT role FROM users WHERE email = $1", f"{name}@acme.example")
    while waiting and len(seen) < 200:
        path = waiting.pop()
        answer = browser.get(path)
        assert answer.status_code in {200, 303}, path
        for form in Forms(answer.text).found:
            assert role in getattr(route_of("POST", form.path.partition("?")[0]), "roles", {role}), (path, form.path)
        for link in map(html.unescape, browser.links if answer.status_code == 200 else ()):
            at = link.partition("#")[0]
            # Reports link each period with each group, and the audit log orders that tests have put away.
            if at.startswith("/app") and not re.search("/assets/|/reports[?]|/audit", at) and at not in seen:
                seen.add(at)
                waiting.append(at)
    assert any(path.startswith("/app/funding/") for path in seen)
    assert f"/app/orders/{filled['own']}" in seen


def test_views_are_saved_and_removed(ada: Browser, cem: Browser, service: Service, filled: dict[str, str]) -> None:
    address = "/app/orders?state=waiting&sort=oldest"
    answer = ada.submit(f"{address}&q=ben", "/app/orders/views?state=waiting&sort=oldest&q=ben", name=" Late ones ")
    assert answer.headers["location"] == address, "what is searched for is not saved"
    assert "Saved as Late ones." in ada.read(address)
    assert f'href="{address.replace("&", "&amp;")}" aria-current="true"' in ada.page.text
    ada.submit(address, "/app/orders/views?state=claimed", name="Late ones")
    for _ in range(2):  # the first says that it is saved
        ada.get("/app/orders")
    assert ada.page.text.count("Late ones") == 1, "a view of the same name is replaced"
    assert 'href="/app/orders?state=claimed"' in ada.page.text
    assert "Late ones" not in cem.read("/app/orders")
    [view] = service.sql("SELECT id FROM saved_views")
    for browser, status in ((cem, 404), (ada, 303), (ada, 404)):
        browser.get("/app/orders?state=waiting")
        assert browser.post(f"/app/orders/views/{view['id']}/remove").status_code == status
    assert "Late ones" not in ada.read("/app/orders")


@pytest.mark.parametrize(
    ("query", "name", "said"),
    [
        ("state=waiting", "", "Fill this in."),
        ("state=waiting", "x" * (MAX_NAME + 1), f"At most {MAX_NAME} are allowed"),
        ("", "All", "Choose a filter or an order to save first."),
        ("q=ben", "Ben", "Choose a filter or an order to save first."),
    ],
)
def test_a_view_that_cannot_be_saved_says_why(
    ada: Browser, filled: dict[str, str], query: str, name: str, said: str
) -> None:
    ada.page = ada.submit(f"/app/orders?state=waiting&{query}", f"/app/orders/views?{query}", name=name)
    assert ada.page.status_code == 422
    assert said in ada.text
    assert "state=" not in query or f'value="{name}"' in ada.page.text


@pytest.mark.slow
def test_a_person_has_so_many_views(ada: Browser, service: Service, filled: dict[str, str]) -> None:
    for number in range(MOST_VIEWS + 1):
        ada.get("/app/orders?state=waiting")
        ada.page = ada.post("/app/orders/views?state=waiting", name="x" * (MAX_NAME - 2) + f"{number:02}")
        assert ada.page.status_code == (303 if number < MOST_VIEWS else 422)
    assert f"You have {MOST_VIEWS} saved views." in ada.text
    service.sql("DELETE FROM saved_views")


def test_the_latest_order_is_in_the_calendar_of_every_zone(ada: Browser, service: Service) -> None:
    latest = {"sendAt": "9999-12-30T23:59:59Z", "claimBy": "9999-12-31T23:59:59Z", "expiryAfterDays": 36_500}
    reference = send(service, recipients=[{"email": "far@acme.example"}], **latest)
    reminded = send(
        service, recipients=[{"email": "far@acme.example"}], sendAt="9999-12-31T23:59:59Z", reminderDays=[1, 365]
    )
    work(service)
    for zone in ("Pacific/Auckland", "Pacific/Honolulu"):
        service.sql("UPDATE people SET zone = $1 WHERE email = 'ada@acme.example'", zone)
        for path in ("/app/orders", f"/app/orders/{reference}", f"/app/orders/{reminded}"):
            assert ada.get(path).status_code == 200, (zone, path)
    service.sql("UPDATE people SET zone = NULL WHERE email = 'ada@acme.example'")
    for one in (reference, reminded):
        put_away(service, one)
