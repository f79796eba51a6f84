"""Every page in a real browser: nothing to find for axe, nothing cut off, nothing on the console, and all of it by keyboard.

By default some of the pages are looked at, in one scheme and width after another; with `EVERY_PAGE=1` all, in both schemes at all three widths.
"""

from __future__ import annotations

import itertools
import os
import re
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from tests.web.console.conftest import Browser
from tests.web.console.everything import Walk, entry_of, send_gift

LOOKS = tuple(itertools.product((390, 768, 1280), ("light", "dark")))
EVERY_PAGE = bool(os.environ.get("EVERY_PAGE"))
AT_ONCE, EACH = (len(LOOKS), 1) if EVERY_PAGE else (1, 5)
NAME = "Donaudampfschifffahrtsgesellschaft & Sons of Llanfairpwllgwyngyll"
SETTLED_S = 30
# Where the focus is seen on each thing that takes it; what it cannot be seen on is named.
FOCUS = """() => {
  const all = [...document.querySelectorAll('a[href], button, input:not([type=hidden]), select, textarea, summary')];
  const unseen = [];
  for (const one of all.filter((one) => one.checkVisibility() && !one.disabled)) {
    one.focus({ focusVisible: true });
    const style = getComputedStyle(one);
    if (document.activeElement !== one || style.outlineStyle === 'none' || parseFloat(style.outlineWidth) < 2) unseen.push(one.outerHTML.slice(0, 120));
  }
  document.activeElement?.blur();
  return unseen;
}"""


class _Service:
    """The demo, as somebody without a browser reaches it."""

    def __init__(self, url: str) -> None:
        self._url = url

    def client(self) -> _Client:
        return _Client(self._url)


class _Client:
    """Opens a connection for each request, so that none is left open."""

    def __init__(self, url: str) -> None:
        self._url = url

    def request(self, method: str, path: str, **extra: Any) -> httpx.Response:
        return httpx.request(method, self._url + path, timeout=30, **extra)


@pytest.fixture(scope="module")
def pages(demo: Any, admin: dict[str, Any]) -> list[str]:
    """The address of each kind of page, once there is something on it."""
    cookies = {one["name"]: one["value"] for one in admin["cookies"]}
    walk = Walk(Browser(_Service(demo.url), cookies=cookies), NAME)  # type: ignore[arg-type]
    sent = [path for codes in (False, True) for path in send_gift(walk.browser, NAME, codes=codes)]
    until = time.monotonic() + SETTLED_S
    reference = sent[-1].split("/")[3]
    while reference not in walk.browser.get("/app/orders").text:
        assert time.monotonic() < until, "the worker lists orders"
        time.sleep(0.2)
    walk.go("/app", "/app/customers", "/app/prove?next=%2Fapp", "/app/nothing-there")
    found: dict[str, str] = {}
    for path in (*sent, *walk.pages):
        page = walk.pages.get(path) or walk.browser.get(path)
        entry = entry_of("GET", urlsplit(path).path)
        if page.status_code == 200 and "text/html" in page.headers["content-type"] and entry is not None:
            found.setdefault(entry.path, path)
    return [path for kind, path in found.items() if not kind.endswith(("/mail", "/claim", "{secret}"))]


def looks() -> Iterator[list[tuple[int, str]]]:
    """How each page in turn is looked at."""
    endless = itertools.cycle(LOOKS)
    while True:
        yield list(itertools.islice(endless, AT_ONCE))


@pytest.mark.timeout(600)
def test_every_page_is_fit_to_be_seen(
    visit: Callable[..., Any], demo: Any, admin: dict[str, Any], pages: list[str]
) -> None:
    one = visit("desktop", "light", name="every-page", storage_state=admin)
    page, axe, wrong = one.page, Axe(), []
    assert len(pages) > 30
    others = ["/", "/docs", "/problems", "/mailbox", "/claim"]
    for path, ways in zip([*pages, *others][::EACH], looks(), strict=False):
        for width, scheme in ways:
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            one.open(demo.url + path)
            where = f"{path} at {width}, {scheme}"
            reach = page.evaluate("document.documentElement.scrollWidth")
            wrong += [f"{where}: {reach} wide"] if reach > width else []
            if path != "/docs" or EVERY_PAGE:  # it is long, and tests/web/api/test_pages.py reads it
                found = axe.run(page, options={"resultTypes": ["violations"]})
                wrong += [f"{where}: {found.generate_report()}"] if found.violations_count else []
            if path.startswith("/app"):
                wrong += [f"{where}: no focus is seen on {unseen}" for unseen in page.evaluate(FOCUS)]
            if EVERY_PAGE:
                one.picture(f"{re.sub(r'[^a-z]+', '-', path)}-{width}-{scheme}")
    assert not wrong, "\n".join(wrong)
    assert one.said == []


class Keys:
    """Somebody with a keyboard and nothing else."""

    def __init__(self, page: Any) -> None:
        self.page = page

    def to(self, name: str) -> None:
        """Goes on from where the focus is to what is called so."""
        for _ in range(80):
            self.page.keyboard.press("Tab")
            if re.search(name, self.page.evaluate(self._NAME) or ""):
                return
        pytest.fail(f"{name} is not reached on {self.page.url}")

    def press(self, name: str) -> None:
        """Goes there and presses Enter, and waits for the page it leads to."""
        self.to(name)
        with self.page.expect_navigation():
            self.page.keyboard.press("Enter")
        self.page.wait_for_load_state()

    def type(self, name: str, text: str) -> None:
        self.to(name)
        self.page.keyboard.type(text)

    _NAME = """(() => { const one = document.activeElement;
      return one?.labels?.[0]?.innerText ?? one?.innerText ?? ''; })()"""


def test_somebody_signs_in_and_sends_a_gift_by_keyboard_alone(
    visit: Callable[..., Any], demo: Any, admin: dict[str, Any]
) -> None:
    email = "keyboard@acme.example"
    cookies = {one["name"]: one["value"] for one in admin["cookies"]}
    inviting = Browser(_Service(demo.url), cookies=cookies)  # type: ignore[arg-type]
    inviting.get("/app/people")
    [link] = re.findall(
        r"/app/link/[\w-]+", inviting.post("/app/people", email=email, name="Kay", role="admin").text
    )
    one = visit("desktop", "light", name="keyboard")
    keys, page = Keys(one.page), one.page
    page.goto(demo.url + link)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip", "first, past what all pages have"
    page.keyboard.press("Enter")
    keys.type("New password", "four plain words here")
    keys.press("Save and sign in")
    page.wait_for_url(re.compile(r"/app(#content)?$"))
    keys.press("Send a gift")
    keys.press("Coffee")
    keys.press("Next: recipients")
    keys.type("One a line", "ada@example.com, Ada")
    keys.press("Take these")
    assert page.get_by_text("All 1 are fine").is_visible()
    keys.press("Next: message")
    keys.type("^Message", "Well done")
    keys.press("Next: when and who pays")
    keys.to("At once")
    keys.to("Acme float")
    page.keyboard.press("Space")
    keys.press("Next: review")
    keys.press("Send 1 gift")
    page.get_by_role("heading", name="Sent").wait_for()
    assert one.said == []
