"""Forms as they come, also with files: the token before the rest, in pieces, and no more bytes at once than may be held."""

import gc
import random
import weakref
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl

import pytest
from starlette.requests import Request

from largesse.base.cooperative import CooperativeRunner
from largesse.base.errors import Unavailable
from largesse.web.kit.body import FREE_BYTES, BodyLimits, BodyMemory, TooManyBodies
from largesse.web.kit.forms import TOKEN_WITHIN_BYTES, BadForm, FormParser, PostedForm, UrlencodedParser, form_parser
from largesse.web.kit.problems import TooLarge

LIMITS = BodyLimits(20_000_000, whole_s=30.0, pause_s=10.0)
URLENCODED = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data; boundary=abc"


class Posting:
    """A body that is handed on in chunks, and how much of it has been asked for."""

    def __init__(
        self, body: bytes, media_type: str = URLENCODED, *, chunk_bytes: int = 1_000, site: str = "none"
    ) -> None:
        self._body = body
        self._chunk_bytes = chunk_bytes
        self.read_bytes = 0
        headers = [(b"content-type", media_type.encode()), (b"sec-fetch-site", site.encode())]
        scope = {"type": "http", "method": "POST", "path": "/", "headers": headers, "query_string": b""}
        self.request = Request(scope, self._receive)

    async def _receive(self) -> dict[str, Any]:
        chunk = self._body[self.read_bytes : self.read_bytes + self._chunk_bytes]
        self.read_bytes += len(chunk)
        return {"type": "http.request", "body": chunk, "more_body": self.read_bytes < len(self._body)}

    def form(self, limits: BodyLimits = LIMITS, **more: Any) -> PostedForm:
        parser = form_parser(self.request, 40, takes_files=True)
        return PostedForm(self.request, limits, parser=parser, **more)


def part(name: str, content: bytes, more: str = "") -> bytes:
    return f'--abc\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n'.encode() + content + b"\r\n"


@pytest.mark.parametrize(
    ("body", "media_type"),
    [
        (b"token=t%C3%A9&rows=" + b"%41" * 1_000_000, URLENCODED),
        (part("token", "té".encode()) + part("rows", b"x" * 3_000_000) + b"--abc--\r\n", MULTIPART),
    ],
)
async def test_the_token_is_known_before_the_rest_is_read(body: bytes, media_type: str) -> None:
    posting = Posting(body, media_type)
    form = posting.form()
    assert await form.token() == "té"
    assert posting.read_bytes == 1_000
    await form.read()
    assert posting.read_bytes == len(body)
    assert [len(value) for _, value in form.fields] == [2, len(form.fields[1][1])]


@pytest.mark.parametrize(
    ("body", "media_type"),
    [
        (b"rows=" + b"%41" * 1_000_000 + b"&token=t", URLENCODED),
        (b"token=" + b"t" * 1_000_000, URLENCODED),
        (part("rows", b"x" * 1_000_000) + part("token", b"t") + b"--abc--\r\n", MULTIPART),
    ],
)
async def test_what_has_no_token_at_its_beginning_is_not_read_on(body: bytes, media_type: str) -> None:
    posting = Posting(body, media_type)
    assert await posting.form().token() == ""
    assert posting.read_bytes <= TOKEN_WITHIN_BYTES + 1_000


async def test_a_token_at_the_end_of_a_small_form_is_found() -> None:
    """A search that is also saved has it in its button."""
    assert await Posting(b"x=" + b"y" * 16_000 + b"&token=t").form().token() == "t"


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1_000])
def test_a_urlencoded_body_is_read_as_the_standard_library_reads_it(size: int) -> None:
    chance = random.Random(size)
    for _ in range(300):
        body = bytes(chance.choice(b"ab%4100cE9+&=&=%") for _ in range(chance.randrange(40)))
        parser = UrlencodedParser(100)
        for at in range(0, len(body), size):
            parser.write(body[at : at + size])
        parser.end()
        assert parser.fields == parse_qsl(body.decode(), keep_blank_values=True, errors="replace"), body


def test_as_many_fields_as_there_may_be() -> None:
    parser = UrlencodedParser(3)
    parser.write(b"a=1&b=2&")
    with pytest.raises(BadForm):
        parser.write(b"c=3&")


WORST = {
    "escapes": (b"token=t&rows=" + b"%41" * 500_000, URLENCODED),
    "broken letters": (b"token=t&rows=" + b"%ff" * 500_000, URLENCODED),
    "beginnings of boundaries": (part("token", b"t") + part("rows", b"\r\n--ab" * 250_000) + b"--abc--\r\n", MULTIPART),
    "line breaks": (part("token", b"t") + part("rows", b"\r" * 1_500_000) + b"--abc--\r\n", MULTIPART),
}  # fmt: skip


class Counting:
    """A parser that notes how much it is given at once."""

    def __init__(self, parser: FormParser) -> None:
        self._parser = parser
        self.fields, self.files, self.file_names = parser.fields, parser.files, parser.file_names
        self.pieces: list[int] = []

    def write(self, piece: bytes) -> None:
        self.pieces.append(len(piece))
        self._parser.write(piece)

    def end(self) -> None:
        self._parser.end()


