"""Every page in a real browser: nothing to find for axe, nothing cut off, nothing on the console, and the focus seen on what takes it.

CI looks at every third page, `make test-long` at the others. Each is looked at in one scheme and width, by turns, and where many articles are alike, at the colours of one of each kind; with `EVERY_PAGE=1` in both schemes at all four widths, with pictures.
"""

import itertools
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest
from axe_playwright_python.base import AxeResults
from axe_playwright_python.sync_playwright import Axe
from tests.browser.conftest import AXE_OPTIONS, EVERY_PAGE, Visits
from tests.browser.looks import (
    BEYOND,
    CUT,
    FOLD,
    NAME,
    PLAIN_AGAIN,
    SPACED,
    UNFOLD,
    WIDTHS,
    every_page,
    unseen_in_high_contrast,
    wrong_with,
)

PARTS = 3
LOOKS = tuple(itertools.product(WIDTHS, ("light", "dark")))
# Leaves of many articles those that have a tag or class which none before them has: no other has colours of its own.
THIN = """() => {
  const seen = new Set();
  for (const article of document.querySelectorAll('article')) {
    const kinds = [article, ...article.querySelectorAll('*')].map((one) => `${one.tagName} ${one.className}`);
    if (kinds.every((kind) => seen.has(kind))) article.remove();
    else kinds.forEach((kind) => seen.add(kind));
  }
}"""
MANY_ARTICLES = 20
COLOURS = [
    "color-contrast",
    "color-contrast-enhanced",
    "link-in-text-block",
]  # rules that take a minute on a page of 60 articles, all others seconds
# Where the focus is seen on each thing that takes it; what it cannot be seen on is named.
FOCUS = """() => {
  const all = [...document.querySelectorAll('a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex="0"]')];
  const unseen = [];
  for (const one of all.filter((one) => one.checkVisibility() && !one.matches(':disabled'))) {
    one.focus({ focusVisible: true });
    const drawn = getComputedStyle(one).opacity === '0' && one.labels?.[0] || one, style = getComputedStyle(drawn);
    if (document.activeElement !== one || style.outlineStyle === 'none' || parseFloat(style.outlineWidth) < 2) unseen.push(one.outerHTML.slice(0, 120));
  }
  document.activeElement?.blur();
  return unseen;
}"""

# What can be used, by its role in the accessibility tree: a screen reader says its name.
CONTROLS = {"button", "checkbox", "combobox", "DisclosureTriangle", "link", "menuitem", "radio", "searchbox", "spinbutton", "textbox", "Date", "DateTime"}  # fmt: skip
MOST_ALIKE = 3  # buttons of one name on a page


@pytest.fixture(scope="module")
def pages(demo: Any, admin: dict[str, Any]) -> list[str]:
    return every_page(demo, admin)


class Look:
    """Looks at pages, each of which is loaded once: what is wrong with it in one width and scheme after another."""

    def __init__(self, page: Any) -> None:
        self._page = page
        self._axe = Axe()

    def open(self, url: str) -> None:
        """Loads a page."""
        self._page.goto(url)
        self._page.evaluate(self._axe.axe_script)

    def unnamed(self) -> list[str]:
        """The controls that a list of them, as screen readers give it, has no name for, or the same for many."""
        session = self._page.context.new_cdp_session(self._page)
        nodes = session.send("Accessibility.getFullAXTree")["nodes"]
        session.detach()
        roles = ((one.get("role", {}).get("value"), one.get("name", {}).get("value")) for one in nodes)
        controls = Counter((role, name) for role, name in roles if role in CONTROLS)
        alike = [(one, count) for one, count in controls.items() if one[0] == "button" and count > MOST_ALIKE]
        return [f"no name for {role}" for role, name in controls if not name] + [
            f"{count} times {role} {name}" for (role, name), count in alike
        ]

    def at(self, width: int, scheme: str, *, again: bool) -> list[str]:
        """What is not fit to be seen. In another scheme `again`, only what colours change is looked at once more."""
        self._page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        self._page.evaluate(FOLD)
        wrong = wrong_with(self._page, width)
        self._page.evaluate(SPACED)
        wrong += [f"{one} with more space in texts" for one in self._page.evaluate(BEYOND) + self._page.evaluate(CUT)]
        self._page.evaluate(PLAIN_AGAIN)
        self._page.evaluate(UNFOLD)
        wrong += [f"{one} is beyond the edge when it is unfolded" for one in self._page.evaluate(BEYOND)]
        wrong += [f"no focus is seen on {one}" for one in self._page.evaluate(FOCUS)]
        if again:
            return wrong + self._found(runOnly=["color-contrast", "color-contrast-enhanced"])
        if EVERY_PAGE or self._page.locator("article").count() < MANY_ARTICLES:
            return wrong + self._found(rules={"color-contrast-enhanced": {"enabled": True}})
        wrong += self._found(rules={rule: {"enabled": False} for rule in COLOURS})
        self._page.evaluate(THIN)
        return wrong + self._found(runOnly=COLOURS)

    def _found(self, **options: Any) -> list[str]:
        found = AxeResults(self._page.evaluate("(options) => axe.run(options)", AXE_OPTIONS | options))
        return [found.generate_report()] if found.violations_count else []


