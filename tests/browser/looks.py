"""What is wrong with a page as it is seen: what is beyond its edge, cut off, outside of what it belongs to, or broken inside a word."""

import time
from typing import Any
from urllib.parse import urlsplit

from tests.web.console.everything import Walk, route_of, send_gift

NAME = "Donaudampfschifffahrtsgesellschaft & Sons of Llanfairpwllgwyngyll"
WIDTHS = (320, 390, 768, 1280, 1920)
SETTLED_S = 30
UNFOLD = "document.querySelectorAll('main details').forEach((one) => { one.open = true; })"
FOLD = "document.querySelectorAll('main details[name]').forEach((one) => { one.open = false; })"
# What reaches beyond the window's edge and can be scrolled to, innermost.
BEYOND = """() => {
  const edge = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= edge) return [];
  const isCut = (one) => { for (let at = one.parentElement; at && at !== document.body; at = at.parentElement)
    if (getComputedStyle(at).overflowX !== 'visible') return true; return false; };
  const beyond = [...document.body.querySelectorAll('*')].filter((one) => one.checkVisibility() && one.getBoundingClientRect().right > edge + 0.5 && !isCut(one));
  const inner = beyond.filter((one) => !beyond.some((other) => other !== one && one.contains(other)));
  return (inner.length ? inner : [document.body]).map((one) =>
    `${one.outerHTML.slice(0, 160)} up to ${Math.round(one.getBoundingClientRect().right)} px`);
}"""
# What holds more than it is wide: its text is cut off, or stands outside of it. An ellipsis says that something is cut, and is whole elsewhere.
CUT = """() => {
  const isMeant = (one) => { for (let at = one; at && at !== document.body; at = at.parentElement) {
    const style = getComputedStyle(at);
    if (style.textOverflow === 'ellipsis' || style.overflowX === 'auto' || style.overflowX === 'scroll' || style.clipPath !== 'none' || at.matches('svg, select, iframe, input, textarea')) return true;
  } return false; };
  const held = [...document.querySelectorAll('main *, .side *, .bar *')].filter((one) =>
    one.checkVisibility({ visibilityProperty: true }) && one.clientWidth > 0 && one.scrollWidth > one.clientWidth + 1 && !isMeant(one));
  return held.filter((one) => !held.some((other) => other !== one && one.contains(other)))
    .map((one) => `${one.outerHTML.slice(0, 160)} is ${one.clientWidth} px wide and holds ${one.scrollWidth}`);
}"""
# Words that go on in the next line, but for the longest, and those of codes and addresses.
BROKEN = """() => {
  const found = [], walker = document.createTreeWalker(document.querySelector('main') ?? document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (!node.parentElement.checkVisibility({ visibilityProperty: true }) || node.parentElement.closest('.code, code, .secret, .long, svg, option, textarea, .visually-hidden')) continue;
    for (const word of node.data.matchAll(/(?<![\\p{L}\\p{N}@.:\\/_-])\\p{L}{2,14}(?![\\p{L}\\p{N}@.:\\/_-])/gu)) {
      const range = document.createRange();
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      const tops = new Set([...range.getClientRects()].filter((one) => one.width > 0).map((one) => Math.round(one.top)));
      if (tops.size > 1) found.push(`“${word[0]}” is broken in ${node.parentElement.outerHTML.slice(0, 120)}`);
    }
  }
  return found;
}"""
# Buttons of a search in a row of their own, where the window is wide enough for them beside a field, or not level with the field beside them.
ALONE = """() => innerWidth < 360 ? [] : [...document.querySelectorAll('form[role=search] button')].filter((one) => {
  const { bottom } = one.getBoundingClientRect(), fields = [...one.form.querySelectorAll('input:not([type=hidden]), select')];
  return one.checkVisibility() && fields.length && fields.map((field) => field.getBoundingClientRect()).every((field) => Math.abs(field.bottom - bottom) > 1);
}).map((one) => `${one.outerHTML.slice(0, 120)} is not level with a field`)"""
# Buttons that touch the one before them.
CROWDED = """() => [...document.querySelectorAll('main :is(button, .button, .act) + :is(button, .button, .act)')].filter((one) => {
  const at = one.getBoundingClientRect(), before = one.previousElementSibling.getBoundingClientRect();
  return one.checkVisibility() && at.width && before.width && at.left - before.right < 7.5 && at.top - before.bottom < 7.5 && !one.matches('.copy');
}).map((one) => `${one.outerHTML.slice(0, 120)} touches the button before it`)"""
# States without the heading that a card on a phone needs. Where the state is the whole card's, as of an order, it needs none.
NAMELESS = """() => [...document.querySelectorAll('.stacks:not(.orders, .of-recipients) td:not([data-label]) > .state')].map((one) =>
  `${one.outerHTML.slice(0, 120)} has no heading on a phone`)"""
