"""What a send is told of the past: who had the gift before, and what was sent lately."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from tests.reports.conftest import follow, pooled
from tests.web.api.conftest import Service, on_database
from tests.web.console.conftest import Browser, SignIn
from tests.web.console.sending import WORLD, begin, place, ready

from largesse.reports import usage

__all__ = ["WORLD", "follow", "pooled"]


@pytest.fixture
def service(own_service: Service) -> Service:
    """A service with a new database for each test: what was sent lately in one would be told of in another."""
    return own_service


def send(browser: Browser, service: Service, rows: str, **gift: Any) -> None:
    path = ready(browser, service, rows=rows, **gift)
    place(browser, path)


def noted(browser: Browser, service: Service, rows: str, **gift: Any) -> str:
    """What is said of the rows."""
    path = begin(browser, service, **gift)
    browser.submit(f"{path}/recipients", rows=rows)
    browser.get(f"{path}/recipients")
    browser.get(f"{path}/recipients?state=earlier&sort=email")
    found = re.search(r"They got this gift in the last 90 days\..* State .( .*?) Start over", browser.text)
    return found[1] if found else ""


def test_who_had_the_gift_lately_is_noted(
    service: Service, cem: Browser, ada: Browser, sign_in: SignIn, follow: Callable[[], None]
) -> None:
    send(cem, service, "zoe@example.com\nbo@example.com")
    send(ada, service, "kim@example.com")
    send(ada, service, "lee@example.com", gift="books", value="7")
    follow()
    rows = "ZOE@example.com\nkim@example.com\nlee@example.com\nnew@example.com"
    # Whoever is found by that word in another way had no gift.
    assert re.fullmatch(r" kim@example.com .* ago .* ZOE@example.com .* ago .*", noted(ada, service, rows))
    # A member sees their own orders alone, and another gift is another.
    assert re.fullmatch(r" ZOE@example.com .* ago .*", noted(cem, service, rows))
    assert "lee@example.com" in noted(ada, service, rows, gift="books", value="7")
    assert noted(cem, service, rows, gift="books", value="7") == ""
    gil = sign_in("gil@globex.example")
    assert noted(gil, service, rows) == ""
    # What is long past, or in test mode, is not told.
    service.sql("UPDATE report_words SET created_at = created_at - interval '91 days' WHERE word = 'kim@example.com'")
    assert "kim@" not in noted(ada, service, rows)
    ada.submit("/app", "/app/environment", environment="staging")
    assert noted(ada, service, rows) == ""


def test_addresses_in_no_order_cost_one_walk_along_the_index(service: Service, follow: Callable[[], None]) -> None:
    """However many orders of the gift there are: they are joined with the orders that were found, not with each address."""
    placed = "PREPARE asked (int, text, text[], timestamptz, int, int, int, int) AS "
    plan = on_database(service.database_url, lambda connection: _explained(connection, placed + usage._EARLIER_GIFTS))
    assert "CTE newest" in plan, plan
    assert "report_words_pkey" in plan, plan
    assert "ANY" in plan.partition("CTE newest")[2], plan


async def _explained(connection: Any, prepared: str) -> str:
    await connection.execute(prepared)
    rows = await connection.fetch("EXPLAIN EXECUTE asked (1, 'production', '{x@example.com}', now(), 20, 1, 0, NULL)")
    return "\n".join(row[0] for row in rows)


def test_what_one_sent_lately_comes_first(service: Service, cem: Browser) -> None:
    for gift, value in (("books", "5"), ("hamper", "")):
        send(cem, service, "zoe@example.com", gift=gift, value=value)
    cem.get("/app/send")
    names = re.findall(r"<strong>(.*?)</strong>", cem.page.text.partition("<main")[2])
    assert names[:2] == ["Autumn hamper", "Bookshop e-gift"]


def test_gifts_are_searched_for(service: Service, ada: Browser) -> None:
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
        ada.get(f"/app/send?{query}")
        assert ada.page.status_code == 200
        names = set(re.findall(r"<strong>(.*?)</strong>", ada.page.text.partition("<main")[2]))
        assert names == shown, query