def wrong_on(one: Any, look: Look, site: str, paths: Iterable[str]) -> list[str]:
    """What is not fit to be seen on pages of a site: on each in one width and scheme by turns, or in all with `EVERY_PAGE`."""
    wrong = []
    for path, turn in zip(paths, itertools.cycle(LOOKS), strict=False):
        look.open(site + path)
        wrong += [f"{path}: {what}" for what in look.unnamed() if path != "/docs" or "times" not in what]
        for width, scheme in LOOKS if EVERY_PAGE else (turn,):
            found = look.at(width, scheme, again=EVERY_PAGE and scheme != "light")
            wrong += [f"{path} at {width}, {scheme}: {what}" for what in found]
            if EVERY_PAGE:
                one.picture(f"{re.sub(r'[^a-z]+', '-', path)}-{width}-{scheme}")
        wrong += [f"{path}: {what}" for what in unseen_in_high_contrast(one.page)]
    return wrong


@pytest.mark.slow
@pytest.mark.timeout(1800 if EVERY_PAGE else 600)
@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.long) for part in range(1, PARTS))])
def test_every_page_is_fit_to_be_seen(
    visit: Visits, demo: Any, admin: dict[str, Any], pages: list[str], part: int
) -> None:
    one = visit("desktop", "light", name="every-page", storage_state=admin)
    look = Look(one.page)
    one.page.set_content("<button aria-label=''></button>")
    assert look.unnamed(), "what it is to find"
    assert len(pages) > 30
    others = ["/", "/docs", "/problems", "/mailbox", "/claim"]
    wrong = wrong_on(one, look, demo.url, [*pages, *others][part::PARTS])
    assert not wrong, "\n".join(wrong)
    assert one.said == []


@pytest.mark.slow
@pytest.mark.parametrize("locale", ["fr-FR", "de-DE"])
def test_long_amounts_stay_in_their_cards(visit: Visits, demo: Any, admin: dict[str, Any], locale: str) -> None:
    page = visit("desktop", "light", storage_state=admin, locale=locale).page
    for path in ("/app", "/app/reports", "/app/funding"):
        page.goto(demo.url + path)
        assert page.locator("html").get_attribute("lang") == locale[:2]
        assert [wrong for width in WIDTHS for wrong in wrong_with(page, width)] == []


@pytest.mark.slow
def test_a_gift_with_a_long_word_in_its_name_stays_in_its_card(visit: Visits, demo: Any, admin: dict[str, Any]) -> None:
    page = visit("desktop", "light", storage_state=admin).page
    for path in ("/app/send", "/app/catalogue", "/app/collections"):
        page.goto(demo.url + path)
        page.evaluate(
            "(name) => document.querySelectorAll('.card strong').forEach((one) => { one.textContent = name; })", NAME
        )
        assert [wrong for width in WIDTHS for wrong in wrong_with(page, width)] == [], path


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_text_of_twice_the_size_stays_in_the_window(
    visit: Visits, demo: Any, admin: dict[str, Any], width: int
) -> None:
    page = visit("desktop", "light", storage_state=admin, viewport={"width": width, "height": 900}).page
    page.context.new_cdp_session(page).send("Page.setFontSizes", {"fontSizes": {"standard": 32, "fixed": 26}})
    for path in ("/app/funding", "/app/webhooks", "/app/budgets", "/app/branding"):
        page.goto(demo.url + path)
        assert page.evaluate(BEYOND) == [], path


def test_a_phone_shows_the_reference_without_scrolling_sideways(visit: Visits, demo: Any) -> None:
    page = visit("phone", "light").page
    page.goto(demo.url + "/docs")
    wide = "(all) => all.filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.ariaLabel)"
    assert page.locator(".reference .scroll").evaluate_all(wide) == []
    meanings = page.locator(".reference td:last-child")
    assert meanings.evaluate_all("(all) => Math.min(...all.map((one) => one.offsetWidth))") > 300
