"""The captured mailbox over HTTP: who sees what, and that nothing a caller wrote can act in it."""

import email
import email.policy
import re
from collections.abc import Callable
from html import unescape
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from tests.web.api.conftest import PUBLIC_URL, Service

from largesse.web.kit.security import with_named_styles

HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(1)>'


def order(on: Service, *recipients: str, **members: Any) -> None:
    """Orders a coffee for each address, in the environment of the service."""
    key, account = ("hr-test", "test-gbp") if on.settings.environment == "staging" else ("hr", "gbp")
    answer = on.send(
        "gift",
        "coffee",
        key=key,
        account=account,
        value=10,
        recipients=[{"email": address, "name": "Sam & Co"} for address in recipients],
        **members,
    )
    assert answer.status_code == 200, answer.text


def listed(page: httpx.Response) -> list[str]:
    """The paths of the messages on a page of the list."""
    assert page.status_code == 200, page.text
    return re.findall(r'<a href="(/mailbox/\d+)">', page.text)


def policy(answer: httpx.Response) -> dict[str, str]:
    rules = (rule.strip().partition(" ") for rule in answer.headers["content-security-policy"].split(";"))
    return {name: value for name, _, value in rules}


def test_a_message_is_shown_as_its_recipient_would_see_it(staging: Service, capture: Callable[[], None]) -> None:
    order(staging, "sam@example.com", fromName="Ada", message="Well done!\nÀ bientôt")
    capture()
    client = staging.client()
    [path] = listed(client.get("/mailbox"))[:1]
    page = client.get(path)
    shown = unescape(page.text)
    assert "<h1>Ada sent you a gift</h1>" in page.text
    for header in ("Message-ID", "Auto-Submitted", "Content-Type", "Sam & Co <sam@example.com>"):
        assert header in shown
    text = re.search(r'<pre class="text".*?</pre>', page.text, re.DOTALL)
    assert text
    assert "À bientôt" in text[0]
    code, pin = re.findall(r"(?:Code|PIN): +(\S+)", text[0])
    html = client.get(f"{path}/html").text
    assert code in html
    assert pin in html
    [link] = set(re.findall(r'href="([^"]+/claim/[^"]+)"', text[0]))
    assert link in html
    assert link.startswith(PUBLIC_URL)
    assert client.get(urlsplit(link).path).status_code == 200
    raw = client.get(f"{path}/message.eml")
    assert raw.headers["content-type"] == "message/rfc822"
    parsed = email.message_from_bytes(raw.content, policy=email.policy.default)
    assert parsed["To"] == "Sam & Co <sam@example.com>"
    sent, _ = with_named_styles(parsed.get_body(("html",)).get_content())
    assert sent.strip() in html.replace('\n<base target="_blank">', "")


def test_an_international_address_is_shown_as_it_is(staging: Service, capture: Callable[[], None]) -> None:
    order(staging, "zoë@bücher.example")
    capture()
    client = staging.client()
    assert "zoë@bücher.example" in client.get("/mailbox").text
    page = client.get(listed(client.get("/mailbox"))[0])
    assert page.status_code == 200
    assert unescape(page.text).count("Sam & Co <zoë@xn--bcher-kva.example>") == 2


def test_what_callers_write_cannot_act(staging: Service, capture: Callable[[], None]) -> None:
    order(staging, "sam@example.com", fromName="<b>Ada</b>", message=HOSTILE)
    capture()
    client = staging.client()
    [path] = listed(client.get("/mailbox"))[:1]
    for address in ("/mailbox", path):
        page = client.get(address)
        assert policy(page)["default-src"] == policy(page)["frame-ancestors"] == "'none'"
        assert "script-src" not in policy(page)
        assert "<script" not in page.text
        assert "<b>" not in page.text
        assert page.headers["cache-control"] == "no-store"
    [sandbox] = re.findall(r'<iframe [^>]*sandbox="([^"]*)"', client.get(path).text)
    frame = client.get(f"{path}/html")
    assert policy(frame)["sandbox"] == sandbox == "allow-popups allow-popups-to-escape-sandbox"
    assert policy(frame)["default-src"] == "'none'"
    assert policy(frame)["style-src"].startswith("'sha256-")
    assert "unsafe" not in frame.headers["content-security-policy"]
    assert " style=" not in frame.text
    assert policy(frame)["img-src"] == "'self' https://gifts.example/", "pictures of gifts, and no others"
    assert "<script" not in frame.text
    assert "onerror=alert(1)>" not in frame.text
    assert unescape(frame.text).count(HOSTILE) == 1
    assert '<base target="_blank">' in frame.text, "a link opens a window, as in a mail client"


def test_the_newest_come_first_in_pages_of_50(staging: Service, capture: Callable[[], None]) -> None:
    order(staging, *(f"guest{n}@example.com" for n in range(70)))
    capture()
    client = staging.client()
    seen: list[str] = []
    address = "/mailbox"
    while address:
        page = client.get(address)
        assert len(listed(page)) <= 50
        seen += listed(page)
        older = re.findall(r'href="(/mailbox\?before=\d+)"', page.text)
        assert not older or len(listed(page)) == 50
        address = older[0] if older else ""
    ids = [int(path.rpartition("/")[2]) for path in seen]
    assert ids == sorted(set(ids), reverse=True)
    [kept] = staging.sql("SELECT count(*) FROM captured_mail WHERE environment = 'staging'")
    assert len(ids) == kept[0] >= 70
    assert "There is no older mail" in client.get("/mailbox?before=1").text


def test_only_the_demo_shows_production(
    service: Service, staging: Service, demo: Service, capture: Callable[[], None]
) -> None:
    order(service, "kim@example.com")
    order(staging, "sam@example.com")
    capture()
    [kim] = listed(demo.client().get("/mailbox"))
    assert "kim@example.com" in demo.client().get(kim).text
    [sam] = listed(staging.client().get("/mailbox"))[:1]
    assert "kim@example.com" not in staging.client().get("/mailbox").text
    for ending in ("", "/html", "/message.eml"):
        assert demo.client().get(f"{sam}{ending}").status_code == 404
        assert staging.client().get(f"{kim}{ending}").status_code == 404
    for path in ("/mailbox", kim, f"{kim}/html", f"{kim}/message.eml", "/mailbox/style.css"):
        assert demo.client().get(path).status_code == 200
        refused = service.client().get(path)
        assert refused.status_code == 404
        assert refused.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/mailbox/0", 404),
        ("/mailbox/9223372036854775807", 404),
        ("/mailbox/9223372036854775808", 404),
        ("/mailbox/" + "9" * 300, 404),
        ("/mailbox/x", 404),
        ("/mailbox?before=x", 400),
        ("/mailbox?before=-1", 400),
        ("/mailbox?before=9223372036854775808", 400),
        ("/mailbox?before=²", 400),
    ],
)
def test_addresses_that_name_no_message(staging: Service, path: str, status: int) -> None:
    assert staging.client().get(path).status_code == status


def test_nothing_can_be_posted(staging: Service) -> None:
    assert staging.client().post("/mailbox").status_code == 405


def test_a_message_of_a_lost_master_key_is_not_there(staging: Service, capture: Callable[[], None]) -> None:
    order(staging, "sam@example.com")
    capture()
    [path] = listed(staging.client().get("/mailbox"))[:1]
    # What is sealed begins with the id of its key: another one's stands there now.
    staging.sql(r"UPDATE captured_mail SET sealed = '\xdeadbeef'::bytea || substring(sealed FROM 5)")
    answer = staging.client().get(path)
    assert answer.status_code == 404
    assert "master key" in answer.json()["detail"]
