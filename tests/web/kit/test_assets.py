"""Assets, icons and pictures: found for good under the name of their content, and for a while under their own."""

import hashlib
import re
from pathlib import Path

import httpx
import pytest
from starlette.routing import Router
from tests.catalogue.images import jpeg, png
from tests.web.api.conftest import Service, on_database, service, staging, start_service

import largesse.web
from largesse.catalogue.pictures import read_picture, save_pictures
from largesse.web.console.routes import ROUTES
from largesse.web.kit import assets as drawing
from largesse.web.kit.assets import Assets, icon, icons

__all__ = ["service", "staging", "start_service"]

WORLD = "products: []"

STYLE = b"body { margin: 0 }\n"


@pytest.fixture
def assets(tmp_path: Path) -> Assets:
    (tmp_path / "page.css").write_bytes(STYLE)
    (tmp_path / "page.js").write_bytes(b"'use strict';\n")
    (tmp_path / "notes.txt").write_bytes(b"not served\n")
    return Assets(tmp_path, "/pages", {"X-Robots-Tag": "noindex, nofollow"})


@pytest.fixture
def client(assets: Assets) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(Router(assets.routes(), redirect_slashes=False))
    return httpx.AsyncClient(transport=transport, base_url="http://gifts.example")


async def test_the_name_is_that_of_the_content(assets: Assets, client: httpx.AsyncClient) -> None:
    address = assets.address_of("page.css")
    assert address == f"/pages/page.{hashlib.sha256(STYLE).hexdigest()[:12]}.css"
    answer = await client.get(address)
    assert (answer.status_code, answer.content) == (200, STYLE)
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answer.headers["content-type"] == "text/css; charset=utf-8"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-robots-tag"] == "noindex, nofollow"


async def test_its_own_name_is_looked_at_again(client: httpx.AsyncClient) -> None:
    first = await client.get("/pages/page.css")
    assert (first.status_code, first.content) == (200, STYLE)
    assert first.headers["cache-control"] == "public, max-age=300"
    tag = first.headers["etag"]
    for known in (tag, f"W/{tag}", f'"other", {tag}'):
        again = await client.get("/pages/page.css", headers={"If-None-Match": known})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    other = await client.get("/pages/page.css", headers={"If-None-Match": '"other"'})
    assert (other.status_code, other.content) == (200, STYLE)


@pytest.mark.parametrize("path", ["page.000000000000.css", "notes.txt", "other.css", "..%2Fpage.css", "page.css/", ""])
async def test_nothing_else_is_served(client: httpx.AsyncClient, path: str) -> None:
    assert (await client.get(f"/pages/{path}")).status_code == 404


def test_a_template_that_names_none_there_is(assets: Assets) -> None:
    with pytest.raises(KeyError):
        assets.address_of("other.css")


def test_every_room_has_the_tokens_and_says_none_of_them_itself() -> None:
    """One visual language: what the tokens say is said nowhere else, but for the wrappings of gifts and the back office's colours."""
    web = Path(largesse.web.__file__).parent
    tokens = set(re.findall(r"(--[\w-]+):", (web / "kit" / "shared" / "tokens.css").read_text()))
    assert {"--accent", "--sans", "--radius"} <= tokens
    wrappings = set(re.findall(r"(--[\w-]+):", (web / "kit" / "shared" / "wrappings.css").read_text()))
    for sheet in web.glob("*/assets/*.css"):
        rules = re.sub(r"[^\n]*\.(theme-|office \{)[^\n]*", "", sheet.read_text())
        assert not tokens & set(re.findall(r"(--[\w-]+):", rules)), sheet
        used = set(re.findall(r"var\((--[\w-]+)", rules))
        own = {name for one in sheet.parent.glob("*.css") for name in re.findall(r"(--[\w-]+):", one.read_text())}
        assert used <= tokens | own | wrappings, (sheet, used - tokens - own)
        room = (
            web / "console" if sheet.stem == "office" else sheet.parents[1]
        )  # the office's pages have the application's layout
        layouts = "".join(path.read_text() for path in (room / "templates").glob("*.html"))
        assert "asset('tokens.css')" in layouts, sheet


async def test_each_encoding_has_a_tag_of_its_own(assets: Assets, client: httpx.AsyncClient) -> None:
    address = assets.address_of("page.css")
    plain = await client.get(address, headers={"Accept-Encoding": "identity"})
    packed = await client.get(address, headers={"Accept-Encoding": "gzip"})
    assert plain.content == packed.content == STYLE
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert plain.headers["vary"] == packed.headers["vary"] == "Accept-Encoding"
    assert packed.headers["etag"] != plain.headers["etag"]
    for encoding, known, status in (
        ("gzip", packed, 304),
        ("identity", plain, 304),
        ("gzip", plain, 200),
        ("identity", packed, 200),
    ):
        headers = {"Accept-Encoding": encoding, "If-None-Match": known.headers["etag"]}
        assert (await client.get(address, headers=headers)).status_code == status


def test_an_icon_is_hidden_and_has_no_style_of_its_own() -> None:
    drawn = icon("gift")
    assert drawn.startswith('<svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><')
    assert drawn.endswith("</svg>")
    assert not re.search(r"xmlns|stroke|fill|width=\"24\"|\s/>|\n", drawn)
    assert len(drawn) < 500


def test_the_archive_of_icons_is_opened_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening it takes longer than drawing a page, and a page has some forty."""
    icons()
    icon.cache_clear()
    monkeypatch.setattr(drawing, "ZipFile", None)
    assert icon("gift") != icon("house")


def test_a_name_that_is_no_icon_is_an_error() -> None:
    with pytest.raises(KeyError):
        icon("no-such-icon")


def test_every_page_of_the_menu_has_an_icon_of_its_own() -> None:
    icons = [route.icon for route in ROUTES if route.group]
    assert all(icon(name) for name in icons)
    assert len(set(icons)) == len(icons)


@pytest.fixture(scope="module")
def names(service: Service) -> list[str]:
    pictures = [read_picture(png()), read_picture(jpeg())]
    on_database(service.database_url, lambda connection: save_pictures(connection, pictures))
    return [picture.name for picture in pictures]


def test_a_picture_is_served_for_good_as_what_it_is(service: Service, names: list[str]) -> None:
    for name, content, kind in zip(names, (png(), jpeg()), ("image/png", "image/jpeg"), strict=True):
        for _ in range(2):  # from the database, and from memory
            answer = service.client().get(f"/pictures/{name}")
            assert (answer.status_code, answer.content) == (200, content)
            assert answer.headers["content-type"] == kind
            assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["content-security-policy"].startswith("default-src 'none'")
            assert "set-cookie" not in answer.headers


def test_staging_serves_the_same(staging: Service, names: list[str]) -> None:
    assert staging.client().get(f"/pictures/{names[0]}").content == png()


@pytest.mark.parametrize("name", [f"{'0' * 32}.png", "a.png", "x" * 300, f"{'0' * 32}.svg", "%00.png", "..%2Fapp"])
def test_what_is_no_picture_is_not_found(service: Service, name: str) -> None:
    answer = service.client().get(f"/pictures/{name}")
    assert answer.status_code == 404
    assert "immutable" not in answer.headers.get("cache-control", "")
