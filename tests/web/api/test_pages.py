"""The pages: whole, safe by their headers, without a dead link; the samples they show can be run."""

from __future__ import annotations

import html
import json
import re
import shlex
from html.parser import HTMLParser
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

import httpx
import pytest
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po
from tests.web.api.test_keys_meanwhile import contact_of

import largesse.web.docs
from largesse.base.i18n.languages import LANGUAGES
from largesse.web.api.openapi.document import build_document
from largesse.web.api.routes import OPERATIONS
from largesse.web.docs.pages import read_sections
from largesse.web.kit.problems import PROBLEMS

if TYPE_CHECKING:
    from conftest import Service

PAGES = ["/", "/docs", "/problems", *(f"/problems/{problem.slug}" for problem in PROBLEMS)]
ASSETS = {"/docs/style.css": "text/css", "/docs/icon.svg": "image/svg+xml", "/openapi.json": "application/json"}
VOID = {"meta", "link", "img", "input", "br"}


class Page(HTMLParser):
    """A page's ids, links and text; raises when its elements do not nest."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.loads: list[str] = []
        self.tags: list[str] = []
        self._open: list[str] = []
        self.feed(source)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.append(tag)
        if tag not in VOID:
            self._open.append(tag)
        if given.get("id"):
            self.ids.append(given["id"] or "")
        if tag == "a":
            self.links.append(given["href"] or "")
        elif address := given.get("src") or given.get("href"):
            self.loads.append(address)
        assert not any(name.startswith("on") or name == "style" for name in given)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag


@pytest.mark.sampled(5)
@pytest.mark.parametrize("path", PAGES)
def test_pages_need_no_key_and_no_script(service: Service, path: str) -> None:
    answer = service.client().get(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    page = Page(answer.text)
    assert not {"script", "style", "iframe", "form", "object"} & set(page.tags)
    assert page.loads
    assert all(address.startswith("/") for address in page.loads)
    assert len(page.ids) == len(set(page.ids))
    assert page.tags.count("h1") == page.tags.count("main") == page.tags.count("title") == 1


def test_the_landing_page_speaks_the_language_of_the_browser(service: Service) -> None:
    pages = {}
    for tag in LANGUAGES:
        answer = service.client().get("/", headers={"Accept-Language": f"{tag}-CH,en;q=0.1"})
        assert f'<html lang="{tag}">' in answer.text
        assert answer.headers["vary"] == "Accept-Language, Accept-Encoding"
        pages[tag] = answer.text
    assert "Haben Sie ein Geschenk bekommen?" in pages["de"]
    assert len({len(text) for text in pages.values()}) == len(LANGUAGES)
    other = service.client().get("/", headers={"Accept-Language": "ja"})
    assert other.text == service.client().get("/").text == pages["en"]


@pytest.mark.parametrize("tag", [tag for tag in LANGUAGES if tag != "en"])
def test_the_landing_page_is_translated_as_a_whole(tag: str) -> None:
    folder = Path(largesse.web.docs.__file__).parent
    texts = {text for *_, text, _, _ in extract_from_dir(str(folder), [("**.html", "jinja2.ext.babel_extract")])}
    with (folder / "locale" / f"{tag}.po").open("rb") as file:
        said = {message.id: message.string for message in read_po(file, locale=tag) if message.id}
    assert said.keys() == texts
    assert all(said.values())
    bare = re.sub(
        r"\{%-?\s*trans.*?endtrans\s*%\}|\{[{%].*?[%}]\}|<[^>]*>", " ", (folder / "templates/landing.html").read_text()
    )
    assert set(bare.split()) == {"Largesse", "Largesse:"}


@pytest.mark.parametrize("path", [*PAGES, *ASSETS])
def test_pages_carry_their_policy(service: Service, path: str) -> None:
    headers = service.client().get(path).headers
    policy = dict(rule.strip().split(" ", 1) for rule in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert "script-src" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-request-id"]


@pytest.mark.parametrize("path", ASSETS)
def test_assets_have_their_type(service: Service, path: str) -> None:
    answer = service.client().get(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"].split(";")[0] == ASSETS[path]


def test_no_link_is_dead(service: Service) -> None:
    client = service.client()
    pages = {path: Page(client.get(path).text) for path in PAGES}
    statuses: dict[str, int] = {}  # by address: most pages link to the same others
    for path, page in pages.items():
        for link in page.links:
            target, _, fragment = urljoin(path, link).partition("#")
            if target not in statuses:
                statuses[target] = client.get(target, follow_redirects=True).status_code
            assert statuses[target] == 200, link
            if fragment:
                assert fragment in pages[target].ids, link


def test_other_methods_and_addresses_are_problems_and_pages_in_a_browser(service: Service) -> None:
    client = service.client()
    for answer, status in (
        (client.post("/docs"), 405),
        (client.get("/problems/no-such"), 404),
        (client.get("/docs/"), 404),
        (client.get("/docs/../settings.py"), 404),
        (client.get("/docs/reference.html"), 404),
    ):
        assert answer.status_code == status
        assert answer.headers["content-type"] == "application/problem+json"
        browser = {"Accept": "text/html,*/*;q=0.8", "Accept-Language": "de"}
        shown = client.request(answer.request.method, answer.request.url, headers=browser)
        assert shown.status_code == status
        assert "text/html" in shown.headers["content-type"]
        assert shown.headers.get("allow") == answer.headers.get("allow")
        assert shown.headers["referrer-policy"] == "no-referrer", "a mistyped link may hold a code"
        assert '<html lang="de">' in shown.text
        assert Page(shown.text).tags.count("h1") == 1
    for path, start in (("/docs", "/"), ("/apples", "/"), ("/app/orders", "/app"), ("/office", "/office")):
        shown = client.put(path, headers={"Accept": "text/html"})
        assert f'<a href="{start}">Go to the start page</a>' in shown.text
        assert ("Were you given a gift?" in shown.text) == (start == "/"), "staff were given none"
    connection = HTTPConnection(urlsplit(service.url).netloc)
    connection.request("OPTIONS", "*", headers={"Accept": "text/html"})
    assert b"Go to the start page" in connection.getresponse().read(), "an address without a slash"
    connection.close()
    assert client.post("/docs").headers["allow"] == "GET, HEAD"
    assert client.put("/claim").headers["allow"] == "GET, HEAD, POST"
    head = client.head("/docs")
    assert (head.status_code, head.content) == (200, b"")


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.slug)
def test_the_type_of_a_problem_explains_itself(service: Service, problem: type) -> None:
    text = re.sub(r"</?code>", "", html.unescape(service.client().get(f"/problems/{problem.slug}").text))
    assert problem.title in text
    assert problem.explanation.replace("`", "") in text
    assert str(problem.status) in text


def test_a_real_problem_leads_to_its_page(service: Service) -> None:
    problem = service.client().get("/me").json()
    assert problem["title"] in service.client().get(problem["type"]).text


def test_the_reference_shows_everything(service: Service) -> None:
    document = build_document(OPERATIONS)
    ids = Page(service.client().get("/docs").text).ids
    assert {operation.name for operation in OPERATIONS} <= set(ids)
    assert {f"schema-{name}" for name in document["components"]["schemas"]} <= set(ids)


def test_the_reference_names_a_key_of_its_environment(service: Service, staging: Service) -> None:
    for api, prefix in ((service, "lgs_live_"), (staging, "lgs_test_")):
        assert f"export LARGESSE_API_KEY={prefix}…\n" in api.client().get("/docs").text


def test_the_reference_shows_every_member_and_limit(service: Service) -> None:
    text = service.client().get("/docs").text
    for name, schema in build_document(OPERATIONS)["components"]["schemas"].items():
        table = text[text.index(f'id="schema-{name}"') :].split("</table>", 1)[0]
        for member in schema["properties"]:
            assert f"<code>{member}</code>" in table
    assert "1 to 5,000" in text
    assert "at most 256 characters" in text


def test_texts_of_the_document_are_escaped() -> None:
    document = build_document(OPERATIONS)
    document["paths"]["/me"]["get"]["description"] = "<script>`a<b`</script> [x](javascript:alert(1))"
    shown = {o.id: o for section in read_sections(document, "https://gifts.example") for o in section.operations}
    assert shown["getMe"].description == "&lt;script&gt;<code>a&lt;b</code>&lt;/script&gt; [x](javascript:alert(1))"


SAMPLES = [
    pytest.param(operation.id, sample.label, sample.code, id=f"{operation.id}-{sample.label}")
    for section in read_sections(build_document(OPERATIONS), "https://gifts.example")
    for operation in section.operations
    for sample in operation.samples
]


# Of samples whose example of an id is nobody's, and of the one that makes something.
EXPECTED = {
    **dict.fromkeys(("getOrder", "getOrderRequest", "cancelOrder", "listOrderDeliveries", "resendOrderMail"), 404),
    **dict.fromkeys(
        ("deleteWebhook", "listWebhookDeliveries", "redeliverWebhook", "rotateWebhookSecret", "testWebhook"), 404
    ),
    "createWebhook": 201,
    "createContact": 201,
    "deleteContact": 204,
}


@pytest.mark.parametrize(("operation_id", "label", "code"), SAMPLES)
def test_samples_run(service: Service, operation_id: str, label: str, code: str) -> None:
    if label.startswith("Python"):
        compile(code, label, "exec")
        assert "https://gifts.example/" in code
        return
    method, url, headers, body = read_curl(code.replace("$LARGESSE_API_KEY", service.keys["hr"]))
    assert url.startswith("https://gifts.example/")
    assert method == next(operation.method for operation in OPERATIONS if operation.name == operation_id)
    if body and b"externalReference" in body:
        # Samples of several operations give the same one; here each places its own order.
        body = json.dumps(json.loads(body) | {"externalReference": f"{operation_id} {label}"}).encode()
    if "/contacts/" in url:
        url = re.sub(r"/contacts/\d+", f"/contacts/{contact_of(service)}", url)
    answer = httpx.request(method, url.replace("https://gifts.example", service.url), headers=headers, content=body)
    assert answer.status_code == EXPECTED.get(operation_id, 200), answer.text
    assert answer.status_code == 204 or answer.headers["content-type"].startswith("application/")


def read_curl(command: str) -> tuple[str, str, dict[str, str], bytes | None]:
    """Method, address, headers and body of a curl command as a shell would read it."""
    words = iter(shlex.split(command.replace("\\\n", " ")))
    assert next(words) == "curl"
    method, url, headers, body = "", "", {}, None
    for word in words:
        if word == "-X":
            method = next(words)
        elif word == "-H":
            name, value = next(words).split(": ", 1)
            headers[name] = value
        elif word == "-d":
            body = next(words).encode()
        else:
            url = word
    return method or ("GET" if body is None else "POST"), url, headers, body


def test_the_mailbox_is_named_where_there_is_one(service: Service, staging: Service) -> None:
    assert "/mailbox" not in service.client().get("/").text
    assert 'href="/mailbox"' in staging.client().get("/").text
    assert staging.client().get("/mailbox").status_code == 200
