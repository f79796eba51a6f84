"""What may be a picture: of three kinds, whole, and within its limits."""

import asyncio
from collections.abc import Callable
from importlib import resources

import pytest
from tests.catalogue.images import jpeg, png, webp_extended, webp_lossless, webp_lossy
from tests.distributed import KEEPS_WAITING
from tests.waiting import until

from largesse.catalogue import pictures
from largesse.db.pool import Database
from largesse.db.scope import OPERATOR

MAKERS: dict[Callable[..., bytes], str] = {
    png: "png",
    jpeg: "jpg",
    webp_lossy: "webp",
    webp_lossless: "webp",
    webp_extended: "webp",
}


@pytest.mark.parametrize("make", MAKERS)
def test_kind_and_size_are_read_from_the_head(make: Callable[..., bytes]) -> None:
    for width, height in ((64, 2_000), (480, 270), (255, 257)):
        assert pictures.read_image(make(width, height)) == pictures.Image(MAKERS[make], width, height)


def test_progressive_frames_are_frames() -> None:
    assert pictures.read_image(jpeg(480, 270, frame=0xC2)) == pictures.Image("jpg", 480, 270)


@pytest.mark.parametrize("make", MAKERS)
def test_what_was_cut_short_or_goes_on_is_no_image(make: Callable[..., bytes]) -> None:
    whole = make()
    for cut in range(1, len(whole)):
        assert pictures.read_image(whole[:cut]) is None, cut
    assert pictures.read_image(whole + b"<script>") is None


@pytest.mark.parametrize("content", [b"", b"GIF89a", b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"\xff\xd8\xff\xd9"])
def test_other_files_are_refused(content: bytes) -> None:
    with pytest.raises(pictures.PictureRefused, match="must be a whole PNG, JPEG or WebP file"):
        pictures.read_picture(content)


@pytest.mark.parametrize(
    ("width", "height", "fits"),
    [(64, 64, True), (63, 64, False), (64, 63, False), (2_000, 64, True), (2_001, 64, False), (64, 2_001, False)],
)
def test_sides_have_limits(width: int, height: int, fits: bool) -> None:
    content = png(width, height)
    if fits:
        assert pictures.read_picture(content).content == content
    else:
        with pytest.raises(pictures.PictureRefused, match=f"64 to 2000 pixels each way, not {width} by {height}"):
            pictures.read_picture(content)


def test_bytes_have_a_limit() -> None:
    padding = pictures.MAX_BYTES - len(webp_lossy())
    largest = webp_lossy_of(padding)
    assert len(largest) == pictures.MAX_BYTES
    pictures.read_picture(largest)
    with pytest.raises(pictures.PictureRefused, match="at most 256 KiB"):
        pictures.read_picture(webp_lossy_of(padding + 2))


def webp_lossy_of(padding: int) -> bytes:
    whole = webp_lossy() + b"JUNK" + (padding - 8).to_bytes(4, "little") + bytes(padding - 8)
    return whole[:4] + (len(whole) - 8).to_bytes(4, "little") + whole[8:]


def test_a_name_is_of_the_content() -> None:
    first, same, other = pictures.read_picture(png()), pictures.read_picture(png()), pictures.read_picture(png(shade=7))
    assert first.name == same.name != other.name
    assert pictures.is_name(first.name)
    assert pictures.media_type(first.name) == "image/png"
    assert pictures.media_type(pictures.read_picture(jpeg()).name) == "image/jpeg"
    assert not any(
        pictures.is_name(name) for name in ("", "a.png", f"{first.name}x", f"../{first.name}", first.name.upper())
    )


async def test_two_people_save_the_same_picture_at_once(database: Database) -> None:
    picture = pictures.read_picture(png())
    async with database.connection(OPERATOR) as first:
        saving = first.transaction()
        await saving.start()
        await pictures.save_pictures(first, [picture])

        async def save_too() -> None:
            async with database.transaction(OPERATOR) as second:
                await pictures.save_pictures(second, [picture])

        other = asyncio.create_task(save_too())
        await until(lambda: database.fetchval(OPERATOR, KEEPS_WAITING, first.get_server_pid()))
        await saving.commit()
        await other
    assert await database.fetchval(OPERATOR, "SELECT count(*) FROM pictures") == 1


def test_the_pictures_of_the_demo_are_some() -> None:
    folder = resources.files("largesse.seed") / "pictures"
    names = {pictures.read_picture(file.read_bytes()).name for file in folder.iterdir()}
    assert len(names) == len(list(folder.iterdir())) > 20
