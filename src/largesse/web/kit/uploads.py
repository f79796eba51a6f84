"""Parsing a form that a file is handed in with (multipart/form-data, RFC 7578)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import Request

from largesse.web.kit.forms import BadForm, FormParser, PieceDecoder, UrlencodedParser

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

_MAX_HEADER = 1_000


def form_parser(request: Request, most_fields: int, *, takes_files: bool) -> FormParser:
    """The parser for the kind of body that a form says it has. Raises BadForm for a kind that no form of ours sends."""
    media_type, options = parse_options_header(request.headers.get("content-type", ""))
    if media_type == b"application/x-www-form-urlencoded":
        return UrlencodedParser(most_fields)
    boundary = options.get(b"boundary")
    if media_type != b"multipart/form-data" or not boundary or not takes_files:
        raise BadForm
    return UploadParser(boundary, most_fields)


class UploadParser:
    """Parses a multipart body: its fields in their order, and its files by the name of their field."""

    def __init__(self, boundary: bytes, most_parts: int) -> None:
        """Raises BadForm for a boundary that there cannot be."""
        self.fields: list[tuple[str, str]] = []
        self.files: dict[str, bytes] = {}
        self._are_all = False  # its end has come
        self._most_parts = most_parts
        self._count = 0
        self._header: list[bytes] = [b"", b""]
        self._disposition = b""
        self._name = b""
        self._file: bytearray | None = None  # None where the part is a field
        self._is_chosen = False  # a file without a name is what browsers send where none was chosen
        self._text = PieceDecoder()
        try:
            self._parser = MultipartParser(boundary, self._callbacks())
        except FormParserError:
            raise BadForm from None

    def write(self, piece: bytes) -> None:
        """Takes the next piece. Raises BadForm for what no form of ours sends."""
        try:
            self._parser.write(piece)
        except (FormParserError, ValueError):
            raise BadForm from None

    def end(self) -> None:
        """Raises BadForm where the body ends before its last part does."""
        if not self._are_all:
            raise BadForm

    def _callbacks(self) -> MultipartCallbacks:
        """What the parser calls."""
        return {
            "on_part_begin": self._begin,
            "on_header_field": lambda data, start, end: self._head(0, data[start:end]),
            "on_header_value": lambda data, start, end: self._head(1, data[start:end]),
            "on_header_end": self._end_header,
            "on_headers_finished": self._begin_content,
            "on_part_data": lambda data, start, end: self._add(data[start:end]),
            "on_part_end": self._end,
            "on_end": self._end_all,
        }

    def _end_all(self) -> None:
        self._are_all = True

    def _begin(self) -> None:
        self._count += 1
        if self._count > self._most_parts:
            raise BadForm
        self._disposition = b""

    def _head(self, at: int, piece: bytes) -> None:
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
        self._is_chosen = bool(options.get(b"filename"))

    def _add(self, piece: bytes) -> None:
        if self._file is None:
            self._text.add(piece)
        else:
            self._file += piece

    def _end(self) -> None:
        name = self._name.decode("utf-8", "replace")
        if self._file is None:
            self.fields.append((name, self._text.end()))
        elif self._is_chosen:
            self.files.setdefault(name, bytes(self._file))
        self._file = None
