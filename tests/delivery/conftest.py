"""What the tests of webhooks and mail stand on: a vault, and a pool of connections."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from largesse.base.vault import Vault
from largesse.database.pool import Database


@pytest.fixture
def vault() -> Vault:
    return Vault((bytes(range(32)),))


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    database = await Database.connect(database_url, max_connections=8)
    yield database
    await database.close()
