"""Removes from pictures what is not shown: where and when a photo was taken, its camera, comments, previews, further images.

Pictures are public, and cameras write the place into them. Copies the parts of a file that are shown, without decoding them.
"""

import re
from collections.abc import Iterator

_PNG_HEAD, _PNG_REMOVED = 8, frozenset({b"eXIf", b"tEXt", b"zTXt", b"iTXt", b"tIME"})
_WEBP_REMOVED, _WEBP_SAYS_SO = frozenset({b"EXIF", b"XMP "}), 0x08 | 0x04  # the chunks, and their flags in VP8X
_JPEG_END, _JPEG_SCAN, _JPEG_COMMENT, _JPEG_EXIF = 0xD9, 0xDA, 0xFE, 0xE1
_JPEG_APPLICATIONS = range(0xE0, 0xF0)
# What programs need to show the picture: its density, its colours, and how Adobe's programs wrote these.
_JPEG_SHOWN = {0xE0: b"JFIF\0", 0xE2: b"ICC_PROFILE\0", 0xEE: b"Adobe"}
# The next marker in the data of a scan, in which zeros and restarts may follow 0xFF.
_AFTER_SCAN = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")
_EXIF = b"Exif\0\0"
_ORIENTATION = 0x0112
_UPRIGHT, _LAST_ORIENTATION = 1, 8


def without_metadata(kind: str, content: bytes) -> bytes:
    """Returns a picture of that kind (png, jpg or webp) without its metadata. A photo stays upright. Raises ValueError if the picture is broken."""
    parts = {"png": _png, "jpg": _jpeg, "webp": _webp}[kind](memoryview(content))
    kept = b"".join(parts)
    return kept if kind != "webp" else kept[:4] + (len(kept) - 8).to_bytes(4, "little") + kept[8:]


def _png(content: memoryview) -> Iterator[memoryview]:
    yield content[:_PNG_HEAD]
    at = _PNG_HEAD
    while at < len(content):
        end = at + 12 + int.from_bytes(_part(content, at, 4), "big")
        if _part(content, at + 4, 4) not in _PNG_REMOVED:
            yield _part(content, at, end - at)
        at = end


def _webp(content: memoryview) -> Iterator[bytes | memoryview]:
    yield content[:12]
    at = 12
    while at < len(content):
        size = int.from_bytes(_part(content, at + 4, 4), "little")
        chunk, kind = _part(content, at, 8 + size + size % 2), bytes(_part(content, at, 4))
        if kind == b"VP8X":
            yield b"".join((chunk[:8], bytes([_part(content, at + 8, 1)[0] & ~_WEBP_SAYS_SO]), chunk[9:]))
        elif kind not in _WEBP_REMOVED:
            yield chunk
        at += len(chunk)


def _jpeg(content: memoryview) -> Iterator[bytes | memoryview]:
    """Yields the parts up to the end of the first image: some phones write a film or a second image behind it."""
    yield content[:2]
    at = 2
    while True:
        if _part(content, at, 1)[0] != 0xFF:
            raise ValueError("no marker")
        marker = _part(content, at + 1, 1)[0]
        if marker == 0xFF:  # a filler before a marker
            at += 1
            continue
        if marker == _JPEG_END:
            yield content[at : at + 2]
            return
        end = at + 2 + int.from_bytes(_part(content, at + 2, 2), "big")
        segment = _part(content, at, end - at)
        if marker == _JPEG_SCAN:
            if (found := _AFTER_SCAN.search(content, end)) is None:
                raise ValueError("no end")
            end = found.start()
            segment = content[at:end]
        yield from _shown(marker, segment)
        at = end


def _shown(marker: int, segment: memoryview) -> Iterator[bytes | memoryview]:
    """Yields what remains of a segment of a JPEG file."""
    data = segment[4:]
    if marker == _JPEG_EXIF and data[: len(_EXIF)] == _EXIF:
        orientation = _orientation(bytes(data[len(_EXIF) :]))
        if _UPRIGHT < orientation <= _LAST_ORIENTATION:
            yield _exif(orientation)
    elif marker in _JPEG_SHOWN:
        said = _JPEG_SHOWN[marker]
        if data[: len(said)] == said:
            yield segment
    elif marker not in _JPEG_APPLICATIONS and marker != _JPEG_COMMENT:
        yield segment


def _orientation(tiff: bytes) -> int:
    """Returns how a photo is turned, from 1 (upright) to 8; 1 if it does not say."""
    order = "little" if tiff[:2] == b"II" else "big"

    def number(at: int, count: int) -> int:
        return int.from_bytes(tiff[at : at + count], order)  # type: ignore[arg-type]

    first = number(4, 4)
    for at in range(first + 2, min(first + 2 + 12 * number(first, 2), len(tiff)), 12):
        if number(at, 2) == _ORIENTATION:
            return number(at + 8, 2)
    return _UPRIGHT


def _exif(orientation: int) -> bytes:
    """Returns a segment that says how a photo is turned, and nothing else."""
    entry = _ORIENTATION.to_bytes(2, "big") + b"\0\3\0\0\0\1" + orientation.to_bytes(2, "big") + b"\0\0"
    data = _EXIF + b"MM\0\x2a\0\0\0\x08\0\1" + entry + bytes(4)
    return b"\xff\xe1" + (len(data) + 2).to_bytes(2, "big") + data


def _part(content: memoryview, at: int, count: int) -> memoryview:
    if at + count > len(content):
        raise ValueError("cut short")
    return content[at : at + count]
