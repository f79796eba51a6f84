"""What goes wrong on a page for people is shown as a page, and logged where it is ours."""

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator
from typing import Any

import httpx
import jinja2
import pytest
from markupsafe import escape
from starlette.requests import Request
from starlette.responses import Response
from structlog.testing import capture_logs
from tests.conftest import Template
from tests.waiting import wait_until
from tests.web.api.conftest import RICH_WORLD, services_on

from largesse.base.errors import NotFound, Problem
from largesse.base.i18n.languages import LANGUAGES
from largesse.base.i18n.templates import translations
from largesse.base.timeouts import Timeouts
from largesse.branding.model import OwnWrapping
from largesse.web.claim.rendering import draw_own_wrapping
from largesse.web.kit.forms import BadForm
from largesse.web.kit.pages import LONG_TEXT, LongTexts, guarded, page, public_path, see
from largesse.web.kit.problems import InternalError, problem_type


@pytest.fixture
async def timeouts() -> AsyncIterator[Timeouts]:
    timeouts = Timeouts(0.05)
    yield timeouts
    await timeouts.close()


def a_request() -> Request:
    scope = {"type": "http", "method": "GET", "path": "/claim/secret", "headers": [], "query_string": b""}
    return Request({**scope, "request_id": "r1"})


def show(_: Request, problem: Problem) -> Response:
    return page(problem.detail, {}, status=problem_type(type(problem)).status)


async def shown(timeouts: Timeouts, error: Exception | None) -> Response:
    async def _the_page(_: Request) -> Response:
        if error is not None:
            raise error
        return page("fine", {"Cache-Control": "no-store"})

    endpoint = guarded(_the_page, timeouts, show, {BadForm: lambda _: page("ended", {}, status=403)})
    return await endpoint(a_request())


async def test_a_page_that_goes_well(timeouts: Timeouts) -> None:
    response = await shown(timeouts, None)
    assert (response.status_code, response.body) == (200, b"fine")
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["content-type"] == "text/html; charset=utf-8"


async def test_what_is_expected_goes_its_own_way(timeouts: Timeouts) -> None:
    response = await shown(timeouts, BadForm())
    assert (response.status_code, response.body) == (403, b"ended")


async def test_problems_are_shown_and_not_logged(timeouts: Timeouts) -> None:
    with capture_logs() as logged:
        response = await shown(timeouts, NotFound("nothing here"))
    assert (response.status_code, response.body) == (404, b"nothing here")
    assert logged == []


async def test_a_bug_is_logged_without_the_address(timeouts: Timeouts) -> None:
    with capture_logs() as logged:
        response = await shown(timeouts, RuntimeError("a bug"))
    assert response.status_code == problem_type(InternalError).status == 500
    [line] = logged
    assert line["event"] == "request_failed"
    assert (line["page"], line["request_id"]) == ("the_page", "r1")
    assert "secret" not in str({name: value for name, value in line.items() if name != "exc_info"})


async def test_a_failure_is_logged_with_the_pages_own_name(timeouts: Timeouts) -> None:
    async def _answer(_: Request) -> Response:
        raise RuntimeError("a bug")

    with capture_logs() as logged:
        await guarded(_answer, timeouts, show, {}, name="/app/orders/{reference}")(a_request())
    assert [line["page"] for line in logged] == ["/app/orders/{reference}"]


async def test_a_database_that_is_away_is_waited_for_no_longer_than_patience_lasts(timeouts: Timeouts) -> None:
    async def _waiting(_: Request) -> Response:
        await asyncio.sleep(3600)
        return page("never", {})

    with capture_logs() as logged:
        async with asyncio.timeout(20):
            response = await guarded(_waiting, timeouts, show, {})(a_request())
    assert response.status_code == 503
    assert [line["event"] for line in logged] == ["database_away"]


def test_where_the_public_address_begins() -> None:
    assert public_path("https://gifts.example") == public_path("https://gifts.example/") == ""
    assert public_path("https://shop.example/gifts/") == "/gifts"


def test_seeing_another_page() -> None:
    response = see("/claim", {"Cache-Control": "no-store"})
    assert (response.status_code, response.headers["location"]) == (303, "/claim")
    assert response.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("length", [LONG_TEXT, LONG_TEXT + 1, 3 * LONG_TEXT, 3 * LONG_TEXT + 1])
async def test_a_long_text_is_in_its_page_and_sent_in_pieces(length: int) -> None:
    texts = LongTexts()
    first, second = "<" * length, "&é"
    texts.mark("a text that is not shown" * LONG_TEXT)
    marked = escape(texts.mark(first))
    html = f"<p>{marked}</p><p>{escape(texts.mark(second))}{marked}</p>"
    sent = [message async for message in messages(texts.page(html, {"X-Y": "z"}, status=422))]
    assert (sent[0]["status"], dict(sent[0]["headers"])[b"x-y"]) == (422, b"z")
    shown = "&lt;" * length
    assert b"".join(message["body"] for message in sent[1:]).decode() == f"<p>{shown}</p><p>&amp;é{shown}</p>"
    assert (len(sent) > 3) == (length > LONG_TEXT)
    assert max(len(message["body"]) for message in sent[1:]) <= max(5 * LONG_TEXT, 9 * length * (length <= LONG_TEXT))


async def messages(response: Response) -> AsyncIterator[Any]:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        await asyncio.Event().wait()

    await response({"type": "http", "method": "POST"}, receive, send)
    for message in sent:
        yield message


async def test_an_error_does_not_keep_what_the_request_held(timeouts: Timeouts) -> None:
    """A garbage collection that looks for cycles may come late, and forms are large."""

    class Form:
        pass

    form = Form()
    freed = weakref.ref(form)

    async def refused(_: Request, form: Form = form) -> Response:
        held = form
        raise NotFound(f"no {held}")

    del form
    answer = guarded(refused, timeouts, show, {})
    gc.disable()
    try:
        await answer(a_request())
        del answer, refused
        assert freed() is None
    finally:
        gc.enable()


PARTS = 4  # claim pages, web application, back office, and the docs, whose texts are read with their templates


def test_the_first_page_in_a_language_reads_no_texts(
    template: Template, tmp_path_factory: pytest.TempPathFactory
) -> None:
    translations.cache_clear()
    with services_on(template, tmp_path_factory) as start:
        url = start(RICH_WORLD).url
        assert httpx.get(f"{url}/claim").status_code == 200
        wait_until(lambda: translations.cache_info().currsize >= PARTS * len(LANGUAGES), 20)
        read = translations.cache_info().misses
        for tag in LANGUAGES:
            for page in ("/claim", "/app/sign-in"):
                shown = httpx.get(url + page, headers={"Accept-Language": tag})
                assert f'lang="{tag}"' in shown.text, page
        assert translations.cache_info().misses == read


def test_wrappings_of_customers_are_drawn_by_one_compiled_template(monkeypatch: pytest.MonkeyPatch) -> None:
    def drawn(paper: str) -> str:
        return draw_own_wrapping(OwnWrapping("own", "Ours", "dots", paper, "#aa0000"), "")

    first = drawn("#ffffff")
    monkeypatch.delattr(jinja2.Environment, "compile")
    assert drawn("#ffffff") == first
