"""What a send is told of the past: who had the gift before, and what was sent lately."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tests.reports.conftest import follow, pooled
from tests.web.api.conftest import Service, run_on_database
from tests.web.console.conftest import Browser
from tests.web.console.sending import WORLD, begin, quote_in, ready

__all__ = ["WORLD", "follow", "pooled", "run_on_database"]

SignIn = Callable[[str], Browser]


def send(browser: Browser, service: Service, rows: str, **gift: Any) -> None:
    path = ready(browser, service, rows=rows, **gift)
    browser.get(f"{path}/review")
    assert browser.post(f"{path}/place", quote=quote_in(browser)).status_code == 303


def noted(browser: Browser, service: Service, rows: str, **gift: Any) -> str:
    """What is said of the rows."""
    path = begin(browser, service, **gift)
    browser.get(f"{path}/recipients")
    browser.post(f"{path}/recipients", rows=rows)
    browser.get(f"{path}/recipients")
    found = re.search(r"Had this gift in the last 90 days: \d+(.*?)Next: message", browser.text)
    return found[1] if found else ""


def test_who_had_the_gift_lately_is_noted(service: Service, sign_in: SignIn, follow: Callable[[], None]) -> None:
    cem, ada = sign_in("cem@acme.example"), sign_in("ada@acme.example")
    send(cem, service, "zoe@example.com\nbo@example.com")
    send(ada, service, "kim@example.com")
    send(ada, service, "lee@example.com", gift="books", value="7")
    follow()
    rows = "ZOE@example.com\nkim@example.com\nlee@example.com\nnew@example.com"
    # Whoever is found by that word in another way had no gift.
    assert re.fullmatch(r" kim@example.com .* ago ZOE@example.com .* ago ", noted(ada, service, rows))
    # A member sees their own orders alone, and another gift is another.
    assert re.fullmatch(r" ZOE@example.com .* ago ", noted(cem, service, rows))
    assert "lee@example.com" in noted(ada, service, rows, gift="books", value="7")
    assert noted(cem, service, rows, gift="books", value="7") == ""
    gil = sign_in("gil@globex.example")
    assert noted(gil, service, rows) == ""
    # What is long past, or in test mode, is not told.
    service.sql("UPDATE report_words SET created_at = created_at - interval '91 days' WHERE word = 'kim@example.com'")
    assert "kim@" not in noted(ada, service, rows)
    ada.get("/app")
    ada.post("/app/environment", environment="staging")
    assert noted(ada, service, rows) == ""


def test_five_thousand_addresses_are_looked_up_by_the_index(service: Service, follow: Callable[[], None]) -> None:
    """However many orders there are: each address is one walk down the key."""
    plan = service.sql(
        """
        EXPLAIN SELECT FROM unnest($1::text[]) AS asked (word) CROSS JOIN LATERAL (
            SELECT order_id FROM report_words w
            WHERE w.customer_id = 1 AND w.environment = 'production' AND w.word = asked.word
              AND w.created_at > now() - interval '90 days'
            ORDER BY w.created_at DESC, w.order_id DESC LIMIT 20) AS newest
        """,
        ["x@example.com"],
    )
    told = "\n".join(row[0] for row in plan)
    assert "report_words_pkey" in told, told
    assert "Sort" not in told, told


def test_what_one_sent_lately_comes_first(service: Service, sign_in: SignIn) -> None:
    dee = sign_in("cem@acme.example")
    for gift, value in (("books", "5"), ("hamper", "")):
        send(dee, service, "zoe@example.com", gift=gift, value=value)
    dee.get("/app/send")
    assert dee.page is not None
    names = re.findall(r"<strong>(.*?)</strong>", dee.page.text)
    assert names[:2] == ["Autumn hamper", "Bookshop e-gift"]


def test_gifts_are_searched_for(service: Service, sign_in: SignIn) -> None:
    browser = sign_in("ada@acme.example")
    for query, shown in (
        ("q=BOOK", {"Bookshop e-gift"}),
        ("kind=physical", {"Autumn hamper"}),
        ("kind=digital&amount=5", {"Coffee House e-gift", "Bookshop e-gift"}),
        ("amount=4,99", set()),
        ("country=IE", {"Coffee House e-gift"}),
        ("currency=EUR", set()),
        ("country=XX&page=0&amount=nan&kind=x", {"Coffee House e-gift", "Bookshop e-gift", "Autumn hamper"}),
        ("page=2", set()),
    ):
        browser.get(f"/app/send?{query}")
        assert browser.page is not None
        assert browser.page.status_code == 200
        names = set(re.findall(r"<strong>(.*?)</strong>", browser.page.text))
        assert names == shown, query
