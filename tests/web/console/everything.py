"""Every page of the web application, reached as people reach it: by links, once everything that can be made there has been made.

A page that nothing leads to is named by `walk`'s callers, so that none is forgotten when one is added.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from html import unescape
from html.parser import HTMLParser
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
from tests.catalogue.images import png
from tests.web.console.conftest import Browser

from largesse.web.console.page_routes import PageRoute
from largesse.web.console.routes import ROUTES
from largesse.web.console.sign_in import nothing

# Forms that end what is there, or whose page is their own test's.
LEFT_OUT = re.compile(r"/app/(sign-in|sign-out|forgot|customers|environment|second-step|prove|link|security)\b")
# What a field may be that is not taken as the text that is everywhere.
PLAIN = {
    "name": "Another",
    "colour": "#8a4210",
    "paper": "#8a4210",
    "ribbon": "#f6c453",
    "birthday": "14/03",
    "start_date": "2024-03-01",
    "amount": "25",
    "value": "25",
    "product": "1",
    "url": "https://hooks.example/largesse",
    "quantity": "2",
    "limit": "100000",
    "above": "100000",
    "days": "7",
    "gifts": "3",
    "domains": "acme.example",
}


@dataclass
class Field:
    """A field of a form, as a browser would send it."""

    name: str
    kind: str
    value: str = ""
    is_required: bool = False
    most: int = 10_000
    is_open: bool = False  # the limit is for the server alone
    options: list[str] = field(default_factory=list)


@dataclass
class Form:
    """A form of a page."""

    path: str
    fields: list[Field] = field(default_factory=list)

    def filled(self, text: str, number: int) -> dict[str, str]:
        """Every field filled in, with that text where any is taken."""
        return {one.name: self._value(one, text, number) for one in self.fields if one.name}

    def _value(self, one: Field, text: str, number: int) -> str:
        if one.name.startswith("was_"):
            return one.value  # what the field showed, which may be nothing
        if one.kind in {"hidden", "radio", "number", "date", "datetime-local", "checkbox"}:
            return one.value or "1"
        if one.kind == "email":
            return f"walk{number}@example.com"
        if one.kind == "select":
            return one.value or next((option for option in one.options if option), "")
        return PLAIN["url"] if one.kind == "url" else text[: one.most]


class Forms(HTMLParser):
    """The forms of a page that are posted."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[Form] = []
        self._form: Form | None = None
        self._select: Field | None = None
        # Of a page of a thousand links only what is parsed that may be a form.
        self.feed("".join(re.findall(r"<form\b.*?</form>", html, re.DOTALL)))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "form":
            self._form = Form(given.get("action") or "") if given.get("method") == "post" else None
        elif self._form is None or "disabled" in given:
            return
        elif tag == "option" and self._select is not None:
            self._select.options.append(given.get("value") or "")
            if "selected" in given:
                self._select.value = given.get("value") or ""
        elif tag in {"input", "textarea", "select"}:
            self._take(tag, given, self._form)

    def _take(self, tag: str, given: dict[str, str | None], form: Form) -> None:
        kind = (given.get("inputmode") or given.get("type") or "text") if tag == "input" else tag
        name = given.get("name") or ""
        is_known = any(one.name == name for one in form.fields)
        if kind == "submit" or (kind in {"checkbox", "radio"} and (is_known or "checked" not in given)):
            return
        most = int(given.get("data-most") or given.get("maxlength") or 10_000)
        one = Field(name, kind, given.get("value") or "", "required" in given, most, "data-most" in given)
        form.fields.append(one)
        self._select = one if tag == "select" else None

    def handle_endtag(self, tag: str) -> None:
        if tag == "form" and self._form is not None:
            self.found.append(self._form)
            self._form = None


@cache
def _shapes() -> list[tuple[PageRoute, re.Pattern[str]]]:
    """The routes in the order of the table, and what the paths of each look like."""
    patterns = (re.sub(r"\\{\w+:int\\}", r"\\d+", re.escape(route.path)) for route in ROUTES)
    return [
        (route, re.compile(re.sub(r"\\{\w+\\}", "[^/]+", one))) for route, one in zip(ROUTES, patterns, strict=True)
    ]


@cache
def route_of(method: str, path: str) -> PageRoute | None:
    """The route of the table that an address belongs to, the first that fits, as the router finds it; None for one that is of no page."""
    return next((route for route, shape in _shapes() if route.method == method and shape.fullmatch(path)), None)


