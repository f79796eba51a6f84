"""Small images of each kind: whole PNGs, and of the others all that tells what they are."""

import struct
import zlib
from collections.abc import Sequence


def png(width: int = 80, height: int = 64, shade: int = 128, *, said: Sequence[tuple[bytes, bytes]] = ()) -> bytes:
    """A PNG of one shade of grey. `said` are further chunks, each with its kind."""
    rows = b"".join(b"\0" + bytes([shade]) * width for _ in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = ((b"IHDR", head), *said, (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def jpeg(
    width: int = 80, height: int = 64, frame: int = 0xC0, *, said: Sequence[tuple[int, bytes]] = (), behind: bytes = b""
) -> bytes:
    """A JPEG. `said` are further segments, each with its marker; `behind` follows the image."""
    segments = [
        b"\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00",
        *(b"\xff" + bytes([marker]) + struct.pack(">H", len(data) + 2) + data for marker, data in said),
        b"\xff\xc4\x00\x04\x00\x00",  # a table, whose marker is among those of frames
        b"\xff" + bytes([frame]) + struct.pack(">HBHHB", 8, 8, height, width, 1),
    ]
    return b"\xff\xd8" + b"".join(segments) + b"\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00\x2a\xff\x00\xff\xd9" + behind


def webp(*chunks: tuple[bytes, bytes]) -> bytes:
    parts = b"".join(kind + struct.pack("<I", len(head)) + head + b"\0" * (len(head) % 2) for kind, head in chunks)
    return b"RIFF" + struct.pack("<I", 4 + len(parts)) + b"WEBP" + parts


def webp_lossy(width: int = 80, height: int = 64) -> bytes:
    return webp((b"VP8 ", b"\xf0\x03\x00\x9d\x01\x2a" + struct.pack("<HH", width, height) + bytes(8)))


def webp_lossless(width: int = 80, height: int = 64) -> bytes:
    return webp((b"VP8L", b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14) + bytes(7)))


def webp_extended(
    width: int = 80, height: int = 64, *, flags: int = 0x10, said: Sequence[tuple[bytes, bytes]] = ()
) -> bytes:
    sides = struct.pack("<I", width - 1)[:3] + struct.pack("<I", height - 1)[:3]
    return webp((b"VP8X", bytes([flags]) + bytes(3) + sides), *said)
