"""Reads a posted form a few kilobytes at a time, its token first.

Parses urlencoded bodies, and for uploads multipart/form-data (RFC 7578).
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Protocol
from urllib.parse import unquote_to_bytes
from weakref import WeakMethod

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import Request

from largesse.base.cooperative import CooperativeRunner, Steps, first_slice
from largesse.base.errors import InvalidRequest
from largesse.web.kit.body import BodyLimits, BodyShare, BodyStream
from largesse.web.kit.problems import SlowRequest

FORM_LIMITS = BodyLimits(most_bytes=64 * 1024, whole_s=15.0, pause_s=15.0)
TOKEN_WITHIN_BYTES = 20 * 1024  # a form whose token comes last must be shorter than this
_MAX_FIELDS = 40
_MAX_HEADER = 1_000
# Decoding this much fits in one turn of the cooperative runner.
_PIECE_BYTES = 2 * 1024
# A form longer than this is parsed with pauses, however fast its bytes arrive.
_BRISK_BYTES = 256 * 1024

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks


class BadForm(Exception):
    """A body that none of our forms posts, or a post that another site made the browser send."""


class FormParser(Protocol):
    """Parses the pieces of a body into fields and files."""

    fields: list[tuple[str, str]]
    files: dict[str, bytes]
    file_names: dict[str, str]

    def write(self, piece: bytes) -> None:
        """Parses the next piece. Raises BadForm."""

    def end(self) -> None:
        """Ends the body. Raises BadForm."""


def require_own_site(request: Request) -> None:
    """Raises BadForm if a page of another site made the browser send the request, as Fetch Metadata says."""
    if request.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
        raise BadForm


async def read_form(request: Request) -> dict[str, str]:
    """Returns the fields of a urlencoded body, the first of each name. Raises TooLarge, and BadForm, also for a post from another site."""
    form = PostedForm(request, FORM_LIMITS)
    await form.read()
    return dict(reversed(form.fields))


class PostedForm:
    """A form that is being posted. Its token is read first, so that a form without a valid token is not read to the end."""

    def __init__(
        self, request: Request, limits: BodyLimits, share: BodyShare | None = None, *, parser: FormParser | None = None
    ) -> None:
        """Reads a urlencoded body unless `parser` is for another kind. Raises BadForm for other kinds, and for a post from another site."""
        require_own_site(request)
        if parser is None:
            media_type = request.headers.get("content-type", "").split(";", 1)[0].strip().lower()
            if media_type != "application/x-www-form-urlencoded":
                raise BadForm
            parser = UrlencodedParser(_MAX_FIELDS)
        self._parser = parser
        self.fields = parser.fields  # the fields that were read so far, in order
        self.files = parser.files  # by the name of their field; fields in which no file was chosen are missing
        self.file_names = parser.file_names  # file names as the browser sent them
        self._stream = BodyStream(request.receive, limits, share)
        self._chunk = b""
        self._read = 0  # bytes of the chunk that were parsed
        self._parsed = 0  # how many bytes of the body were parsed in all
        self._is_whole = False

    async def token(self) -> str:
        """Returns the token; empty if the first bytes hold none. Raises BadForm and the errors of `read`."""
        while True:
            for name, value in self.fields:
                if name == "token":
                    return value
            if self._is_whole or self._parsed >= TOKEN_WITHIN_BYTES:
                return ""
            if self._read == len(self._chunk):
                await self._receive()
            self._parse_piece()

    async def read(self, runner: CooperativeRunner | None = None, key: Hashable = None) -> None:
        """Reads the rest. `runner` parses a long body, with `key` as the one it works for.

        Raises BadForm, TooLarge, and the errors of the share of memory.
        """
        while not self._is_whole:
            if self._read == len(self._chunk):
                await self._receive()
            steps = self._parse_chunk()
            if runner is not None and self._parsed > _BRISK_BYTES:
                await runner.finish(key, steps, is_part=True)
            elif first_slice(steps) is None:
                if runner is None:
                    for _ in steps:
                        pass
                else:
                    await runner.finish(key, steps)

    async def _receive(self) -> None:
        try:
            chunk = await self._stream.next()
        except (SlowRequest, InvalidRequest):  # the client is gone
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
        self.files: dict[str, bytes] = {}  # always empty: this kind of form has no files
        self.file_names: dict[str, str] = {}
        self._most_fields = most_fields
        self._count = 1
        self._name: str | None = None  # the name of the field whose value is being read
        self._text = PieceDecoder()

    def write(self, piece: bytes) -> None:
        """Parses the next piece. Raises BadForm for bytes beyond ASCII, and for too many fields."""
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
    """Decodes UTF-8 text that arrives in pieces. Replaces invalid bytes."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._texts: list[str] = []
        self._cut = b""  # the start of an escape that ends in the next piece

    def add(self, piece: bytes) -> None:
        """Decodes the next bytes."""
        self._texts.append(self._decoder.decode(piece))

    def add_urlencoded(self, piece: bytes) -> None:
        """Decodes the next bytes of a urlencoded body."""
        piece = self._cut + piece
        cut = piece.find(b"%", max(0, len(piece) - 2))
        cut = len(piece) if cut < 0 else cut
        self._cut = piece[cut:]
        self.add(unquote_to_bytes(piece[:cut].replace(b"+", b" ")))

    def end(self) -> str:
        """Returns the text, and starts a new one."""
        rest = self._cut.replace(b"+", b" ")  # looks like the start of an escape but is none
        self._texts.append(self._decoder.decode(rest, final=True))
        text = "".join(self._texts)
        self._decoder.reset()
        self._texts, self._cut = [], b""
        return text


