"""What kind of image some bytes are, and how large: read from their heads, without decoding them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

_PNG = b"\x89PNG\r\n\x1a\n"
_PNG_END = b"\x00\x00\x00\x00IEND\xaeB`\x82"
_JPEG, _JPEG_END = b"\xff\xd8", b"\xff\xd9"
# Frames: of the kinds 0xC0 to 0xCF all but tables (C4, CC) and what is reserved (C8).
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_JPEG_SCAN = 0xDA


@dataclass(frozen=True, slots=True)
class Image:
    """`kind` is how a file of it ends: png, jpg or webp."""

    kind: str
    width: int  # pixels
    height: int


def read_image(content: bytes) -> Image | None:
    """The image that `content` is, whole from its first byte to its last; None where it is none of the three kinds."""
    try:
        if content.startswith(_PNG) and content.endswith(_PNG_END):
            return _png(content)
        if content.startswith(_JPEG) and content.endswith(_JPEG_END):
            return _jpeg(content)
        if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
            return _webp(content)
    except IndexError:
        pass
    return None


def _png(content: bytes) -> Image | None:
    if content[8:16] != b"\x00\x00\x00\x0dIHDR":
        return None
    return Image("png", _big(content, 16, 4), _big(content, 20, 4))


def _jpeg(content: bytes) -> Image | None:
    for marker, at in _segments(content):
        if marker in _JPEG_FRAMES:
            return Image("jpg", _big(content, at + 5, 2), _big(content, at + 3, 2))
    return None


def _segments(content: bytes) -> Iterator[tuple[int, int]]:
    """The segments before the picture itself: the marker of each, and where its length stands."""
    at = 2
    while content[at] == 0xFF:
        marker = content[at + 1]
        if marker == _JPEG_SCAN:
            return
        yield marker, at + 2
        at += 2 + max(_big(content, at + 2, 2), 2)


def _webp(content: bytes) -> Image | None:
    if _little(content, 4, 4) + 8 != len(content):
        return None
    kind = content[12:16]
    if kind == b"VP8 " and content[23:26] == b"\x9d\x01\x2a":
        return Image("webp", _little(content, 26, 2) & 0x3FFF, _little(content, 28, 2) & 0x3FFF)
    if kind == b"VP8L" and content[20] == 0x2F:
        bits = _little(content, 21, 4)
        return Image("webp", (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
    if kind == b"VP8X":
        return Image("webp", _little(content, 24, 3) + 1, _little(content, 27, 3) + 1)
    return None


def _big(content: bytes, at: int, count: int) -> int:
    return int.from_bytes(_part(content, at, count), "big")


def _little(content: bytes, at: int, count: int) -> int:
    return int.from_bytes(_part(content, at, count), "little")


def _part(content: bytes, at: int, count: int) -> bytes:
    if at + count > len(content):
        raise IndexError(at)
    return content[at : at + count]
