"""Bodies and forms within their limits, on both sides of each."""

import asyncio
from collections.abc import Iterable

import pytest
from starlette.requests import Request

from largesse.base.errors import InvalidRequest
from largesse.web.kit.asgi import Message, Receive
from largesse.web.kit.body import JSON_LIMITS, BodyLimits, read_body, receive_body
from largesse.web.kit.forms import FORM_LIMITS, BadForm, read_form, require_own_site
from largesse.web.kit.headers import Headers
from largesse.web.kit.problems import SlowRequest, TooLarge

LIMITS = BodyLimits(most_bytes=10, whole_s=30.0, pause_s=10.0)
FORM = "application/x-www-form-urlencoded"


def arriving(chunks: Iterable[bytes], *, ends: bool = True) -> Receive:
    """As a server hands a body on; one that does not end is cut off."""
    messages: list[Message] = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]
    messages.append({"type": "http.request", "body": b""} if ends else {"type": "http.disconnect"})
    coming = iter(messages)

    async def receive() -> Message:
        return next(coming)

    return receive


def posted(body: bytes, *, media_type: str = FORM, site: str | None = None, ends: bool = True) -> Request:
    headers = [(b"content-type", media_type.encode())]
    if site is not None:
        headers.append((b"sec-fetch-site", site.encode()))
    scope = {"type": "http", "method": "POST", "path": "/", "headers": headers, "query_string": b""}
    return Request(scope, arriving([body], ends=ends))


async def test_as_many_bytes_as_are_allowed() -> None:
    assert await receive_body(arriving([b"12345", b"67890"]), LIMITS) == b"1234567890"
    with pytest.raises(TooLarge, match="At most 10 bytes"):
        await receive_body(arriving([b"12345", b"67890", b"1"]), LIMITS)


async def test_a_body_that_the_connection_ends() -> None:
    with pytest.raises(InvalidRequest):
        await receive_body(arriving([b"12345"], ends=False), LIMITS)


@pytest.mark.parametrize(("whole_s", "pause_s", "sends"), [(30.0, 0.05, b""), (0.1, 30.0, b"x"), (0.1, 0.09, b"x")])
async def test_a_body_that_does_not_come(whole_s: float, pause_s: float, sends: bytes) -> None:
    """Nothing for a while, or a little at a time for ever."""

    async def receive() -> Message:
        await asyncio.sleep(0.02 if sends else 3600)
        return {"type": "http.request", "body": sends, "more_body": True}

    async with asyncio.timeout(20):
        with pytest.raises(SlowRequest, match=f"within {whole_s:g} seconds, or nothing of it for {pause_s:g}"):
            await receive_body(receive, BodyLimits(1_000_000, whole_s, pause_s))


class Skipping(asyncio.SelectorEventLoop):
    """A loop whose time passes by itself: whoever sleeps wakes at once, and the clock says that the time has passed."""

    now_s = 0.0

    def __init__(self) -> None:
        super().__init__()
        wait = self._selector.select

        def select(timeout: float | None = None) -> object:
            self.now_s += timeout or 0.0
            return wait(0)

        self._selector.select = select

    def time(self) -> float:
        return self.now_s


@pytest.mark.parametrize(
    ("at_s", "refused_at_s"),
    [
        ((9.9,), None),
        ((10.1,), 10),
        ((9, 18.9, 28.8), None),
        ((9, 19.1), 19),
        ((9, 18, 27, 29.9), None),
        ((9, 18, 27, 30.1), 30),
    ],
)
def test_a_body_may_take_as_long_as_its_limits_say(at_s: tuple[float, ...], refused_at_s: float | None) -> None:
    """30 seconds in all, and 10 without anything: each chunk comes at its second, the last with the end."""

    async def run() -> bytes:
        loop, coming = asyncio.get_running_loop(), iter(at_s)

        async def receive() -> Message:
            due_s = next(coming)
            await asyncio.sleep(due_s - loop.time())
            return {"type": "http.request", "body": b"x", "more_body": due_s != at_s[-1]}

        return await receive_body(receive, LIMITS)

    with asyncio.Runner(loop_factory=Skipping) as runner:
        if refused_at_s is None:
            assert runner.run(run()) == b"x" * len(at_s)
        else:
            with pytest.raises(SlowRequest, match="within 30 seconds, or nothing of it for 10"):
                runner.run(run())
            assert runner.get_loop().time() == pytest.approx(refused_at_s)


async def test_json_is_read_within_the_limits_of_the_contract() -> None:
    most = 4 * 1024 * 1024
    assert BodyLimits(most, whole_s=30, pause_s=10) == JSON_LIMITS

    def said(length: int) -> Headers:
        return Headers(content_length=b"%d" % length)

    assert await read_body(said(most), arriving([b"{}"])) == b"{}"
    with pytest.raises(TooLarge, match=f"has {most + 1} bytes; at most {most}"):
        await read_body(said(most + 1), arriving([]))


async def test_a_form() -> None:
    assert await read_form(posted(b"code=A&pin=12%203&code=B&empty=")) == {"code": "A", "pin": "12 3", "empty": ""}


async def test_a_form_within_its_limits() -> None:
    name = b"x="
    most = name + b"y" * (FORM_LIMITS.most_bytes - len(name))
    assert len((await read_form(posted(most)))["x"]) == FORM_LIMITS.most_bytes - len(name)
    with pytest.raises(TooLarge):
        await read_form(posted(most + b"y"))
    assert len(await read_form(posted(b"&".join(b"f%d=1" % at for at in range(40))))) == 40


@pytest.mark.parametrize(
    "request_",
    [
        posted(b"&".join(b"f%d=1" % at for at in range(41))),
        posted(b"x=1", media_type="application/json"),
        posted(b"x=\xff"),
        posted(b"x=1", site="cross-site"),
        posted(b"x=1", ends=False),
    ],
    ids=["fields", "media type", "no ASCII", "another site", "cut off"],
)
async def test_what_is_no_form_of_ours(request_: Request) -> None:
    with pytest.raises(BadForm):
        await read_form(request_)


@pytest.mark.parametrize("site", ["same-origin", "none", None])
def test_posts_of_our_own_pages(site: str | None) -> None:
    require_own_site(posted(b"", site=site))


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_posts_of_other_sites(site: str) -> None:
    with pytest.raises(BadForm):
        require_own_site(posted(b"", site=site))
