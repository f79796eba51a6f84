"""A small world with accounts of several customers, currencies and environments."""

from collections.abc import AsyncIterator

import pytest
from tests.chained import loaded

from largesse.db.pool import Database
from largesse.encryption.vault import Vault

WORLD = b"""
customers:
  - key: acme
    name: Acme Ltd
    plan: pro
    funding: balance
    users: [{email: ada@acme.example, name: Ada, role: admin}]
    service_accounts: [{key: bot, name: Bot}]
    funding_accounts:
      - {key: gbp, name: Float, master: true, currency: GBP, balance: 100}
      - {key: team, name: Team, currency: GBP, service_accounts: [bot]}
      - {key: jpy, name: Yen, currency: JPY}
      - {key: test, name: Test, currency: GBP, environment: staging}
  - key: globex
    name: Globex
    plan: pro
    funding: balance
    funding_accounts: [{key: gbp, name: Theirs, master: true, currency: GBP}]
  - {key: initech, name: Initech, plan: pro, funding: invoiced}
"""
KEY = b"k" * 32
VAULT = Vault((KEY,))
ACME, GLOBEX, INITECH = 1, 2, 3
ADA = 1
FLOAT, TEAM, YEN, TEST, THEIRS, DEPOSITS = 1, 2, 3, 4, 5, 8


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    async with loaded(database_url, WORLD, KEY) as database:
        yield database
