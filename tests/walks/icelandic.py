"""What holds where Icelandic was added; test_patches.py runs this in a copy of the tree, its texts those in brackets."""

import asyncio
import html
from pathlib import Path

import httpx
import pytest
from tests.web.api.conftest import Service, ServiceFactory, start_service
from tests.web.claim.conftest import Recipient, link

import largesse
from largesse.db.pool import Database
from largesse.db.scope import OPERATOR
from largesse.encryption.vault import Vault
from largesse.mail.mailbox import list_captured, open_captured
from largesse.main import open_worker

__all__ = ["start_service"]

PATIENCE_S = 60.0
WORLD = """
customers:
  - key: acme
    name: Acme Ltd
    plan: pro
    funding: invoiced
    service_accounts: [{key: bot, name: Bot}]
    api_keys: [{key: hr, service_account: bot, environment: production}]
products:
  - {key: coffee, name: Coffee House e-gift, digital: true, currency: ISK, countries: [IS], denominations: [1000]}
"""


@pytest.fixture(scope="module")
def service(start_service: ServiceFactory) -> Service:
    return start_service(WORLD)


def pages(service: Service) -> tuple[httpx.Response, httpx.Response]:
    """The page of a claim link, as two browsers get it: one that wants Icelandic, and one that wants English."""
    code = service.send("gift", "coffee", account=None, country="IS").json()["codes"][0]
    icelandic, english = Recipient(service, language="is"), Recipient(service, language="en")
    return icelandic.get(link(code)), english.get(link(code))


async def test_pages_and_mail_speak_it(service: Service) -> None:
    assert Path(largesse.__file__).is_relative_to(Path(__file__).parents[2]), "the code of the copy"
    icelandic, english = await asyncio.to_thread(pages, service)
    assert icelandic.headers["content-language"] == "is"
    assert "⟦" in icelandic.text
    assert english.headers["content-language"] == "en"
    assert "⟦" not in english.text
    assert "Íslenska" in english.text, "the switch offers it"

    recipients = [{"email": "jon@example.com"}]
    order = await asyncio.to_thread(
        lambda: service.send("gift", "coffee", account=None, country="IS", recipients=recipients)
    )
    assert order.status_code == 200, order.text
    database = await Database.connect(service.database_url)
    try:
        async with open_worker(service.settings, captures=True), asyncio.timeout(PATIENCE_S):
            while not (captured := await read_captured(database)):  # noqa: ASYNC110 - another loop captures it
                await asyncio.sleep(0.01)
        async with database.connection(OPERATOR) as connection:
            vault = Vault(service.settings.master_keys)
            mail = await open_captured(connection, vault, "production", captured)
    finally:
        await database.close()
    assert mail is not None
    assert dict(mail.headers)["Content-Language"] == "is"
    assert "⟦" in mail.subject
    assert "⟦" in mail.text
    assert "⟦" in html.unescape(mail.html)  # written in ASCII


async def read_captured(database: Database) -> int:
    """The id of the captured message; 0 as long as there is none."""
    async with database.connection(OPERATOR) as connection:
        captured = await list_captured(connection, "production")
    return captured[0].id if captured else 0
