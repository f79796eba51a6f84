"""The list of orders: its filters and search, whose orders it has, and the same as a file."""

from __future__ import annotations

import csv
import html
import io
import re

import pytest
from tests.web.api.conftest import Service
from tests.web.console.conftest import Browser, signed_in
from tests.web.console.orders import WORLD, ada, cem, filled, listed, put_away, send, work

__all__ = ["WORLD", "ada", "cem", "filled"]


def test_the_list_has_the_customers_orders_newest_first(ada: Browser, filled: dict[str, str]) -> None:
    assert listed(ada) == [filled["own"], filled["sent"], filled["batch"]]
    assert "3 orders, £90.00" in ada.text
    assert "0 of 3" in ada.text


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
    [value] = re.findall(r'<option value="(person-\d+)">Cem</option>', ada.page.text)
    assert listed(ada, f"?by={value}") == [filled["own"]]
    [gift] = re.findall(r'<option value="(product-\d+)">Coffee House e-gift</option>', ada.page.text)
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
    assert (heading[0], heading[1]) == ("reference", "own reference")
    assert row[:2] == [reference, "'=1+1"]
    assert row[4:10] == ["3", "0", "0", "30.00", "GBP", "Unclaimed codes"]
    put_away(service, reference)


def test_who_only_looks_gets_no_file_and_may_do_nothing(service: Service, filled: dict[str, str]) -> None:
    for email, may_export in (("vic@acme.example", False), ("fay@acme.example", True)):
        browser = signed_in(service, email)
        assert len(listed(browser)) == 3
        assert ("orders.csv" in browser.page.text) is may_export
        assert browser.get("/app/orders.csv").status_code == (200 if may_export else 403)
        assert browser.get(f"/app/orders/{filled['sent']}").status_code == 200
        assert "/resend" not in browser.page.text
        assert "/cancel" not in browser.page.text
        for act in ("resend", "resend-unclaimed", "correct", "cancel"):
            assert browser.post(f"/app/orders/{filled['sent']}/{act}").status_code == 403


def test_pages_show_what_was_just_done_before_the_read_models_follow(ada: Browser, service: Service) -> None:
    reference = send(service)
    ada.get(f"/app/orders/{reference}")
    assert "0 of 3 claimed" in ada.text  # although no worker has seen it
    work(service)
    ada.get(f"/app/orders/{reference}/cancel")
    assert ada.post(f"/app/orders/{reference}/cancel").status_code == 303
    ada.get(f"/app/orders/{reference}")
    assert "State Cancelled" in ada.text
    for gone in ("Cancel what is unclaimed", "Send again to all"):
        assert gone not in ada.text
    for path in ("/app", "/app/orders"):
        ada.get(path)
        assert re.search(rf"{reference} .{{0,80}}? Cancelled", ada.text), path
    put_away(service, reference)


def test_files_have_the_words_of_the_pages(ada: Browser, service: Service, filled: dict[str, str]) -> None:
    service.sql("UPDATE orders SET external_reference = reference WHERE reference = $1", filled["own"])
    rows = list(csv.reader(io.StringIO(ada.get("/app/orders.csv").text.removeprefix("\ufeff"))))
    state, own = rows[0].index("state"), rows[0].index("own reference")
    [row] = [row for row in rows if row[0] == filled["own"]]
    assert (row[own], row[state]) == ("", "Unclaimed codes")
    assert "BATCH-1" in {row[own] for row in rows}
    ada.headers["Accept-Language"] = "de"
    assert "waiting" not in ada.get("/app/orders.csv").text
    ada.headers["Accept-Language"] = "en"


def test_no_link_that_a_member_sees_leads_nowhere(cem: Browser, service: Service, filled: dict[str, str]) -> None:
    """Cem may use the account that orders of others were paid from."""
    waiting, seen = ["/app"], set[str]()
    while waiting and len(seen) < 200:
        path = waiting.pop()
        answer = cem.get(path)
        assert answer.status_code in {200, 303}, path
        for link in map(html.unescape, cem.links if answer.status_code == 200 else ()):
            at = link.partition("#")[0]
            if at.startswith("/app") and "/assets/" not in at and at not in seen:
                seen.add(at)
                waiting.append(at)
    assert any(path.startswith("/app/funding/") for path in seen)
    assert f"/app/orders/{filled['own']}" in seen
