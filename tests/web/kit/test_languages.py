"""The texts of all languages are read after the start, so that no page reads them."""

import httpx
import pytest
from tests.waiting import wait_until
from tests.web.api.conftest import RICH_WORLD, services_on

from largesse.base.i18n.languages import LANGUAGES
from largesse.base.i18n.templates import translations

PARTS = 4  # claim pages, web application, back office, and the docs, whose texts are read with their templates


def test_the_first_page_in_a_language_reads_no_texts(
    database_url: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    translations.cache_clear()
    with services_on(database_url, tmp_path_factory) as start:
        url = start(RICH_WORLD).url
        assert httpx.get(f"{url}/claim").status_code == 200
        wait_until(lambda: translations.cache_info().currsize >= PARTS * len(LANGUAGES), 20)
        read = translations.cache_info().misses
        for tag in LANGUAGES:
            for page in ("/claim", "/app/sign-in"):
                shown = httpx.get(url + page, headers={"Accept-Language": tag})
                assert f'lang="{tag}"' in shown.text, page
        assert translations.cache_info().misses == read
