"""Reads the text of uploaded files, whatever encoding a spreadsheet or a bank wrote them in."""

from __future__ import annotations

import codecs
import re

import msgspec

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
# Encodings of one byte a character, the likeliest first.
SINGLE_BYTE = ("cp1252", "mac_roman", "cp850", "cp1250", "cp1251", "cp1253", "cp1254")
_ASCII = bytes(range(128))
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x19\x1b-\x1f]")


class NotText(Exception):
    """A file is not text, or text in an unknown encoding. `why` is `kind` or `encoding`."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class FileText(msgspec.Struct, frozen=True):
    """A text file with its encoding, and the encodings that a person may choose; none for ASCII."""

    text: str
    encoding: str
    offered: tuple[str, ...]


def read_text(data: bytes) -> FileText:
    """Returns the text of a file. Its byte order mark says the encoding, otherwise it is guessed. Raises NotText."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            text = _decoded(data.removeprefix(mark), encoding)
            if text is None or "\0" in text:
                raise NotText("encoding")
            return FileText(text, encoding, (encoding,))
    if b"\0" in data:  # no text of one byte a character has it
        raise NotText("kind")
    high = bytes(set(data.translate(None, _ASCII)))
    if not high:
        return FileText(data.decode("ascii"), "utf-8", ())
    offered = tuple(one for one in SINGLE_BYTE if _decoded(high, one) is not None)
    text = _decoded(data, "utf-8")
    if text is not None:
        return FileText(text, "utf-8", ("utf-8", *offered))
    if _CONTROL.search(data):
        raise NotText("encoding")
    return FileText(data.decode(offered[0]), offered[0], offered)


def _decoded(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        return None