def form_parser(request: Request, most_fields: int, *, takes_files: bool) -> FormParser:
    """Returns the parser for the declared kind of body. Raises BadForm for a kind that none of our forms sends."""
    media_type, options = parse_options_header(request.headers.get("content-type", ""))
    if media_type == b"application/x-www-form-urlencoded":
        return UrlencodedParser(most_fields)
    boundary = options.get(b"boundary")
    if media_type != b"multipart/form-data" or not boundary or not takes_files:
        raise BadForm
    return UploadParser(boundary, most_fields)


def _weak(method: Callable[..., None]) -> Callable[..., None]:
    """Returns a function that calls a method without keeping its object: a form is freed when nobody needs it, not by a garbage collection."""
    weak = WeakMethod(method)

    def call(*arguments: bytes | int) -> None:
        bound = weak()
        assert bound is not None, "its object calls"
        bound(*arguments)

    return call


class UploadParser:
    """Parses a multipart body: fields in order, files by the name of their field."""

    def __init__(self, boundary: bytes, most_parts: int) -> None:
        """Raises BadForm for an invalid boundary."""
        self.fields: list[tuple[str, str]] = []
        self.files: dict[str, bytes] = {}
        self.file_names: dict[str, str] = {}
        self._is_whole = False
        self._most_parts = most_parts
        self._count = 0
        self._header: list[bytes] = [b"", b""]
        self._disposition = b""
        self._name = b""
        self._file: bytearray | None = None  # None for a field
        self._file_name = b""  # empty if no file was chosen
        self._text = PieceDecoder()
        try:
            self._parser = MultipartParser(boundary, self._callbacks())
        except FormParserError:
            raise BadForm from None

    def write(self, piece: bytes) -> None:
        """Parses the next piece. Raises BadForm for a body that none of our forms sends."""
        try:
            self._parser.write(piece)
        except (FormParserError, ValueError):
            raise BadForm from None

    def end(self) -> None:
        """Raises BadForm if the body ends before its last part does."""
        if not self._is_whole:
            raise BadForm

    def _callbacks(self) -> MultipartCallbacks:
        return {
            "on_part_begin": _weak(self._begin),
            "on_header_field": _weak(self._add_to_header_name),
            "on_header_value": _weak(self._add_to_header_value),
            "on_header_end": _weak(self._end_header),
            "on_headers_finished": _weak(self._begin_content),
            "on_part_data": _weak(self._add),
            "on_part_end": _weak(self._end),
            "on_end": _weak(self._end_all),
        }

    def _end_all(self) -> None:
        self._is_whole = True

    def _begin(self) -> None:
        self._count += 1
        if self._count > self._most_parts:
            raise BadForm
        self._disposition = b""

    def _add_to_header_name(self, data: bytes, start: int, end: int) -> None:
        self._add_to_header(0, data[start:end])

    def _add_to_header_value(self, data: bytes, start: int, end: int) -> None:
        self._add_to_header(1, data[start:end])

    def _add_to_header(self, at: int, piece: bytes) -> None:
        self._header[at] += piece
        if len(self._header[at]) > _MAX_HEADER:
            raise BadForm

    def _end_header(self) -> None:
        name, value = self._header
        if name.lower() == b"content-disposition":
            self._disposition = value
        self._header = [b"", b""]

    def _begin_content(self) -> None:
        kind, options = parse_options_header(self._disposition)
        name = options.get(b"name")
        if kind != b"form-data" or name is None:
            raise BadForm
        self._name = name
        self._file = bytearray() if b"filename" in options else None
        self._file_name = options.get(b"filename", b"")

    def _add(self, data: bytes, start: int, end: int) -> None:
        if self._file is None:
            self._text.add(data[start:end])
        else:
            self._file += data[start:end]

    def _end(self) -> None:
        name = self._name.decode("utf-8", "replace")
        if self._file is None:
            self.fields.append((name, self._text.end()))
        elif self._file_name and name not in self.files:
            self.files[name] = bytes(self._file)
            self.file_names[name] = self._file_name.decode("utf-8", "replace")
        self._file = None
