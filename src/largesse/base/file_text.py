"""Reads the text of uploaded files in any encoding that spreadsheets and banks use."""

import codecs
import io
import re
from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import BinaryIO, TextIO

import msgspec

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_MARK = "\ufeff"  # a byte order mark, decoded
_PIECE = 2**20
# Encodings with one byte for each character, the most likely first.
SINGLE_BYTE = ("cp1252", "mac_roman", "cp850", "cp1250", "cp1251", "cp1253", "cp1254", "cp1256")
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
    encoding, offered = _find_encoding(io.BytesIO(data))
    return FileText(data.decode(encoding).removeprefix(_MARK), encoding, offered)


def open_text(file: BinaryIO) -> TextIO:
    """Returns a file as text, as `read_text` does, but reads it in pieces. Raises NotText."""
    encoding, _ = _find_encoding(file)
    file.seek(0)
    text = io.TextIOWrapper(file, encoding=encoding, newline="")
    if text.read(1) != _MARK:
        text.seek(0)
    return text


def _find_encoding(file: BinaryIO) -> tuple[str, tuple[str, ...]]:
    """Returns the encoding of a file, and those that a person may choose. Raises NotText."""
    start = next(_pieces(file), b"")
    for mark, encoding in _MARKS:
        if start.startswith(mark):
            if not _is_in(file, encoding):
                raise NotText("encoding")
            return encoding, (encoding,)
    high: set[int] = set()
    has_control = False
    for piece in _pieces(file):
        if b"\0" in piece:  # no text with one byte for each character has it
            raise NotText("kind")
        high.update(piece.translate(None, _ASCII))
        has_control |= _CONTROL.search(piece) is not None
    if not high:
        return "utf-8", ()
    offered = tuple(one for one in SINGLE_BYTE if _is_in(io.BytesIO(bytes(high)), one))
    if _is_in(file, "utf-8"):
        return "utf-8", ("utf-8", *offered)
    if has_control:
        raise NotText("encoding")
    return offered[0], offered


def _is_in(file: BinaryIO, encoding: str) -> bool:
    """Returns whether a file is a text in an encoding."""
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        return all("\0" not in decoder.decode(piece, final=not piece) for piece in chain(_pieces(file), [b""]))
    except UnicodeDecodeError:
        return False


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    file.seek(0)
    return iter(partial(file.read, _PIECE), b"")
