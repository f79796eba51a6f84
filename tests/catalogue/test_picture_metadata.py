"""Pictures are public: what cameras and programs write into them, such as the place of a photo, is removed. What is shown stays."""

import struct

import pytest
from tests.catalogue.images import jpeg, png, webp_extended

from largesse.catalogue.pictures import PictureRefused, read_picture, without_metadata

PLACE = b"48.8584 N, 2.2945 E"
PROFILE, ADOBE = b"ICC_PROFILE\0\1\1colours", b"Adobe\0\x64\0\0\0\0\1"


def exif(orientation: int, order: str = ">") -> bytes:
    """What a camera writes: how the photo is turned, and where it was taken."""
    mark = {">": b"MM", "<": b"II"}[order]
    head = mark + struct.pack(f"{order}HIH", 0x2A, 8, 2)
    entries = struct.pack(f"{order}HHIHH", 0x0112, 3, 1, orientation, 0) + struct.pack(f"{order}HHII", 0x8825, 4, 1, 38)
    return b"Exif\0\0" + head + entries + bytes(4) + PLACE


def test_a_photo_loses_its_place_and_keeps_its_colours() -> None:
    shown = [(0xE2, PROFILE), (0xEE, ADOBE)]
    hidden = [
        (0xE1, exif(1)),
        (0xE1, b"http://ns.adobe.com/xap/1.0/\0" + PLACE),
        (0xE2, b"MPF\0" + PLACE),
        (0xED, PLACE),
        (0xFE, PLACE),
    ]
    kept = read_picture(jpeg(said=[*hidden, *shown], behind=jpeg(said=hidden)))
    assert kept.content == jpeg(said=shown)
    assert read_picture(kept.content) == kept


@pytest.mark.parametrize("order", "<>")
def test_a_photo_stays_upright(order: str) -> None:
    kept = without_metadata("jpg", jpeg(said=[(0xE1, exif(6, order))]))
    entry = struct.pack(">HHIHH", 0x0112, 3, 1, 6, 0)
    assert kept == jpeg(said=[(0xE1, b"Exif\0\0MM" + struct.pack(">HIH", 0x2A, 8, 1) + entry + bytes(4))])
    assert without_metadata("jpg", kept) == kept


@pytest.mark.parametrize(
    "broken", [b"Exif\0\0", b"Exif\0\0II", b"Exif\0\0MM\0\x2a\xff\xff\xff\xff", exif(9), exif(6)[:20]]
)
def test_a_photo_that_does_not_say_how_it_is_turned_is_upright(broken: bytes) -> None:
    assert without_metadata("jpg", jpeg(said=[(0xE1, broken)])) == jpeg()


def test_a_png_loses_its_texts() -> None:
    texts = [(kind, PLACE) for kind in (b"eXIf", b"tEXt", b"zTXt", b"iTXt", b"tIME")]
    shown = [(b"gAMA", bytes(4))]
    assert read_picture(png(said=[*texts, *shown])).content == png(said=shown)


def test_a_webp_loses_its_place_and_does_not_name_it() -> None:
    shown, hidden = (b"VP8 ", b"image"), [(b"EXIF", PLACE), (b"XMP ", PLACE)]
    kept = read_picture(webp_extended(flags=0x1C, said=[shown, *hidden]))
    assert kept.content == webp_extended(flags=0x10, said=[shown])


@pytest.mark.parametrize(
    "broken",
    [
        png()[:33] + b"\0\0\xff\xffIDAT" + png()[-12:],
        jpeg(said=[(0xFE, b"x")]).replace(b"\xff\xfe\0\3x", b"\xff\xfe\0\3xyz"),
        webp_extended(said=[(b"EXIF", PLACE)]).replace(b"EXIF\x13", b"EXIF\xff"),
    ],
)
def test_a_picture_whose_parts_do_not_fit_is_refused(broken: bytes) -> None:
    with pytest.raises(PictureRefused, match="must be a whole PNG, JPEG or WebP file"):
        read_picture(broken)
