"""A connection to an empty database, and reading and loading seed files."""

from typing import Any

import asyncpg
import pytest
from tests.chained import CHAIN

from largesse.base.errors import OperatorError
from largesse.seed.document import SeedFile
from largesse.seed.load import LoadedSeed, load_seed
from largesse.seed.reading import parse_seed


async def load(connection: asyncpg.Connection, text: str) -> LoadedSeed:
    return await load_seed(connection, CHAIN, parse_seed(text.encode(), "world.yaml"))


async def one(connection: asyncpg.Connection, table: str, key: str) -> dict[str, Any]:
    row = await connection.fetchrow(f"SELECT * FROM {table} WHERE key = $1", key)
    assert row is not None
    return dict(row)


def parse(text: str) -> SeedFile:
    return parse_seed(text.encode(), "world.yaml")


def refusal(text: str) -> str:
    with pytest.raises(OperatorError) as caught:
        parse(text)
    return str(caught.value)


TABLES = [
    "customers",
    "users",
    "service_accounts",
    "api_keys",
    "products",
    "collections",
    "templates",
    "accounts",
    "account_service_accounts",
    "entries",
    "catalogue_version",
]


async def everything(connection: asyncpg.Connection) -> dict[str, list[str]]:
    """All rows, each with its transaction: a row that was written again differs."""
    return {
        table: [str(row) for row in await connection.fetch(f"SELECT xmin, * FROM {table} ORDER BY 2, 3")]
        for table in TABLES
    }