@dataclass
class Walk:
    """Somebody who opens every page there is a link to, and fills in each form that makes something."""

    browser: Browser
    text: str  # that is typed wherever any is taken
    pages: dict[str, httpx.Response] = field(default_factory=dict)  # by address, each kind once
    made: list[tuple[str, int]] = field(default_factory=list)  # the forms that were sent, and what came of each
    _kinds: set[Any] = field(default_factory=set)
    _waiting: list[str] = field(default_factory=list)

    def go(self, *starts: str) -> None:
        """Everything that can be reached from there."""
        self._waiting += starts
        while self._waiting:
            self._open(self._waiting.pop(0))

    def unseen(self) -> set[str]:
        """The pages that were not reached."""
        seen = {route.path for path in self.pages if (route := route_of("GET", urlsplit(path).path))}
        return {route.path for route in ROUTES if route.method == "GET" and route.handler is not nothing} - seen

    def _open(self, path: str) -> None:
        parts = urlsplit(path)
        route = route_of("GET", parts.path)
        kind = (route and route.path, tuple(sorted(name for name, _ in parse_qsl(parts.query))))
        if route is None or kind in self._kinds:
            return
        self._kinds.add(kind)
        page = self.browser.get(path)
        if page.is_redirect:
            self._waiting.append(page.headers["location"])
            return
        self.pages[path] = page
        if not page.headers["content-type"].startswith("text/html"):
            return
        links, made = self.browser.links, len(self.made)
        for form in Forms(page.text).found:
            self._make(form, path)
        if len(self.made) > made:
            self.browser.get(path)
            links = self.browser.links
        self._waiting += [link for link in map(unescape, links) if link.startswith("/app")]

    def _make(self, form: Form, path: str) -> None:
        """Fills a form in that makes something new: one that is about nothing there is yet."""
        route = route_of("POST", form.path)
        if route is None or "{" in route.path or LEFT_OUT.match(form.path) or ("POST", route.path) in self._kinds:
            return
        self._kinds.add(("POST", route.path))
        number = len(self.made) + 1
        values = form.filled(self.text, number)
        answer = self._send(form, path, values)
        if answer.status_code == 422:
            wrong = set(re.findall(r'id="([\w-]+)-error"', answer.text))
            values |= {name: PLAIN.get(name, "") for name in wrong}
            answer = self._send(form, path, values)
        self.made.append((form.path, answer.status_code))
        if answer.is_redirect:
            self._waiting.append(answer.headers["location"])
        elif answer.status_code == 200:
            self.pages[f"{form.path}#made"] = answer
            self._waiting += re.findall(r"(/app/link/[\w-]+)", answer.text)

    def _send(self, form: Form, path: str, values: dict[str, str]) -> httpx.Response:
        self.browser.get(path)
        values = {**values, "token": self.browser.token}
        pictures = {one.name for one in form.fields if one.name in {"logo", "picture"}}
        for name in pictures:
            del values[name]
            return self.browser.upload(form.path, png(), field=name, **values)
        if any(one.kind == "file" for one in form.fields):
            cell = self.text.replace('"', '""')
            sheet = f'email,name\nwalk@example.com,"{cell}"\nnobody,"{cell}"\n'
            return self.browser.upload(form.path, sheet.encode(), **values)
        return self.browser.post(form.path, **values)


def ask_approval(browser: Browser, approver: int, text: str) -> str:
    """The page of a send that waits for approval by somebody else."""
    browser.get("/app/approvals/rules")
    rule = {"name": text, "role": "anybody", "above": "", "currency": "GBP", "needed": "1", "days": "7"}
    assert browser.post("/app/approvals/rules", **rule, approver=str(approver)).status_code == 303
    *_, path = (path for path in send_gift(browser, text, codes=True, asks=True) if "/approvals/" in path)
    rule_id = re.findall(r"/app/approvals/rules/(\d+)/end", browser.get("/app/approvals/rules").text)[0]
    assert browser.post(f"/app/approvals/rules/{rule_id}/end").status_code == 303
    return path


def send_gift(browser: Browser, text: str, *, codes: bool = False, asks: bool = False) -> Iterator[str]:
    """The pages of a gift that is put together and sent, or asked to be approved, each as it comes."""
    cell = '"' + text.replace('"', '""') + '"'
    browser.get("/app/send")
    yield "/app/send"
    gift = next(unescape(link) for link in browser.links if link.startswith("/app/send/gift?"))
    yield gift
    [form] = [one for one in Forms(browser.get(gift).text).found if one.path == "/app/send/gift"]
    path = browser.post(form.path, **form.filled("10", 1)).headers["location"].rpartition("/")[0]
    browser.get(f"{path}/recipients")
    if codes:
        assert browser.post(f"{path}/codes", quantity="3").status_code == 303
    else:
        browser.post(f"{path}/recipients", rows=f"email,name\nno address,{cell}\nada@example.com,{cell}")
        yield f"{path}/recipients"
        yield f"{path}/rows-to-fix.csv"
        browser.submit(f"{path}/recipients", f"{path}/start-over")
        browser.submit(f"{path}/recipients", rows=f"email,name\nada@example.com,{cell}")
    browser.submit(f"{path}/message", wrapping_key="gold", from_name=text[:32], message=text, then="on")
    yield from (f"{path}/{part}" for part in ("message", "mail", "claim", "delivery"))
    account = re.findall(r'name="account" value="(\d+)"', browser.get(f"{path}/delivery").text)[0]
    browser.post(f"{path}/delivery", when="now", account=account, reference=f"{text[:20]} {path[-6:]}")
    yield f"{path}/review"
    page = browser.get(f"{path}/review")
    [form] = [one for one in Forms(page.text).found if one.path.endswith("/ask" if asks else "/place")]
    placed = browser.post(form.path, **form.filled("", 1))
    assert placed.status_code == 303, placed.text
    yield placed.headers["location"]
    if asks:
        return
    if codes:
        yield f"{path}/codes"
        yield f"{path}/codes.csv"
    else:  # only an order with mail leads there
        yield f"/app/orders/{path.rpartition('/')[2]}/resend-unclaimed"
