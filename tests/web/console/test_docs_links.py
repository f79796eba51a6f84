"""Where the documentation is published, pages link to its guides; all of these exist."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.web.console.conftest import signed_in

if TYPE_CHECKING:
    from conftest import Service, ServiceFactory

ROOT = Path(__file__).parents[3]
DOCS = "https://docs.example.com/largesse"
GUIDES = {
    "/": "docs/quick-start",
    "/docs": "docs/guide-developer",
    "/problems": "docs/guide-developer",
    "/app/help": "docs/guide-developer",
    "/app/keys": "docs/guides/authentication",
    "/app/service-accounts": "docs/guides/authentication",
    "/app/webhooks": "docs/guides/webhooks",
}


@pytest.fixture(scope="module")
def published(service: Service, start_service: ServiceFactory) -> Service:
    """A service that knows where its documentation is."""
    return start_service(like=service, docs_url=DOCS)


@pytest.mark.parametrize("path", GUIDES)
def test_pages_link_to_their_guide(published: Service, path: str) -> None:
    browser = signed_in(published, "ada@acme.example")
    browser.get(path)
    links = [link for link in browser.links if link.startswith(DOCS)]
    assert f"{DOCS}/{GUIDES[path]}.html" in links
    for link in links:
        assert (ROOT / link.removeprefix(f"{DOCS}/")).with_suffix(".md").is_file(), link


@pytest.mark.parametrize("path", GUIDES)
def test_without_an_address_no_page_links_to_guides(service: Service, path: str) -> None:
    browser = signed_in(service, "ada@acme.example")
    browser.get(path)
    assert not [link for link in browser.links if link.endswith(".html")]
