"""What all pages have round them: the menu with its icons, narrow or wide, what was just done, in a live region, and links to guides."""

import re
from pathlib import Path

import pytest
from tests.web.api.conftest import Service, ServiceFactory
from tests.web.console.conftest import Browser, SignIn, signed_in

from largesse.web.claim.rendering import THEMES
from largesse.web.console.layout import BROWSER_ZONE, NARROW_MENU
from largesse.web.console.words import WORDS

_KEYS = ("key", "service-account", "scope", "network")
CHECKED = re.compile(r'id="narrow-menu" class="visually-hidden" checked')


def test_each_page_of_the_menu_has_an_icon_beside_its_name(sign_in: SignIn) -> None:
    page = sign_in("ada@acme.example").get("/app").text
    side = page.partition('<header class="side">')[2].partition("</nav>")[0]
    items = re.findall(
        r'<li><a href="(/app[^"]*)"[^>]*><svg class="icon"[^>]*aria-hidden="true">.*?</svg><span>([^<]+)</span>', side
    )
    assert [name for _, name in items][:2] == ["Home", "Send a gift"]
    assert len(items) > 12
    assert re.findall(r'<a href="([^"]+)" aria-current="page"', side) == ["/app"]


def test_the_menu_stays_as_narrow_as_it_was_left(ada: Browser) -> None:
    assert not CHECKED.search(ada.get("/app").text)
    ada.cookies[NARROW_MENU] = "1"
    assert CHECKED.search(ada.get("/app").text)
    ada.cookies[NARROW_MENU] = '"><script>'
    assert not CHECKED.search(ada.get("/app").text)


def test_what_was_done_stands_in_a_live_region(ada: Browser) -> None:
    assert ada.submit("/app/security", "/app/security/preferences", language="en", zone="").status_code == 303
    page = ada.get("/app/security").text
    [region] = re.findall(r'<div class="toasts" role="status" aria-live="polite"[^>]*>(.*?)</div>', page, re.DOTALL)
    assert re.search(r'<p class="toast">.*<span>[^<]+</span></p>', region)
    assert "toast" not in re.findall(r'<div class="toasts"[^>]*>(.*?)</div>', ada.get("/app/security").text)[0]


def test_a_row_has_one_menu_with_its_name(service: Service, sign_in: SignIn) -> None:
    page = sign_in("ada@acme.example").get("/app/keys").text
    rows = page.partition("<tbody>")[2].partition("</tbody>")[0].split("<tr>")[1:]
    assert len(rows) > 1
    for row in rows:
        [name] = re.findall(r'<details class="row-menu" name="row-menu"><summary aria-label="Actions for ([^"]+)"', row)
        assert f">{name}</a>" in row
        assert re.search(r'class="danger" href="/app/keys/\d+/delete"', row)
    assert "<button" not in "".join(rows)


def test_what_is_shown_once_has_a_copy_button_and_stays_to_be_selected(ada: Browser) -> None:
    invited = ada.submit("/app/people", email="copy@acme.example", name="", role="viewer").text
    [copied] = re.findall(
        r'<button type="button" class="copy" data-copy="([^"]+)" aria-label="Copy the link">', invited
    )
    assert f'<code class="secret">{copied}</code>' in invited


def test_wrappings_are_drawn_as_the_boxes_they_are(ada: Browser) -> None:
    page = ada.get("/app/templates/new?product=1").text
    boxes = re.findall(
        r'<label class="swatch"><span class="wrap-([\w-]+)"><svg class="present".*?</svg></span><input', page
    )
    assert boxes == list(THEMES)
    ids = re.findall(r' id="((?:paper|fold)-[^"]+)"', page)
    assert len(ids) == len(set(ids)) == 2 * len(THEMES)
    assert set(re.findall(r"url\(#([^)]+)\)", page)) == set(ids)
    assert "style=" not in page


