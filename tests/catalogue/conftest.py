"""A catalogue of a process, on a database with some customers, and somebody else who edits."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest

from largesse.catalogue.cache import Catalogue
from largesse.catalogue.listing import Serialized
from largesse.catalogue.model import Product
from largesse.customers.authenticator import Caller
from largesse.customers.principal import Principal
from largesse.db.pool import Connection, Database, connect_once
from largesse.db.scope import OPERATOR, Scope
from largesse.web.api.shapes import CatalogueInJson

CUSTOMERS = 4


class CountingDatabase(Database):
    """The database, with the connections it lent counted: the catalogue borrows one for each load."""

    loads = 0

    @asynccontextmanager
    async def connection(self, scope: Scope) -> AsyncIterator[Connection]:
        self.loads += 1
        async with super().connection(scope) as connection:
            yield connection


class CountingSerializer(CatalogueInJson):
    """Serializes, and counts the products it was given."""

    products = 0

    def product(self, product: Product, country: str) -> Serialized:
        self.products += 1
        return super().product(product, country)


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[CountingDatabase]:
    database = await CountingDatabase.connect(database_url, max_connections=4)
    assert isinstance(database, CountingDatabase)
    for number in range(1, CUSTOMERS + 1):
        await database.execute(
            OPERATOR,
            "INSERT INTO customers (key, name, plan, funding) VALUES ($1, $1, 'pro', 'invoiced')",
            f"c{number}",
        )
    database.loads = 0
    yield database
    await database.close()


@pytest.fixture
async def other(database_url: str) -> AsyncIterator[Connection]:
    """A connection of who edits."""
    async with connect_once(database_url, OPERATOR) as connection:
        yield connection


@pytest.fixture
async def catalogue(database: CountingDatabase) -> AsyncIterator[Catalogue]:
    catalogue = Catalogue(database, CountingSerializer("https://gifts.example"), max_own=2, max_own_weight=1_000)
    yield catalogue
    await catalogue.close()


async def version_in(connection: Connection) -> int:
    return await connection.fetchval("SELECT version FROM catalogue_version")


async def add_voucher(connection: Connection, key: str, *, active: bool = True) -> int:
    return await connection.fetchval(
        """
        INSERT INTO products (key, name, is_digital, currency, countries, denominations_minor, active)
        VALUES ($1, $1, true, 'GBP', '{GB}', '{2500,500,1000,500}', $2) RETURNING id
        """,
        key,
        active,
    )


async def add_curated(connection: Connection, key: str) -> int:
    return await connection.fetchval(
        """
        INSERT INTO collections (key, name, country, currency, value_points_minor, product_ids)
        VALUES ($1, $1, 'GB', 'GBP', '{1000}', '{1}') RETURNING id
        """,
        key,
    )


async def caller(connection: Connection, customer_id: int = 1) -> Caller:
    """A caller of a customer, who was looked up just now."""
    principal = Principal(1, "production", customer_id, f"c{customer_id}", "pro", "invoiced", 1, "Api", True)
    versions = await connection.fetchrow(
        "SELECT (SELECT version FROM catalogue_version), (SELECT version FROM collection_versions WHERE customer_id = $1)",
        customer_id,
    )
    assert versions is not None
    return Caller(principal, versions[0], datetime.now(UTC), None, versions[1] or 0)


async def add_own(connection: Connection, key: str, customer_id: int = 1, products: Sequence[int] = (1,)) -> int:
    added: int = await connection.fetchval(
        """
        INSERT INTO collections (key, customer_id, name, country, currency, value_minor, product_ids)
        VALUES ($1, $2, $1, 'GB', 'GBP', 1000, $3) RETURNING id
        """,
        key,
        customer_id,
        products,
    )
    return added
