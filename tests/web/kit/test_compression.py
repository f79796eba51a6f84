"""Compressed answers: for whom, of what, and the same after unpacking."""

import asyncio
import gzip
import zlib
from collections.abc import Iterable

import pytest
from starlette.responses import Response, StreamingResponse

from largesse.web.kit.asgi import Message
from largesse.web.kit.compression import Compressing, gzipped, takes_gzip

PAGE = b"<p>A page.</p>" * 500


@pytest.mark.parametrize(
    "header", ["gzip", "GZIP", "br, gzip", "gzip;q=0.1", "*", "br;q=1.0 , *;q=0.5", "identity, gzip ; q=1"]
)
def test_who_takes_gzip(header: str) -> None:
    assert takes_gzip(header)


@pytest.mark.parametrize("header", ["", "br", "gzip;q=0", "gzip;q=0.000", "*;q=0", "*, gzip;q=0", "xgzip", "gzip;q=x"])
def test_who_does_not(header: str) -> None:
    assert not takes_gzip(header)


@pytest.mark.parametrize("padding", [b"", b"x" * 7])
def test_what_is_packed_comes_out_as_it_was(padding: bytes) -> None:
    for body in (b"", b"x", PAGE):
        assert gzip.decompress(gzipped(body, padding=padding)) == body


class Sent:
    """What was sent to a client."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    async def send(self, message: Message) -> None:
        self.messages.append(message)

    @property
    def headers(self) -> dict[str, str]:
        return {name.decode(): value.decode() for name, value in self.messages[0]["headers"]}

    @property
    def bodies(self) -> list[bytes]:
        return [message["body"] for message in self.messages[1:]]


async def sent(response: Response, method: str = "GET", accepts: bytes = b"gzip") -> Sent:
    scope = {"type": "http", "method": method, "headers": [(b"accept-encoding", accepts)]}
    to = Sent()

    async def receive() -> Message:
        await asyncio.Event().wait()  # the client stays
        raise AssertionError

    await response(scope, receive, Compressing(scope, to.send))
    return to


async def test_a_page_is_compressed_for_those_who_take_that() -> None:
    answer = await sent(Response(PAGE, media_type="text/html", headers={"Vary": "Cookie"}))
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.headers["vary"] == "Cookie, Accept-Encoding"
    assert answer.headers["content-length"] == str(len(answer.bodies[0]))
    assert gzip.decompress(answer.bodies[0]) == PAGE
    assert len(answer.bodies[0]) < len(PAGE) / 5


async def test_others_get_it_as_it_is_and_stores_are_told() -> None:
    answer = await sent(Response(PAGE, media_type="text/html"), accepts=b"br")
    assert answer.bodies == [PAGE]
    assert answer.headers["vary"] == "Accept-Encoding"
    assert "content-encoding" not in answer.headers


@pytest.mark.parametrize(
    ("response", "method"),
    [
        (Response(b"x" * 999, media_type="text/html"), "GET"),
        (Response(PAGE, media_type="image/png"), "GET"),
        (Response(PAGE, media_type="text/css", headers={"Content-Encoding": "gzip"}), "GET"),
        (Response(PAGE, media_type="text/html"), "POST"),
        (Response(status_code=204), "GET"),
    ],
    ids=["little", "picture", "compressed before", "answer to a form", "nothing"],
)
async def test_what_is_not_compressed(response: Response, method: str) -> None:
    answer = await sent(response, method)
    assert answer.bodies == [response.body]
    assert "vary" not in answer.headers


async def test_the_least_that_is_compressed() -> None:
    assert (await sent(Response(b"x" * 1_000, media_type="text/html"))).headers["content-encoding"] == "gzip"


@pytest.mark.long
async def test_a_file_is_compressed_as_it_comes() -> None:
    rows = [b"a row of a file,%d\r\n" % at for at in range(20_000)] + [b"x" * 100_000]

    def all_rows() -> Iterable[bytes]:
        yield from rows

    answer = await sent(StreamingResponse(all_rows(), media_type="text/csv"))
    assert answer.headers["content-encoding"] == "gzip"
    assert "content-length" not in answer.headers
    assert gzip.decompress(b"".join(answer.bodies)) == b"".join(rows)
    assert 1 < len(answer.bodies) < 1_000


async def test_the_same_page_has_another_length_each_time() -> None:
    lengths = set()
    for _ in range(20):
        [body] = (await sent(Response(PAGE, media_type="text/html"))).bodies
        lengths.add(len(body))
        assert zlib.decompressobj(zlib.MAX_WBITS + 16).decompress(body) == PAGE
    assert len(lengths) > 5


async def test_a_file_that_ends_early_is_not_taken_for_whole() -> None:
    to = Sent()
    compressing = Compressing({"method": "GET", "headers": [(b"accept-encoding", b"gzip")]}, to.send)
    headers = [(b"content-type", b"text/csv")]
    await compressing({"type": "http.response.start", "status": 200, "headers": headers})
    await compressing({"type": "http.response.body", "body": PAGE, "more_body": True})
    unpacking = zlib.decompressobj(zlib.MAX_WBITS + 16)
    unpacking.decompress(b"".join(to.bodies))
    assert not unpacking.eof