def test_times_are_in_the_zone_of_the_browser_until_the_person_chooses_one(ada: Browser) -> None:
    assert "Times in UTC" in ada.get("/app").text
    assert "<noscript>" in ada.page.text, "without script the person is asked"
    ada.cookies[BROWSER_ZONE] = "Europe/Berlin"
    assert "Times in Europe/Berlin" in ada.get("/app").text
    assert "<noscript>" not in ada.page.text
    assert '<option value="" selected>As my browser: Europe/Berlin</option>' in ada.get("/app/security").text
    ada.cookies[BROWSER_ZONE] = "Moon/Base"
    assert "Times in UTC" in ada.get("/app").text
    answer = ada.post("/app/security/preferences", language="", zone="UTC", next="/app")
    assert answer.headers["location"] == "/app"
    ada.cookies[BROWSER_ZONE] = "Europe/Berlin"
    assert "Times in UTC" in ada.get("/app").text, "chosen once"
    assert "<noscript>" not in ada.page.text
    assert ada.submit("/app/security", "/app/security/preferences", language="", zone="").status_code == 303


def test_each_time_names_its_zone_under_the_pointer(ada: Browser) -> None:
    ada.cookies[BROWSER_ZONE] = "Asia/Tokyo"
    times = re.findall(r"<time ([^>]*)>", "".join(ada.get(path).text for path in ("/app/keys", "/app/people")))
    assert len(times) > 1
    assert all(re.search(r'datetime="[^"]+" title="[^"]+ Asia/Tokyo"', one) for one in times), times


def test_words_are_explained_beside_them(sign_in: SignIn) -> None:
    page = sign_in("ada@acme.example").get("/app/keys").text
    explained = re.findall(
        r'<details class="means" name="means"><summary aria-label="What “([^”]+)” means">.*?</summary><p>([^<]+)</p>',
        page,
    )
    assert [word for word, _ in explained] == ["API key", "Service account", "Scopes", "Allowed networks"]
    assert all(meaning == WORDS[key].meaning for key, (_, meaning) in zip(_KEYS, explained, strict=True))


@pytest.mark.parametrize("path", ["/app/keys", "/app/webhooks", "/app/service-accounts"])
def test_where_programs_are_set_up_the_api_is_documented(sign_in: SignIn, path: str) -> None:
    assert re.search(r'<a href="/docs#[\w-]+">', sign_in("ada@acme.example").get(path).text)


ROOT = Path(__file__).parents[3]
DOCS = "https://docs.example.com/largesse"
GUIDES = {
    "/": "docs/quick-start",
    "/docs": "docs/guide-developer",
    "/problems": "docs/guide-developer",
    "/app/help": "docs/guide-developer",
    "/app/keys": "docs/guides/authentication",
    "/app/service-accounts": "docs/guides/authentication",
    "/app/webhooks": "docs/guides/webhooks",
    "/app/orders": "docs/guide-sender#follow-an-order",
    "/app/contacts/groups": "docs/guide-programmes#contacts",
    "/app/approvals": "docs/guide-programmes#approvals",
    "/app/automations/new": "docs/guide-programmes#automations",
    "/app/campaigns": "docs/guide-programmes#campaigns",
    "/app/unclaimed": "docs/guide-programmes#unclaimed-gifts",
    "/app/notes": "docs/guide-programmes#thank-you-notes",
    "/app/branding": "docs/guide-branding",
    "/app/funding": "docs/guide-money",
    "/app/budgets": "docs/guide-money#budgets",
    "/app/reports": "docs/guide-money#reports",
}


@pytest.fixture(scope="module")
def published(service: Service, start_service: ServiceFactory) -> Service:
    """A service that knows where its documentation is."""
    return start_service(like=service, docs_url=DOCS)


@pytest.mark.parametrize("path", GUIDES)
def test_pages_link_to_their_guide(published: Service, path: str) -> None:
    browser = signed_in(published, "ada@acme.example")
    browser.get(path)
    links = [link for link in browser.links if link.startswith(DOCS)]
    page, _, place = GUIDES[path].partition("#")
    assert f"{DOCS}/{page}.html" + (f"#{place}" if place else "") in links
    for link in links:
        page, _, place = link.removeprefix(f"{DOCS}/").partition("#")
        headings = re.findall(r"^#+ (.+)$", (ROOT / page).with_suffix(".md").read_text(), re.MULTILINE)
        assert not place or place in {heading.lower().replace(" ", "-") for heading in headings}, link


@pytest.mark.parametrize("path", GUIDES)
def test_without_an_address_no_page_links_to_guides(service: Service, path: str) -> None:
    browser = signed_in(service, "ada@acme.example")
    browser.get(path)
    assert not [link for link in browser.links if ".html" in link]
