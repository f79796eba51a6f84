"""Pictures of products as browsers and mail clients get them."""

from __future__ import annotations

import pytest
from tests.catalogue.images import jpeg, png
from tests.web.api.conftest import Service, on_database, service, staging, start_service

from largesse.catalogue.pictures import read_picture, save_pictures

__all__ = ["service", "staging", "start_service"]

WORLD = "products: []"


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
