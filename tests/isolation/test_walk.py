"""Whatever a customer asks for, it gets nothing of another's, nor of the other environment's, though its statements no longer say whose they are.

Each list and page is held against the one that the same request gets with the switch off, and none may hold a word of somebody else. A
request for a thing by any name that a thing of another has is answered as if that were not there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import httpx
import pytest
from tests.campaigns.conftest import code_of
from tests.campaigns.conftest import work as work_on_campaigns
from tests.campaigns.test_pages import Visitor
from tests.isolation.neutral import neutralised
from tests.isolation.world import WORLD, Customer, fill, token_of
from tests.web.api.conftest import Service
from tests.web.claim.conftest import Recipient
from tests.web.console.conftest import Browser, signed_in

from largesse.web.api.routes import OPERATIONS
from largesse.web.console.routes import ROUTES

__all__ = ["WORLD"]

# The way in and out: nothing of a customer's is there, or the session ends.
LEFT_OUT = {"/app/sign-in", "/app/forgot", "/app/link/{secret}", "/app/{rest:path}"}
# Zebra's words, in either environment, and those of Heron's that are of the other environment than the one that is asked.
OF_ZEBRA = ["zebra"]


@pytest.fixture(scope="module")
def both(service: Service, staging: Service) -> tuple[Customer, Customer]:
    """Heron, who asks, and Zebra, whose things it asks for."""
    zebra, heron = (fill(service, staging, mark) for mark in ("zebra", "heron"))
    return heron, zebra


def undrawn(text: str) -> str:
    """A text without what is drawn at random: by chance that may hold any short word."""
    return re.sub(r'name="token" value="[^"]*"|nonce[-=]"?[\w+/=-]+"?|"instance":"[^"]*"', "", text)


def plain(answer: httpx.Response) -> tuple[int, str, str]:
    """An answer without what differs from one to the next: tokens, nonces, ids of requests, times."""
    body = undrawn(answer.text)
    body = re.sub(r"\d\d:\d\d(:\d\d(\.\d+)?)?Z?|\d+ (second|minute)s? ago", "TIME", body)
    return answer.status_code, answer.headers.get("location", ""), body


def stable(client: httpx.Client | Browser, paths: Sequence[str]) -> dict[str, tuple[int, str, str]]:
    """What each list says, but for pages that never say the same twice, as those that draw a secret."""
    first, again = ({path: plain(client.get(path)) for path in paths} for _ in range(2))
    told = {path: answer for path, answer in first.items() if again[path] == answer}
    assert len(told) > 0.8 * len(paths)
    return told


def foreign(answer: httpx.Response, words: Sequence[str], asked: object = "") -> list[str]:
    """Where an answer holds a word that it must not, but for what was asked for, which it may echo."""
    text = undrawn(answer.text).lower().replace(str(asked).lower(), "")
    return [f"{word}: {answer.request.method} {answer.request.url}" for word in words if word in text]


def lists_of_api() -> list[str]:
    return [operation.path for operation in OPERATIONS if operation.method == "GET" and "{" not in operation.path]


def lists_of_pages() -> list[str]:
    paths = [route.path for route in ROUTES if route.method == "GET" and "{" not in route.path]
    return [*(path for path in paths if path not in LEFT_OUT), "/app/orders?q=sam", "/app/orders.csv?q=sam"]


def named(path: str, name: object) -> str:
    return re.sub(r"\{\w+(:\w+)?\}", str(name), path)


def of_environment(key: str) -> list[str]:
    """What an answer to that key must not hold."""
    return [*OF_ZEBRA, "heronlive" if key.endswith("-test") else "heronstaging"]


@pytest.mark.parametrize("key", ["heron", "heron-test"])
def test_over_the_api(service: Service, staging: Service, both: tuple[Customer, Customer], key: str) -> None:
    _, zebra = both
    client = (staging if key == "heron-test" else service).client(key)
    before = stable(client, lists_of_api())
    found = []
    with neutralised() as switch:
        for path in lists_of_api():
            answer = client.get(path)
            found += foreign(answer, of_environment(key))
            if plain(answer) != before.get(path, plain(answer)):
                found.append(f"another answer: {path}")
        for operation in OPERATIONS:
            if "{" not in operation.path:
                continue
            for name in (*zebra.texts, *zebra.numbers):
                answer = client.request(
                    operation.method, named(operation.path, name), json=None if operation.method == "GET" else {}
                )
                found += foreign(answer, of_environment(key), name)
    assert found == []
    assert len(switch.rewritten) >= 8
    assert switch.failed == set()


@pytest.mark.timeout(600)  # some 1,800 requests
def test_on_pages(both: tuple[Customer, Customer]) -> None:
    heron, zebra = both
    before = stable(heron.admin, lists_of_pages())
    found = []
    with neutralised() as switch:
        for path in lists_of_pages():
            answer = heron.admin.get(path)
            # The audit log is of both environments, and the request log holds the paths that Heron itself has asked for.
            if "requests" not in path:
                found += foreign(answer, OF_ZEBRA if "audit" in path else of_environment("heron"))
            if plain(answer) != before.get(path, plain(answer)):
                found.append(f"another answer: {path}")
        for route in ROUTES:
            if "{" not in route.path or route.path in LEFT_OUT:
                continue
            names = zebra.numbers if ":int}" in route.path else zebra.texts
            for name in names:
                if route.method == "GET":
                    answer = heron.admin.get(named(route.path, name))
                    found += foreign(answer, of_environment("heron"), name)
    assert found == []
    assert len(switch.rewritten) >= 30
    assert switch.failed == set()


def test_on_pages_of_the_other_environment(staging: Service, both: tuple[Customer, Customer]) -> None:
    admin = signed_in(staging, "admin@heron.example")
    with neutralised() as switch:
        found = [
            one
            for path in lists_of_pages()
            if "audit" not in path and "requests" not in path
            for one in foreign(admin.get(path), of_environment("heron-test"))
        ]
    assert found == []
    assert switch.failed == set()


def test_for_recipients(service: Service, both: tuple[Customer, Customer]) -> None:
    """A recipient of Heron's claims a gift and sees it; a code of the other environment is not known."""
    heron, zebra = both
    with neutralised() as switch:
        recipient = Recipient(service)
        page = recipient.get(recipient.gift(heron.codes[1]))
        assert page.status_code == 200
        assert foreign(page, of_environment("heron")) == []
        elsewhere = Recipient(service).claim(zebra.codes[-1])
        assert foreign(elsewhere, ["zebrastaging"]) == []
        assert elsewhere.status_code in {403, 404}
    assert switch.rewritten
    assert switch.failed == set()


def test_for_visitors_of_campaigns(service: Service, staging: Service, both: tuple[Customer, Customer]) -> None:
    """A visitor of Heron's campaign gets a gift of Heron's; its code is none of Zebra's campaign, and no link is known in the other environment."""
    heron, zebra = (Visitor(service, token_of(service, mark)) for mark in ("heron", "zebra"))
    email = "visitor@heronlive.example"
    for visitor in (zebra, heron):
        assert visitor.ask(email).status_code == 303
    work_on_campaigns(service)
    with neutralised() as switch:
        for page in (heron.get(), heron.get("/code"), heron.type(code_of(service, email))):
            assert page.status_code < 400
            assert foreign(page, of_environment("heron")) == []
        refused = zebra.type(code_of(service, email))
        assert refused.status_code == 403
        assert Visitor(staging, heron.token).get().status_code == 404
    assert switch.rewritten
    assert switch.failed == set()
