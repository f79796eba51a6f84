"""Pictures of products: which images are allowed, and storing them under names made from their content.

Reads the kind and the size of an image from its header, without decoding it. Pictures are public, and cameras write into them where and
when a photo was taken. So only the parts of a file that are shown are stored: no camera, comments, previews or further images.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from largesse.base.confidential import Confidential
from largesse.db.pool import Connection

_PNG = b"\x89PNG\r\n\x1a\n"
_PNG_END = b"\x00\x00\x00\x00IEND\xaeB`\x82"
_JPEG, _JPEG_END = b"\xff\xd8", b"\xff\xd9"
# The markers of frames: C0 to CF without those of tables (C4, CC) and the reserved one (C8).
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_JPEG_SCAN = 0xDA
# The names in $1 that exist already.
_KNOWN = "SELECT name FROM pictures WHERE name = ANY($1::text[])"
_ADD = "INSERT INTO pictures (name, content) VALUES ($1, $2) ON CONFLICT DO NOTHING"
_CONTENT = "SELECT content FROM pictures WHERE name = $1"
_OF_PRODUCTS = "SELECT id, picture FROM products WHERE id = ANY($1::int[]) AND picture IS NOT NULL"


class Image(msgspec.Struct, frozen=True):
    """An image. `kind` is its file extension: png, jpg or webp."""

    kind: str
    width: int  # pixels
    height: int


def read_image(content: bytes) -> Image | None:
    """Returns the image in `content`. None if it is incomplete, or not of the three kinds."""
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
    """Yields the segments before the image data: each marker, and the position of its length."""
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


MAX_BYTES = 256 * 1024
MIN_SIDE, MAX_SIDE = 64, 2_000  # pixels
_NAME = re.compile(r"[0-9a-f]{32}\.(png|jpg|webp)")
_NOT_WHOLE = "must be a whole PNG, JPEG or WebP file"
_TYPES = {"png": "image/png", "jpg": "image/jpeg", "webp": "image/webp"}


class PictureRefused(Exception):
    """A file is not a picture, or too large. The text follows the name of a field."""


class Picture(Confidential, frozen=True):
    """A picture with its public name."""

    name: str
    content: bytes


def read_picture(content: bytes) -> Picture:
    """Returns the picture of these bytes, without their metadata. Raises PictureRefused with the limit."""
    if len(content) > MAX_BYTES:
        raise PictureRefused(f"must have at most {MAX_BYTES // 1024} KiB, and has more")
    image = read_image(content)
    if image is None:
        raise PictureRefused(_NOT_WHOLE)
    if not all(MIN_SIDE <= side <= MAX_SIDE for side in (image.width, image.height)):
        raise PictureRefused(
            f"must have from {MIN_SIDE} to {MAX_SIDE} pixels each way, not {image.width} by {image.height}"
        )
    try:
        shown = without_metadata(image.kind, content)
    except ValueError:
        raise PictureRefused(_NOT_WHOLE) from None
    return Picture(f"{hashlib.sha256(shown).hexdigest()[:32]}.{image.kind}", shown)


async def save_pictures(connection: Connection, pictures: Iterable[Picture]) -> None:
    """Adds the pictures that are not stored yet."""
    wanted = {picture.name: picture.content for picture in pictures}
    known = await connection.fetch(_KNOWN, list(wanted))
    for row in known:
        del wanted[row["name"]]
    for name, content in wanted.items():
        await connection.execute(_ADD, name, content)


async def read_content(connection: Connection, name: str) -> bytes | None:
    """Returns the picture with that name; None if there is none."""
    if not _NAME.fullmatch(name):
        return None
    content: bytes | None = await connection.fetchval(_CONTENT, name)
    return content


async def pictures_of(connection: Connection, product_ids: Sequence[int]) -> dict[int, str]:
    """Returns the names of products' pictures, without products that have none."""
    rows = await connection.fetch(_OF_PRODUCTS, product_ids)
    return {row["id"]: row["picture"] for row in rows}


def is_name(text: str) -> bool:
    """Returns whether `text` could be the name of a picture."""
    return _NAME.fullmatch(text) is not None


def media_type(name: str) -> str:
    """Returns the media type of a picture."""
    return _TYPES[name.rpartition(".")[2]]


def picture_path(name: str) -> str:
    """Returns the path of a picture below the public address."""
    return f"/pictures/{name}"


_PNG_HEAD, _PNG_REMOVED = 8, frozenset({b"eXIf", b"tEXt", b"zTXt", b"iTXt", b"tIME"})
_WEBP_REMOVED, _WEBP_SAYS_SO = frozenset({b"EXIF", b"XMP "}), 0x08 | 0x04  # the chunks, and their flags in VP8X
_END_MARKER, _SCAN_MARKER, _JPEG_COMMENT, _JPEG_EXIF = 0xD9, 0xDA, 0xFE, 0xE1
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
    parts = {"png": _png_parts, "jpg": _jpeg_parts, "webp": _webp_parts}[kind](memoryview(content))
    kept = b"".join(parts)
    return kept if kind != "webp" else kept[:4] + (len(kept) - 8).to_bytes(4, "little") + kept[8:]


def _png_parts(content: memoryview) -> Iterator[memoryview]:
    yield content[:_PNG_HEAD]
    at = _PNG_HEAD
    while at < len(content):
        end = at + 12 + int.from_bytes(_view(content, at, 4), "big")
        if _view(content, at + 4, 4) not in _PNG_REMOVED:
            yield _view(content, at, end - at)
        at = end


def _webp_parts(content: memoryview) -> Iterator[bytes | memoryview]:
    yield content[:12]
    at = 12
    while at < len(content):
        size = int.from_bytes(_view(content, at + 4, 4), "little")
        chunk, kind = _view(content, at, 8 + size + size % 2), bytes(_view(content, at, 4))
        if kind == b"VP8X":
            yield b"".join((chunk[:8], bytes([_view(content, at + 8, 1)[0] & ~_WEBP_SAYS_SO]), chunk[9:]))
        elif kind not in _WEBP_REMOVED:
            yield chunk
        at += len(chunk)


def _jpeg_parts(content: memoryview) -> Iterator[bytes | memoryview]:
    """Yields the parts up to the end of the first image: some phones write a film or a second image behind it."""
    yield content[:2]
    at = 2
    while True:
        if _view(content, at, 1)[0] != 0xFF:
            raise ValueError("no marker")
        marker = _view(content, at + 1, 1)[0]
        if marker == 0xFF:  # a filler before a marker
            at += 1
            continue
        if marker == _END_MARKER:
            yield content[at : at + 2]
            return
        end = at + 2 + int.from_bytes(_view(content, at + 2, 2), "big")
        segment = _view(content, at, end - at)
        if marker == _SCAN_MARKER:
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


def _view(content: memoryview, at: int, count: int) -> memoryview:
    if at + count > len(content):
        raise ValueError("cut short")
    return content[at : at + count]
