"""Somebody with a keyboard and nothing else. The focus is looked at wherever it stops: it must be somewhere, and be seen there."""

import re
import time
from typing import Any

import pytest

_MOST_STOPS = 250
_OPENS_S = 30
# Where the focus is: what it is on, what that is called, and why it would not be seen.
_STOP = r"""() => {
  const one = document.activeElement;
  if (!one || one === document.body || one === document.documentElement) return null;
  const said = one.labels?.[0]?.innerText ?? one.getAttribute('aria-label') ?? one.innerText ?? '';
  const stop = { said: said.trim().replace(/\s+/g, ' '), tag: one.tagName, type: one.type ?? '', html: one.outerHTML.slice(0, 160), unseen: '' };
  if (one.tagName === 'IFRAME') return stop;
  const style = getComputedStyle(one), boxes = [...one.getClientRects()];
  const box = boxes.find((box) => box.width && box.height && box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth);
  if (!box || !one.checkVisibility()) return { ...stop, unseen: 'it is not in the window' };
  if (style.outlineStyle === 'none' || parseFloat(style.outlineWidth) < 2) return { ...stop, unseen: 'nothing is drawn round it' };
  const at = document.elementFromPoint(
    (Math.max(box.left, 0) + Math.min(box.right, innerWidth)) / 2, (Math.max(box.top, 0) + Math.min(box.bottom, innerHeight)) / 2);
  const isOnTop = at === one || one.contains(at) || at?.contains(one) || [...one.labels ?? []].some((label) => label.contains(at));
  return { ...stop, unseen: isOnTop ? '' : `it is under ${at?.outerHTML.slice(0, 100)}` };
}"""
_CHOSEN = "document.activeElement.selectedOptions?.[0]?.text ?? ''"


_HAS_ITS_FOCUS = """() => {
    const field = [...document.querySelectorAll("[autofocus]")].find(one => one.checkVisibility());
    return !field || document.activeElement !== document.body;
}"""


class Keys:
    """Goes by Tab from where the focus is, and acts by Enter, Space, arrows and typing."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self._choosers: list[Any] = []
        # Requested from the beginning: a chooser that opens before the browser hands it over is none of ours.
        page.on("filechooser", self._opened)

    def _opened(self, chooser: Any) -> None:
        self._choosers.append(chooser)

    def to(self, said: str, kind: str = "") -> dict[str, str]:
        """Goes on to what is called so (a pattern), of that tag or type where one is named; the focus may go round the page once."""
        rounds, seen = 0, []
        for _ in range(_MOST_STOPS):
            self.page.keyboard.press("Tab")
            stop = self.page.evaluate(_STOP)
            if stop is None:  # the end of the page: the window's own buttons are next
                rounds += 1
                assert rounds < 3, f"{said!r} is not reached on {self.page.url}, only {seen}"
                continue
            assert not stop["unseen"], f"{self.page.url}: {stop['html']}: {stop['unseen']}"
            seen.append(stop["said"][:30])
            if re.search(said, stop["said"]) and kind.upper() in {"", stop["tag"], stop["type"].upper()}:
                return dict(stop)
        pytest.fail(f"{said!r} is not reached on {self.page.url}")

    def press(self, said: str, kind: str = "") -> None:
        """Goes there and presses Enter, and waits for the page it leads to."""
        self.to(said, kind)
        self.enter()

    def enter(self) -> None:
        """Presses Enter where the focus is, and waits for the page it leads to."""
        with self.page.expect_navigation():
            self.page.keyboard.press("Enter")
        self.page.wait_for_load_state()
        # A field with autofocus gets the focus a moment after. Tab before that would take it elsewhere.
        self.page.wait_for_function(_HAS_ITS_FOCUS, polling=20)

    def open(self, said: str) -> None:
        """Goes to what folds, and opens it."""
        self.to(said, "summary")
        self.page.keyboard.press("Enter")

    def menu(self, said: str) -> None:
        """Goes to a page by the menu."""
        self.open("^Menu")
        self.press(f"^{said}$", "a")

    def type(self, said: str, text: str) -> None:
        """Types into a field, in place of what stands there."""
        self.to(said)
        self.retype(text)

    def retype(self, text: str) -> None:
        """Types where the focus is, in place of what stands there."""
        self.page.keyboard.press("Control+A")
        self.page.keyboard.type(text)

    def date(self, said: str, digits: str) -> None:
        """Types a date part by part, in the order that the browser has them in: a day like its month is the same in all."""
        self.to(said)
        self.page.keyboard.type(digits)

    def tick(self, said: str) -> None:
        """Ticks, or unticks."""
        self.to(said, "checkbox")
        self.page.keyboard.press("Space")

    def pick(self, said: str) -> None:
        """Picks one of several, by the arrows."""
        stop = self.to("", "radio")
        self.page.keyboard.press("Space")
        for _ in range(_MOST_STOPS):
            if re.search(said, stop["said"]):
                return
            self.page.keyboard.press("ArrowDown")
            stop = self.page.evaluate(_STOP)
        pytest.fail(f"{said!r} cannot be picked on {self.page.url}")

    def choose(self, said: str, option: str) -> None:
        """Chooses from a list, by the arrows."""
        self.to(said, "select-one")
        self.page.keyboard.press("Home")
        for _ in range(_MOST_STOPS):
            if re.search(option, self.page.evaluate(_CHOSEN)):
                return
            self.page.keyboard.press("ArrowDown")
        pytest.fail(f"{option!r} is none of {said!r} on {self.page.url}")

    def hand_in(self, said: str, name: str, text: str) -> None:
        """Hands in a file: the window's own chooser is opened by Enter."""
        self.to(said, "file")
        self.page.keyboard.press("Enter")
        until = time.monotonic() + _OPENS_S
        while not self._choosers:
            assert time.monotonic() < until, f"no chooser opens for {said!r}"
            self.page.wait_for_timeout(50)
        file = {"name": name, "mimeType": "text/csv", "buffer": text.encode()}
        self._choosers.pop().set_files([file])

    @property
    def focused(self) -> dict[str, str]:
        """Where the focus is."""
        return dict(self.page.evaluate(_STOP) or {"said": "", "unseen": ""})
