"""Pictures beside a seed file, and what is said of products."""

from pathlib import Path

import asyncpg
import pytest
from tests.catalogue.images import jpeg, png
from tests.chained import CHAIN
from tests.seed.conftest import everything, one

from largesse.base.errors import OperatorError
from largesse.catalogue.model import Details
from largesse.catalogue.pictures import read_content, read_picture
from largesse.catalogue.store import read_details
from largesse.seed import gifts as pictures_beside
from largesse.seed.load import load_seed
from largesse.seed.reading import read_seed

WORLD = """
products:
  - key: coffee
    name: Coffee House e-gift
    digital: true
    currency: GBP
    countries: [GB]
    denominations: [5]
    picture: {picture}
    description: Hot and fresh.
    how_to_redeem: |
      Show it.
      Drink it.
    terms: No refunds.
"""


def written(folder: Path, picture: str = "coffee.png", text: str = WORLD) -> Path:
    file = folder / "world.yaml"
    file.write_text(text.replace("{picture}", picture))
    return file


def refusal(file: Path) -> str:
    with pytest.raises(OperatorError) as caught:
        read_seed(file)
    return str(caught.value)


async def test_pictures_and_texts_are_loaded_and_a_second_load_changes_nothing(
    connection: asyncpg.Connection, tmp_path: Path
) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/coffee.png").write_bytes(png())
    file = written(tmp_path, "shop/coffee.png")

    loaded = await load_seed(connection, CHAIN, read_seed(file))

    product = await one(connection, "products", "coffee")
    assert product["picture"] == read_picture(png()).name
    assert await read_content(connection, product["picture"]) == png()
    coffee = loaded.ids["products"]["coffee"]
    assert await read_details(connection, [coffee]) == {
        coffee: Details("Hot and fresh.", "Show it.\nDrink it.", "No refunds.")
    }
    before = await everything(connection)
    await load_seed(connection, CHAIN, read_seed(file))
    assert await everything(connection) == before


async def test_another_picture_takes_its_place_and_the_first_one_stays_for_mail_that_names_it(
    connection: asyncpg.Connection, tmp_path: Path
) -> None:
    for content in (png(), jpeg()):
        (tmp_path / "coffee.png").write_bytes(content)
        await load_seed(connection, CHAIN, read_seed(written(tmp_path)))

    assert (await one(connection, "products", "coffee"))["picture"] == read_picture(jpeg()).name
    for content in (png(), jpeg()):
        assert await read_content(connection, read_picture(content).name) == content


async def test_what_is_left_out_goes(connection: asyncpg.Connection, tmp_path: Path) -> None:
    (tmp_path / "coffee.png").write_bytes(png())
    await load_seed(connection, CHAIN, read_seed(written(tmp_path)))
    plain = written(tmp_path, text=WORLD.split("    picture", maxsplit=1)[0])
    loaded = await load_seed(connection, CHAIN, read_seed(plain))

    assert (await one(connection, "products", "coffee"))["picture"] is None
    coffee = loaded.ids["products"]["coffee"]
    assert await read_details(connection, [coffee]) == {coffee: Details()}


@pytest.mark.parametrize(
    ("picture", "refused"),
    [
        ("none.png", "'none.png' cannot be read: No such file or directory"),
        ("../coffee.png", "'../coffee.png' must be the name of a file beside the seed file"),
        ("/etc/passwd", "'/etc/passwd' must be the name of a file beside the seed file"),
        ("shop//coffee.png", "'shop//coffee.png' must be the name of a file beside the seed file"),
        ("https://shop.example/coffee.png", "must be the name of a file beside the seed file"),
        ("text.png", "'text.png' must be a whole PNG, JPEG or WebP file"),
        ("large.png", "'large.png' must have from 64 to 2000 pixels each way, not 2001 by 64"),
    ],
)
def test_what_is_no_picture_beside_the_file_is_refused_with_its_line(
    tmp_path: Path, picture: str, refused: str
) -> None:
    (tmp_path / "text.png").write_text("hello")
    (tmp_path / "large.png").write_bytes(png(2_001, 64))
    found = refusal(written(tmp_path, picture))
    assert found.startswith("world.yaml:9: products[0].picture: ")
    assert refused in found


@pytest.mark.parametrize(("name", "most"), [("description", 500), ("how_to_redeem", 1_000), ("terms", 4_000)])
def test_texts_have_limits(tmp_path: Path, name: str, most: int) -> None:
    world = WORLD.split("    picture", maxsplit=1)[0]
    read_seed(written(tmp_path, text=f"{world}    {name}: {'x' * most}\n"))
    found = refusal(written(tmp_path, text=f"{world}    {name}: {'x' * (most + 1)}\n"))
    assert f"products[0].{name}: must have at most {most} characters" in found


def test_the_pictures_of_a_file_have_a_limit_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "coffee.png").write_bytes(png())
    monkeypatch.setattr(pictures_beside, "_MAX_TOTAL_BYTES", len(png()))
    read_seed(written(tmp_path))
    monkeypatch.setattr(pictures_beside, "_MAX_TOTAL_BYTES", len(png()) - 1)
    assert "is one too many" in refusal(written(tmp_path))
