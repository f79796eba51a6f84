"""Reading what a form of ours posts: its token first, then the rest, a few kilobytes at a time."""

from __future__ import annotations

import codecs
from collections.abc import Hashable
from typing import Protocol
from urllib.parse import unquote_to_bytes

from starlette.requests import Request

from largesse.base.errors import InvalidRequest, Problem
from largesse.base.slices import Slices, Steps, first_slice
from largesse.web.kit.body import BodyLimits, BodyStream
from largesse.web.kit.body_memory import BodyShare
from largesse.web.kit.problems import SlowRequest

FORM_LIMITS = BodyLimits(most_bytes=16 * 1024, whole_s=15.0, pause_s=15.0)
TOKEN_WITHIN_BYTES = 20 * 1024  # the whole of a form that has no limits of its own
_MAX_FIELDS = 40
# Decoding so much takes less than a slice.
_PIECE_BYTES = 2 * 1024


class BadForm(Exception):
    """A body that no form of ours posts, or a post that another site made a browser send."""


class FormParser(Protocol):
    """Makes fields and files of the pieces of a body."""

    fields: list[tuple[str, str]]
    files: dict[str, bytes]

    def write(self, piece: bytes) -> None:
        """Takes the next piece. Raises BadForm."""

    def end(self) -> None:
        """Takes note that there are no more. Raises BadForm."""


def require_own_site(request: Request) -> None:
    """Raises BadForm for what a page of another site made a browser send: browsers tell (Fetch Metadata)."""
    if request.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
        raise BadForm


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a urlencoded body, the first of each name. Raises BadForm, for one from another site too."""
    form = PostedForm(request, FORM_LIMITS)
    try:
        await form.read()
    except Problem:
        raise BadForm from None
    return dict(reversed(form.fields))


class PostedForm:
    """A form that is being posted. Its token is read first: what comes with none of ours is not read on."""

    def __init__(
        self,
        request: Request,
        limits: BodyLimits,
        share: BodyShare | None = None,
        *,
        parser: FormParser | None = None,
    ) -> None:
        """Reads a urlencoded body unless `parser` is for another kind. Raises BadForm for a body of neither, or from another site."""
        require_own_site(request)
        if parser is None:
            media_type = request.headers.get("content-type", "").split(";", 1)[0].strip().lower()
            if media_type != "application/x-www-form-urlencoded":
                raise BadForm
            parser = UrlencodedParser(_MAX_FIELDS)
        self._parser = parser
        self._stream = BodyStream(request.receive, limits, share)
        self._chunk = b""
        self._read = 0  # bytes of the chunk that were parsed
        self._parsed = 0  # bytes in all
        self._is_whole = False

    @property
    def fields(self) -> list[tuple[str, str]]:
        """The fields that have come so far, in their order."""
        return self._parser.fields

    @property
    def files(self) -> dict[str, bytes]:
        """The files that have come so far, by the name of their field; none where none was chosen."""
        return self._parser.files

    async def token(self) -> str:
        """Returns the first field of that name; empty where the first bytes hold none. Raises BadForm and what `read` does."""
        while True:
            for name, value in self.fields:
                if name == "token":
                    return value
            if self._is_whole or self._parsed >= TOKEN_WITHIN_BYTES:
                return ""
            if self._read == len(self._chunk):
                await self._receive()
            self._parse_piece()

    async def read(self, slices: Slices | None = None, key: Hashable = None) -> None:
        """Reads the rest; `slices` parses what is long, in the turn of `key`.

        Raises BadForm, TooLarge, and what the share of memory raises.
        """
        while not self._is_whole:
            if self._read == len(self._chunk):
                await self._receive()
            steps = self._parse_chunk()
            if first_slice(steps) is None:
                if slices is None:
                    for _ in steps:
                        pass
                else:
                    await slices.finish(key, steps)

    async def _receive(self) -> None:
        try:
            chunk = await self._stream.next()
        except (SlowRequest, InvalidRequest):  # nobody is there any more
            raise BadForm from None
        self._chunk, self._read = chunk or b"", 0
        if chunk is None:
            self._parser.end()
            self._is_whole = True

    def _parse_chunk(self) -> Steps[bool]:
        while self._read < len(self._chunk):
            self._parse_piece()
            yield
        return True

    def _parse_piece(self) -> None:
        piece = self._chunk[self._read : self._read + _PIECE_BYTES]
        self._read += len(piece)
        self._parsed += len(piece)
        if piece:
            self._parser.write(piece)


class UrlencodedParser:
    """Parses `application/x-www-form-urlencoded` (WHATWG URL standard, section 5.1)."""

    def __init__(self, most_fields: int) -> None:
        self.fields: list[tuple[str, str]] = []
        self.files: dict[str, bytes] = {}  # there are none in a body of this kind
        self._most_fields = most_fields
        self._count = 1
        self._name: str | None = None  # of the field whose value is read
        self._text = PieceDecoder()

    def write(self, piece: bytes) -> None:
        """Takes the next piece. Raises BadForm for one that is no ASCII, and for too many fields."""
        if not piece.isascii():
            raise BadForm
        pairs = piece.split(b"&")
        self._count += len(pairs) - 1
        if self._count > self._most_fields:
            raise BadForm
        for at, pair in enumerate(pairs):
            if at:
                self._end_field()
            if self._name is None:
                name, equals, pair = pair.partition(b"=")  # noqa: PLW2901 - what is left is the value
                self._text.add_urlencoded(name)
                if equals:
                    self._name = self._text.end()
            self._text.add_urlencoded(pair)

    def end(self) -> None:
        """Ends the last field."""
        self._end_field()

    def _end_field(self) -> None:
        text = self._text.end()
        if self._name is not None:
            self.fields.append((self._name, text))
        elif text:
            self.fields.append((text, ""))
        self._name = None


class PieceDecoder:
    """Decodes a text in UTF-8 that comes in pieces; what is no UTF-8 is replaced."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._texts: list[str] = []
        self._cut = b""  # the beginning of an escape whose end is in the next piece

    def add(self, piece: bytes) -> None:
        """Takes the next bytes."""
        self._texts.append(self._decoder.decode(piece))

    def add_urlencoded(self, piece: bytes) -> None:
        """Takes the next bytes as they are in a urlencoded body."""
        piece = self._cut + piece
        cut = piece.find(b"%", max(0, len(piece) - 2))
        cut = len(piece) if cut < 0 else cut
        self._cut = piece[cut:]
        self.add(unquote_to_bytes(piece[:cut].replace(b"+", b" ")))

    def end(self) -> str:
        """Returns the text, and begins another."""
        rest = self._cut.replace(b"+", b" ")  # what begins as an escape and is none
        self._texts.append(self._decoder.decode(rest, final=True))
        text = "".join(self._texts)
        self._decoder.reset()
        self._texts, self._cut = [], b""
        return text
