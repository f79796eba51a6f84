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
# Encodings with two bytes for most characters, and the first bytes of frequent ones: kana and the first level of kanji, hangul, and the
# first levels of simplified and of traditional Chinese. Korean goes before Chinese, as its first bytes are among the Chinese ones.
_FREQUENT = {
    "cp932": (*range(0x82, 0x84), *range(0x88, 0x99)),
    "cp949": range(0xB0, 0xC9),
    "gb18030": range(0xB0, 0xD8),
    "big5": range(0xA4, 0xC7),
}
EAST_ASIAN = tuple(_FREQUENT)
_SAMPLED = 2**16
_LETTER = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff66-\uff9d"
_LETTERS = re.compile(r"[\u3041-\u30fa\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff]")
# Accents in a western name, read as one of these encodings, are next to its other letters.
_MIXED = re.compile(f"[A-Za-z][{_LETTER}]|[{_LETTER}][A-Za-z]")
_PRIVATE = re.compile(r"[\ue000-\uf8ff]")
_FEWEST_LETTERS = 4
_LIKELY = 0.7  # the share of frequent letters: names have rare ones, too
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
            return _without_mark(file, start)
        high.update(piece.translate(None, _ASCII))
        has_control |= _CONTROL.search(piece) is not None
    if not high:
        return "utf-8", ()
    offered = tuple(one for one in SINGLE_BYTE if _is_in(io.BytesIO(bytes(high)), one))
    if _is_in(file, "utf-8"):
        return "utf-8", ("utf-8", *offered)
    if has_control:
        raise NotText("encoding")
    offered = (*_east_asian(file, start), *offered)
    return offered[0], offered


def _without_mark(file: BinaryIO, start: bytes) -> tuple[str, tuple[str, ...]]:
    """Returns UTF-16 for a file without a byte order mark, as some databases write it: most of its characters have one blank byte. Raises NotText."""
    sample = start[:_SAMPLED]
    for encoding, blank, other in (("utf-16-le", sample[1::2], sample[::2]), ("utf-16-be", sample[::2], sample[1::2])):
        if 2 * blank.count(0) > len(blank) and 0 not in other and _is_in(file, encoding):
            if _CONTROL.search(sample.decode(encoding, "ignore").encode("latin-1", "ignore")):
                break  # a small binary file
            return encoding, (encoding,)
    raise NotText("kind")


def _east_asian(file: BinaryIO, start: bytes) -> list[str]:
    """Returns the encodings of eastern Asia that a file may have, the most likely first; none if its letters do not look like it."""
    sample = start if len(start) <= _SAMPLED else start[: start.rfind(b"\n", 0, _SAMPLED) + 1]
    likely = {encoding: _likeness(sample, encoding) for encoding in EAST_ASIAN}
    found = sorted((one for one in EAST_ASIAN if likely[one] >= _LIKELY), key=lambda one: -likely[one])
    return [one for one in found if _is_in(file, one)]


def _likeness(sample: bytes, encoding: str) -> float:
    """Returns the share of frequent letters among those beyond ASCII; 0 if there are few, or if it is not a text in this encoding."""
    try:
        text = sample.decode(encoding)
    except UnicodeDecodeError:
        return 0
    letters = _LETTERS.findall(text)
    if len(letters) < _FEWEST_LETTERS or len(_MIXED.findall(text)) * 10 > len(letters) or _PRIVATE.search(text):
        return 0
    frequent = _FREQUENT[encoding]
    return sum(one.encode(encoding)[0] in frequent for one in letters) / len(letters)


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