# As people set it who read with difficulty (WCAG 1.4.12).
SPACED = """() => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync('* { line-height: 1.5 !important; letter-spacing: .12em !important; word-spacing: .16em !important; } p { margin-block-end: 2em !important; }');
  document.adoptedStyleSheets = [sheet];
}"""
PLAIN_AGAIN = "document.adoptedStyleSheets = []"
# What tells by its colours what is chosen or how much of something is done, and what it looks like otherwise.
TOLD_BY_COLOUR = """() => {
  const found = { 'progress': (one) => { one.value = one.value ? 0 : one.max; }, '.key': (one) => { one.style.opacity = 0; },
    '.way [aria-current]': (one) => one.removeAttribute('aria-current'), '.windows :checked': (one) => { one.checked = false; } };
  return Object.entries(found).flatMap(([kind, change]) => {
    const one = [...document.querySelectorAll(kind)].find((one) => one.checkVisibility());
    if (!one) return [];
    const shown = one.closest('label') ?? one;
    shown.dataset.told = kind;
    window.otherwise = { ...window.otherwise, [kind]: () => change(one) };
    return [kind];
  });
}"""


def wrong_with(page: Any, width: int) -> list[str]:
    """What is not fit to be seen of a page in a window of that width, beside what axe finds."""
    page.set_viewport_size({"width": width, "height": 900})
    wrong = [f"{one} is beyond the edge" for one in page.evaluate(BEYOND)]
    return (
        wrong
        + page.evaluate(CUT)
        + page.evaluate(BROKEN)
        + page.evaluate(ALONE)
        + page.evaluate(CROWDED)
        + page.evaluate(NAMELESS)
    )


def every_page(demo: Any, admin: dict[str, Any]) -> list[str]:
    """The address of each kind of page, once there is something on it."""
    walk = Walk(demo.reader(admin), NAME)
    sent = [path for codes in (False, True) for path in send_gift(walk.browser, NAME, codes=codes)]
    until = time.monotonic() + SETTLED_S
    reference = sent[-1].split("/")[3]
    while reference not in walk.browser.get("/app/orders").text:
        assert time.monotonic() < until, "the worker lists orders"
        time.sleep(0.2)
    roles = (f"/app/people/{number}/role?role=viewer" for number in range(1, 1000))
    own_role = next(path for path in roles if walk.browser.get(path).status_code == 200)
    walk.go("/app", "/app/customers", "/app/prove?next=%2Fapp", "/app/nothing-there", own_role)
    found: dict[str, str] = {}
    for path in (*sent, *walk.pages):
        page = walk.pages.get(path) or walk.browser.get(path)
        route = route_of("GET", urlsplit(path).path)
        if page.status_code == 200 and "text/html" in page.headers["content-type"] and route is not None:
            found.setdefault(route.path, path)
    return [path for kind, path in found.items() if not kind.endswith(("/mail", "/claim", "{secret}"))]


def unseen_in_high_contrast(page: Any) -> list[str]:
    """What says something by its colour alone once the system has its own colours, as in Windows' high contrast: it looks the same otherwise."""
    page.set_viewport_size({"width": 1280, "height": 900})
    page.evaluate(FOLD)
    page.emulate_media(forced_colors="active")
    unseen = []
    for kind in page.evaluate(TOLD_BY_COLOUR):
        shown = page.locator(f'[data-told="{kind}"]')
        before = shown.screenshot()
        page.evaluate("(kind) => window.otherwise[kind]()", kind)
        unseen += [f"{kind} looks the same in high contrast, whatever it says"] * (shown.screenshot() == before)
    page.emulate_media(forced_colors="none")
    return unseen
