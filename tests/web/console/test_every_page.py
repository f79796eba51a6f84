"""Every page there is, reached by its links: light, under a policy without exceptions, and what anybody typed is text in it.

`everything` makes what can be made, with the same text wherever any is taken; a page that nothing leads to fails here.
"""

import gzip
import json
import re
from collections.abc import Iterator
from html import unescape

import httpx
import pytest
from tests.web.api.conftest import RICH_WORLD, Service
from tests.web.console.conftest import Browser, SignIn, signed_in
from tests.web.console.everything import Forms, Walk, ask_approval, route_of, send_gift
from tests.web.console.orders import work
from tests.web.console.test_security import enter, set_up, with_password

MARK = "\"'><b id=evil>&"
RAW = ("<b id=evil>", "\"'>", "'><")
MOST_FIRST, MOST_LATER = 60_000, 15_000  # bytes, compressed, of a page with and without what is loaded once


def marked(world: str) -> str:
    """The world with the mark in every name and message that people see."""
    return re.sub(r"\b(name|message): ([^,}\n]+)", lambda said: f"{said[1]}: {_marked(said[2])}", world)


def _marked(text: str) -> str:
    return json.dumps(f"{text.strip()} {MARK}")


# Initech is invoiced, and sees what it owes.
WORLD = marked(
    RICH_WORLD.replace(
        "    funding: invoiced\n",
        "    funding: invoiced\n    users:\n      - {email: ina@initech.example, name: Ina, role: admin}\n",
    )
)


@pytest.fixture(scope="module")
def walk(service: Service) -> Walk:
    """An administrator who has seen everything, with the mark typed wherever something may be."""
    for members in ({"codeQuantity": 2}, {"recipients": [{"email": "ada@example.com", "name": MARK}]}):
        said = {"message": MARK, "fromName": MARK, "externalReference": f"{MARK} {'codeQuantity' in members}"}
        assert service.send("gift", "coffee", value=10, **said, **members).status_code == 200
    walk = Walk(signed_in(service, "ada@acme.example"), MARK)
    for codes in (False, True):
        for path in send_gift(walk.browser, MARK, codes=codes):
            walk.pages[path] = walk.browser.get(path)
    [[cem_id]] = service.sql("SELECT id FROM users WHERE email = 'cem@acme.example'")
    path = ask_approval(walk.browser, cem_id, MARK)
    walk.pages[path] = walk.browser.get(path)
    work(service)
    [[ada_id]] = service.sql("SELECT id FROM users WHERE email = 'ada@acme.example'")
    own_role = f"/app/people/{ada_id}/role?role=viewer"
    walk.go("/app", "/app/forgot", "/app/customers", "/app/prove?next=%2Fapp", own_role)
    walk.go(*links_with_deliveries(walk))
    walk.browser.get("/app/campaigns")  # once one was set
    walk.go(*(link for link in walk.browser.links if re.fullmatch(r"/app/campaigns/\d+", link)))
    outside = Walk(Browser(service), MARK)
    outside.go("/app/sign-in")
    set_up(service, with_password(service, "cem@acme.example"))
    between = Walk(enter(service, "cem@acme.example"), MARK)
    between.go("/app/second-step")
    assert service.send("gift", "coffee", key="initech", account=None, value=10).status_code == 200
    invoiced = Walk(signed_in(service, "ina@initech.example"), MARK)
    invoiced.go("/app/funding")
    walk.pages |= outside.pages | between.pages | invoiced.pages
    return walk


def links_with_deliveries(walk: Walk) -> list[str]:
    """Where the page of a webhook leads to once something was sent there."""
    page = next(path for path in walk.pages if re.fullmatch(r"/app/webhooks/[\w-]+", path))
    walk.browser.get(page)
    assert walk.browser.post(f"{page}/test").status_code == 303
    walk.browser.get(page)
    return walk.browser.links


def html_of(walk: Walk) -> Iterator[tuple[str, httpx.Response]]:
    """The pages that are HTML; frames, which show what others will see, are none of the application's own."""
    for path, page in walk.pages.items():
        is_frame = path.partition("?")[0].endswith(("/mail", "/claim"))
        if page.headers["content-type"].startswith("text/html") and not is_frame:
            yield path, page


def _every_page_is_reached_and_every_form_that_makes_something_is_taken(walk: Walk) -> None:
    assert walk.unseen() == set(), "no page leads to these: link them, or take them from the routes"
    assert {path: page.status_code for path, page in walk.pages.items() if page.status_code != 200} == {}
    refused = [(path, status) for path, status in walk.made if status >= 400]
    assert not refused, "the walk does not know how to fill these in: say it in `PLAIN`"
    assert len(walk.made) >= 5


def _what_anybody_typed_is_text(walk: Walk) -> None:
    shown = 0
    for path, page in walk.pages.items():
        if page.headers["content-type"].startswith("text/html"):
            for raw in RAW:
                assert raw not in page.text, path
            shown += "b id=evil" in page.text
    assert shown > len(walk.pages) / 2, "the text is seen on most pages"


def _no_policy_has_an_exception_and_nobody_frames_a_page(walk: Walk) -> None:
    for path, page in walk.pages.items():
        policy = page.headers["content-security-policy"]
        assert "unsafe-" not in policy, path
        assert "default-src 'none'" in policy, path
        assert "*" not in policy, path
        assert "base-uri 'none'" in policy, path
    for path, page in html_of(walk):
        assert "frame-ancestors 'none'" in page.headers["content-security-policy"], path
        assert page.headers["x-frame-options"] == "DENY", path
        assert page.headers["cache-control"] == "no-store", path
        assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=|\sstyle=|<style", page.text), path


