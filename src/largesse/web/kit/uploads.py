"""Reading a form that a file is handed in with (multipart/form-data, RFC 7578)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import Request

from largesse.base.errors import Problem
from largesse.web.kit.body import BodyLimits, receive_body
from largesse.web.kit.forms import BadForm, require_own_site
from largesse.web.kit.problems import TooLarge

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

_MAX_PARTS = 20
_MAX_HEADER = 1_000


async def read_upload(request: Request, limits: BodyLimits) -> tuple[list[tuple[str, str]], dict[str, bytes]]:
    """The fields of a form in their order, and its files by the name of their field; an empty one where none was chosen.

    Raises TooLarge, and BadForm for one from another site and for what no form of ours sends.
    """
    require_own_site(request)
    media_type, options = parse_options_header(request.headers.get("content-type", ""))
    boundary = options.get(b"boundary")
    if media_type != b"multipart/form-data" or not boundary:
        raise BadForm
    try:
        body = await receive_body(request.receive, limits)
    except TooLarge:
        raise
    except Problem:
        raise BadForm from None
    parts = _Parts()
    try:
        parser = MultipartParser(boundary, parts.callbacks())
        parser.write(body)
        parser.finalize()
    except (FormParserError, ValueError):
        raise BadForm from None
    if not parts.are_all:
        raise BadForm
    return parts.fields, parts.files


class _Parts:
    """What the parser tells, part by part."""

    def __init__(self) -> None:
        self.fields: list[tuple[str, str]] = []
        self.files: dict[str, bytes] = {}
        self.are_all = False  # its end has come
        self._count = 0
        self._header: list[bytes] = [b"", b""]
        self._disposition = b""
        self._content: list[bytes] = []

    def callbacks(self) -> MultipartCallbacks:
        """What the parser calls."""
        return {
            "on_part_begin": self._begin,
            "on_header_field": lambda data, start, end: self._head(0, data[start:end]),
            "on_header_value": lambda data, start, end: self._head(1, data[start:end]),
            "on_header_end": self._end_header,
            "on_part_data": lambda data, start, end: self._content.append(data[start:end]),
            "on_part_end": self._end,
            "on_end": self._end_all,
        }

    def _end_all(self) -> None:
        self.are_all = True

    def _begin(self) -> None:
        self._count += 1
        if self._count > _MAX_PARTS:
            raise BadForm
        self._disposition, self._content = b"", []

    def _head(self, at: int, piece: bytes) -> None:
        self._header[at] += piece
        if len(self._header[at]) > _MAX_HEADER:
            raise BadForm

    def _end_header(self) -> None:
        name, value = self._header
        if name.lower() == b"content-disposition":
            self._disposition = value
        self._header = [b"", b""]

    def _end(self) -> None:
        kind, options = parse_options_header(self._disposition)
        name = options.get(b"name")
        if kind != b"form-data" or name is None:
            raise BadForm
        content = b"".join(self._content)
        if b"filename" in options:
            self.files.setdefault(name.decode("utf-8", "replace"), content)
        else:
            self.fields.append((name.decode("utf-8", "replace"), content.decode("utf-8", "replace")))