@pytest.mark.parametrize(("body", "media_type"), WORST.values(), ids=WORST.keys())
async def test_a_chunk_of_any_size_is_parsed_in_small_pieces(body: bytes, media_type: str) -> None:
    posting = Posting(body, media_type, chunk_bytes=len(body))
    parser = Counting(form_parser(posting.request, 40, takes_files=True))
    form = PostedForm(posting.request, LIMITS, parser=parser)
    assert await form.token() == "t"
    assert len(parser.pieces) == 1
    await form.read(CooperativeRunner(), "somebody")
    assert sum(parser.pieces) == len(body)
    assert max(parser.pieces) <= 2_048
    assert len(form.fields) == 2


async def test_a_form_of_as_many_bytes_as_it_may_have() -> None:
    limits = BodyLimits(1_000, whole_s=5.0, pause_s=5.0)
    form = Posting(b"x=" + b"y" * 998, chunk_bytes=300).form(limits)
    await form.read()
    assert len(form.fields[0][1]) == 998
    with pytest.raises(TooLarge, match="At most 1000 bytes"):
        await Posting(b"x=" + b"y" * 999, chunk_bytes=300).form(limits).read()


@pytest.fixture
def memory() -> Iterator[BodyMemory]:
    memory = BodyMemory(each=1_000, in_all=1_500)
    yield memory
    assert memory.held_bytes == 0


def test_a_sender_holds_so_many_bytes_and_no_more(memory: BodyMemory) -> None:
    with memory.share("ada") as one, memory.share("ada") as other:
        one.add(FREE_BYTES)
        one.add(600)
        other.add(FREE_BYTES + 400)
        with pytest.raises(TooManyBodies, match="At most 1000 bytes") as refused:
            other.add(1)
        assert refused.value.retry_after_s == 5
        assert memory.held_bytes == 1_000


def test_all_senders_hold_so_many_bytes_and_no_more(memory: BodyMemory) -> None:
    with memory.share("ada") as one, memory.share("bo") as other, memory.share("cy") as small:
        one.add(FREE_BYTES + 1_000)
        other.add(FREE_BYTES + 500)
        with pytest.raises(Unavailable, match="Too many large requests"):
            other.add(1)
        small.add(FREE_BYTES)  # which is always read


async def test_half_of_a_form_holds_its_bytes_until_it_is_given_up(memory: BodyMemory) -> None:
    body = b"token=t&rows=" + b"x" * (FREE_BYTES + 900)
    with memory.share("ada") as share:
        await Posting(body).form(share=share).read()
        assert memory.held_bytes == len(body) - FREE_BYTES
        with memory.share("ada") as second, pytest.raises(TooManyBodies):
            await Posting(body).form(share=second).read()


async def read_upload(
    body: bytes, media_type: str = MULTIPART, *, site: str = "none"
) -> tuple[list[tuple[str, str]], dict[str, bytes]]:
    posted = Posting(body, media_type, chunk_bytes=1, site=site).request
    limits = BodyLimits(10_000, whole_s=5.0, pause_s=5.0)
    form = PostedForm(posted, limits, parser=form_parser(posted, 20, takes_files=True))
    await form.read()
    return form.fields, form.files


async def test_fields_and_files_are_told_apart() -> None:
    body = (
        part("token", "zoë".encode())
        + part("file", b"\x00\xff\r\n\r\n--ab", '; filename="C:\\x.csv"')
        + part("empty", b"", '; filename=""')
        + part("blank", b"", '; filename="x.csv"')
        + part("token", b"again")
        + b"--abc--\r\n"
    )
    fields, files = await read_upload(body)
    assert fields == [("token", "zoë"), ("token", "again")]
    assert files == {"file": b"\x00\xff\r\n\r\n--ab", "blank": b""}


@pytest.mark.parametrize(
    ("body", "media_type"),
    [
        (b"", MULTIPART),
        (b"token=x", MULTIPART),
        (part("token", b"x"), MULTIPART),  # it does not end
        (part("token", b"x") + b"--abc--\r\n", "application/json"),
        (part("token", b"x") + b"--abc--\r\n", "multipart/form-data"),
        (part("x", b"") * 21 + b"--abc--\r\n", MULTIPART),
        (part("x" * 1_000, b"") + b"--abc--\r\n", MULTIPART),
        (b"--abc\r\nContent-Disposition: attachment\r\n\r\nx\r\n--abc--\r\n", MULTIPART),
    ],
)
async def test_what_no_form_of_ours_sends_is_refused(body: bytes, media_type: str) -> None:
    with pytest.raises(BadForm):
        await read_upload(body, media_type)


async def test_another_sites_form_is_refused_and_too_much_told() -> None:
    body = part("token", b"x") + b"--abc--\r\n"
    with pytest.raises(BadForm):
        await read_upload(body, site="cross-site")
    with pytest.raises(TooLarge):
        await read_upload(part("file", bytes(10_000)))


async def test_a_form_is_freed_without_a_garbage_collection() -> None:
    posted = Posting(part("a", b"1") + b"--abc--\r\n", MULTIPART).form()
    await posted.read()
    assert posted.fields == [("a", "1")]
    parser = weakref.ref(posted._parser)
    gc.disable()
    try:
        del posted
        assert parser() is None
    finally:
        gc.enable()
