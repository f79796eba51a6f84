"""The search over orders, recipients, templates, gifts, pages and help, and the help page."""

import re
from html import unescape

import pytest
from tests.web.api.conftest import Service
from tests.web.console.conftest import Browser, signed_in
from tests.web.console.orders import WORLD, ada, cem, filled, put_away, send, work

from largesse.reports import listing
from largesse.web.console.search import MOST_OF_KIND
from largesse.web.console.words import WORDS

__all__ = ["WORLD", "ada", "cem", "filled"]


def found(browser: Browser, words: str = "") -> dict[str, list[tuple[str, str]]]:
    """What is found of each kind: its address and its name."""
    assert browser.get(f"/app/search?q={words}").status_code == 200
    kinds = re.findall(r'<section aria-labelledby="found-(\w+)">(.*?)</section>', browser.page.text, re.DOTALL)
    hits = r'<a href="([^"]+)"><svg.*?</svg><span><span class="hit">(.*?)</span>'
    return {kind: [(path, unescape(name)) for path, name in re.findall(hits, part, re.DOTALL)] for kind, part in kinds}


def order(reference: str) -> str:
    return f"/app/orders/{reference}"


def test_without_words_the_newest_orders_and_templates_are_shown(ada: Browser, filled: dict[str, str]) -> None:
    shown = found(ada)
    assert [path for path, _ in shown["orders"]] == [order(filled[one]) for one in ("own", "sent", "batch")]
    assert shown["templates"]
    assert set(shown) == {"orders", "templates"}
    assert "Newest orders" in ada.text


@pytest.mark.parametrize(
    ("words", "orders", "people"),
    [
        ("king", ["own", "sent"], ["Ada King", "Ada King"]),
        ("KÍNG", ["own", "sent"], ["Ada King", "Ada King"]),
        ("ada.king%40acme.example", ["own", "sent"], ["Ada King", "Ada King"]),
        ("ben", ["own", "sent"], ["=Ben", "=Ben"]),
        ("PO-77", ["sent"], []),
        ("board", ["sent"], []),
        ("king+board", ["sent"], []),
        ("King+%26+board", ["sent"], []),
        ("Ada+M.+King", ["own", "sent"], ["Ada King", "Ada King"]),
        ("nobody", [], []),
        ("%25", [], []),
    ],
)
def test_orders_are_found_by_their_words_and_with_them_the_recipients(
    ada: Browser, filled: dict[str, str], words: str, orders: list[str], people: list[str]
) -> None:
    shown = found(ada, words)
    assert [path for path, _ in shown.get("orders", [])] == [order(filled[one]) for one in orders]
    assert [name for _, name in shown.get("recipients", [])] == people
    paths = {path for path, _ in shown.get("recipients", [])}
    assert paths <= {order(filled[one]) for one in orders}


def test_recipients_are_found_without_regard_to_case_and_accents(
    ada: Browser, service: Service, filled: dict[str, str]
) -> None:
    name = "Émile Weiß"
    reference = send(service, recipients=[{"email": "emile@acme.example", "name": name}])
    work(service)
    assert [found(ada, typed)["recipients"] for typed in ("weiß", "WEISS", "émile", "emile")] == [
        [(order(reference), name)]
    ] * 4
    put_away(service, reference)


def test_a_whole_reference_leads_to_its_order(ada: Browser, filled: dict[str, str]) -> None:
    assert found(ada, filled["batch"])["orders"] == [(order(filled["batch"]), "BATCH-1")]
    assert "orders" not in found(ada, filled["foreign"])
    assert "orders" not in found(ada, filled["staging"])


def test_a_member_finds_what_is_theirs(cem: Browser, service: Service, filled: dict[str, str]) -> None:
    assert [path for path, _ in found(cem, "king")["orders"]] == [order(filled["own"])]
    assert {path for path, _ in found(cem, "king")["recipients"]} == {order(filled["own"])}
    assert "orders" not in found(cem, filled["sent"])
    assert ("/app/keys", "API keys") not in found(cem, "api").get("pages", [])
    viewer = signed_in(service, "vic@acme.example")
    assert "templates" not in found(viewer)
    assert len(found(viewer, "king")["orders"]) == 2