def _pages_are_light(walk: Walk) -> None:
    kept: dict[str, int] = {}
    for path, page in html_of(walk):
        own = len(gzip.compress(page.content))
        assert own <= MOST_LATER, (path, own)
        for asset in set(re.findall(r'(?:href|src)="(/app/assets/[^"]+)"', page.text)):
            if asset not in kept:
                kept[asset] = len(gzip.compress(walk.browser.get(asset).content))
        first = own + sum(size for asset, size in kept.items() if asset in page.text)
        assert first <= MOST_FIRST, (path, first)


def _pages_are_built_alike(walk: Walk) -> None:
    """What those need who listen to a page, or go through it by keyboard."""
    otherwise_called: dict[str, tuple[str, str]] = {}  # what a page is about, and what tabs and the history call it
    for path, page in html_of(walk):
        text = page.text
        assert text.count("<h1") == 1, path
        title, heading = (re.findall(rf"<{tag}\b[^>]*>(.*?)</{tag}>", text, re.DOTALL)[0] for tag in ("title", "h1"))
        said = " ".join(unescape(re.sub(r'<(\w+)[^>]* aria-hidden="true".*?</\1>|<[^>]+>', "", heading)).split())
        if said not in unescape(title):
            otherwise_called[path] = (said, title)
        assert '<html lang="en" dir="ltr"' in text, path
        assert re.search(r'<body>\s*<a class="skip" href="#content">', text), path
        assert '<main id="content"' in text, path
        assert not re.search(r'tabindex="[1-9]', text), f"{path} has an order of its own"
        ids = re.findall(r'\sid="([^"]+)"', text)
        assert len(ids) == len(set(ids)), (path, sorted(one for one in ids if ids.count(one) > 1))
        assert "<title>Error" not in text, f"{path} was not refused"
        for form in re.findall(r'<form[^>]*method="post".*?</form>', text, re.DOTALL):
            assert 'name="token"' in form, path
        for link in re.findall(r'(?:href|src|action)="([^"]*)"', text):
            assert link.startswith(("/app", "#", "?", "/pictures/", "/docs")) or not link, f"{path} leads to {link}"
    assert not otherwise_called


def _a_refusal_is_heard(text: str) -> None:
    """The title says it, each error belongs to what it is about, and the first of the page has the focus."""
    assert "<title>Error: " in text
    errors = re.findall(r'<\w+ class="error" id="([\w-]+)"', text)
    for error in errors:
        assert re.search(rf'aria-describedby="[^"]*\b{error}\b|id="{error}" role="alert"', text), error
    [focused] = re.findall(r"<\w+\b[^>]*\sautofocus[^>]*>", text)
    assert errors[0] in focused, f"{errors} of a page, but the focus is on {focused}"


def _too_long_a_text_is_refused_and_stays_whole(walk: Walk) -> None:
    """Browsers would cut the end off what is pasted, so pages do not have them enforce a limit."""
    tried = set()
    for path, seen in html_of(walk):
        for form in Forms(seen.text).found if "data-most" in seen.text else ():
            for one in (one for one in form.fields if one.kind in {"text", "email"} and one.is_open):
                key = route_of("POST", form.path), one.name
                forms = Forms(walk.browser.get(path).text).found if key not in tried else []
                same = [
                    now
                    for now in forms
                    if now.path == form.path and {"token", one.name} <= {x.name for x in now.fields}
                ]
                if not same:
                    continue
                tried.add(key)
                long = "x" * one.most + "@example.com" * (one.kind == "email")
                answer = walk.browser.post(form.path, **same[0].filled(MARK, 1) | {one.name: f"{long}x"})
                assert answer.status_code == 422, (path, one.name)
                assert f"{long}x" in answer.text, (path, one.name)
                _a_refusal_is_heard(answer.text)
    assert len(tried) > 30


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_every_page(walk: Walk) -> None:
    """One test, since each of pytest's processes that has one of these would walk through all pages."""
    _every_page_is_reached_and_every_form_that_makes_something_is_taken(walk)
    _what_anybody_typed_is_text(walk)
    _no_policy_has_an_exception_and_nobody_frames_a_page(walk)
    _pages_are_light(walk)
    _pages_are_built_alike(walk)
    _too_long_a_text_is_refused_and_stays_whole(walk)


@pytest.mark.slow
@pytest.mark.sampled(2)
@pytest.mark.parametrize("wrong", ["", "0" * 40])
def test_no_form_is_taken_without_a_token_of_ours(service: Service, sign_in: SignIn, wrong: str) -> None:
    from largesse.web.console.routes import ROUTES

    browser = sign_in("ada@acme.example")
    before = service.state(), service.sql("SELECT count(*) FROM audit_events")
    for route in ROUTES:
        path = re.sub(r"\{\w+(:\w+)?\}", "1", route.path)
        if route.method == "POST" and not route.takes_files:
            assert browser.post(path, token=wrong).status_code == 403, path
    assert (service.state(), service.sql("SELECT count(*) FROM audit_events")) == before
    assert browser.get("/app").status_code == 200, "nor does it sign anybody out"


@pytest.mark.slow
def test_addresses_are_told_from_each_other() -> None:
    assert (route := route_of("GET", "/app/funding/12")) is not None
    assert route.path == "/app/funding/{account:int}"
    assert (route := route_of("GET", "/app/funding/top-ups/RF12")) is not None
    assert route.path == "/app/funding/top-ups/{reference}"
