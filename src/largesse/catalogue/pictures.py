"""Pictures of products: what may be one, and keeping them by their content, which their names are made of."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from largesse.catalogue.images import read_image
from largesse.database.pool import Connection

MAX_BYTES = 256 * 1024
MIN_SIDE, MAX_SIDE = 64, 2_000  # pixels
_NAME = re.compile(r"[0-9a-f]{32}\.(png|jpg|webp)")
_TYPES = {"png": "image/png", "jpg": "image/jpeg", "webp": "image/webp"}


class PictureRefused(Exception):
    """It is no picture, or too large a one; the text says so behind the name of a field."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture with the name that it is served by."""

    name: str
    content: bytes = field(repr=False)


def read_picture(content: bytes) -> Picture:
    """The picture of these bytes. Raises PictureRefused, naming the limit."""
    if len(content) > MAX_BYTES:
        raise PictureRefused(f"must have at most {MAX_BYTES // 1024} KiB, and has more")
    image = read_image(content)
    if image is None:
        raise PictureRefused("must be a whole PNG, JPEG or WebP file")
    if not all(MIN_SIDE <= side <= MAX_SIDE for side in (image.width, image.height)):
        raise PictureRefused(
            f"must have from {MIN_SIDE} to {MAX_SIDE} pixels each way, not {image.width} by {image.height}"
        )
    return Picture(f"{hashlib.sha256(content).hexdigest()[:32]}.{image.kind}", content)


async def save_pictures(connection: Connection, pictures: Iterable[Picture]) -> None:
    """Adds those that are missing."""
    wanted = {picture.name: picture.content for picture in pictures}
    known = await connection.fetch("SELECT name FROM pictures WHERE name = ANY($1::text[])", list(wanted))
    for row in known:
        del wanted[row["name"]]
    for name, content in wanted.items():
        await connection.execute("INSERT INTO pictures (name, content) VALUES ($1, $2)", name, content)


async def read_content(connection: Connection, name: str) -> bytes | None:
    """The picture of that name; None where there is none."""
    if not _NAME.fullmatch(name):
        return None
    content: bytes | None = await connection.fetchval("SELECT content FROM pictures WHERE name = $1", name)
    return content


def is_name(text: str) -> bool:
    """Whether a picture could be called so."""
    return _NAME.fullmatch(text) is not None


def media_type(name: str) -> str:
    """What a picture of that name is served as."""
    return _TYPES[name.rpartition(".")[2]]


def picture_path(name: str) -> str:
    """Where the picture of that name is, below the public address."""
    return f"/pictures/{name}"