def test_contacts_are_found_by_name_and_address_by_those_who_may_see_them(
    ada: Browser, service: Service, filled: dict[str, str]
) -> None:
    paths = {}
    for name, email in (("Zoë Quill", "zq@acme.example"), ("", "scribe@quill.example")):
        paths[email] = ada.submit("/app/contacts/new", "/app/contacts", name=name, email=email).headers["location"]
    assert found(ada, "QUÍLL")["contacts"] == [
        (paths["scribe@quill.example"], "scribe@quill.example"),
        (paths["zq@acme.example"], "Zoë Quill"),
    ]
    assert found(ada, "zoe+quill") == {"contacts": [(paths["zq@acme.example"], "Zoë Quill")]}
    assert found(ada, "zq%40acme.example") == {"contacts": [(paths["zq@acme.example"], "Zoë Quill")]}
    assert "contacts" not in found(ada)
    assert found(signed_in(service, "vic@acme.example"), "quill") == {}
    for number in range(MOST_OF_KIND):
        ada.submit("/app/contacts/new", "/app/contacts", name=f"Quill {number}", email=f"quill{number}@acme.example")
    assert len(found(ada, "quill")["contacts"]) == MOST_OF_KIND
    assert '<a href="/app/contacts?q=quill">All contacts that match</a>' in ada.page.text


def test_gifts_templates_pages_and_help_are_found(ada: Browser, filled: dict[str, str]) -> None:
    assert any(path.startswith("/app/catalogue/") for path, name in found(ada, "coffee")["gifts"])
    [template, *_] = found(ada)["templates"]
    assert template in found(ada, template[1])["templates"]
    assert ("/app/funding/top-ups/new", "Top up") in found(ada, "top")["pages"]
    assert ("/app/help#service-account", "Service account") in found(ada, "service")["help"]
    assert any(path == "/docs#listOrders" for path, _ in found(ada, "list+orders")["help"])
    assert found(ada, "zzzzzz") == {}
    assert "Nothing matches “zzzzzz”." in ada.text


def test_each_kind_shows_a_few_and_says_where_the_rest_is(
    ada: Browser, service: Service, filled: dict[str, str]
) -> None:
    more = [send(service, recipients=[{"email": f"many{n}@acme.example", "name": f"Manifold {n}"}]) for n in range(7)]
    work(service)
    shown = found(ada, "manifold")
    assert [path for path, _ in shown["orders"]] == [order(one) for one in reversed(more)][:MOST_OF_KIND]
    assert len(shown["recipients"]) == MOST_OF_KIND
    assert '<a href="/app/orders?q=manifold">All orders that match</a>' in ada.page.text
    for reference in more:
        put_away(service, reference)


def test_what_people_type_is_text(ada: Browser, filled: dict[str, str]) -> None:
    found(ada, "%3Cscript%3E%22")
    assert '<script>"' not in ada.page.text
    assert 'value="&lt;script&gt;&#34;"' in ada.page.text
    assert found(ada, "x" * 200) == {}
    assert found(ada, "x" * 201) == {}
    assert 'value="' + "x" * 200 + '"' in ada.page.text, "no more is searched for"


def test_recipients_of_many_lines_are_looked_for_in_the_newest_orders(
    ada: Browser, filled: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "MAX_LINES", 3)  # as many as an order of these has
    assert {path for path, _ in found(ada, "king")["recipients"]} == {order(filled["own"])}
    monkeypatch.setattr(listing, "MAX_LINES", 1)
    assert {path for path, _ in found(ada, "king")["recipients"]} == {order(filled["own"])}, "the newest in any case"


def test_every_page_leads_to_the_search_and_the_help(ada: Browser) -> None:
    ada.get("/app")
    assert ada.page.text.count('href="/app/search" data-search aria-keyshortcuts="/"') == 2
    assert 'href="/app/help"' in ada.page.text
    ada.get("/app/help")
    for key in WORDS:
        assert f'<div id="{key}">' in ada.page.text
    assert '<a href="/docs">' in ada.page.text
