"""The cache on a real database: what is loaded, staleness, one load for all who wait."""

import asyncio
import gc
from decimal import Decimal
from typing import Any

import asyncpg
import msgspec
import pytest
from tests.catalogue.conftest import CountingDatabase, add_curated, add_voucher, version_in

from largesse.base.errors import Unavailable
from largesse.catalogue.cache import Catalogue, load_own, load_snapshot
from largesse.catalogue.model import Collection, Product
from largesse.catalogue.products import Filters
from largesse.db.pool import Connection, Database
from largesse.db.scope import OPERATOR
from largesse.web.api.shapes import CatalogueInJson

GONE = 999_999  # a version that never was
SERIALIZER = CatalogueInJson("https://gifts.example")


async def add_customer(database: Database) -> int:
    found: int = await database.fetchval(
        OPERATOR,
        "INSERT INTO customers (key, name, plan, funding) VALUES ('acme', 'Acme', 'pro', 'balance') RETURNING id",
    )
    return found


async def until_a_load_waits_for_a_lock(connection: Connection) -> None:
    async with asyncio.timeout(10):
        while not await connection.fetchval(
            """
            SELECT count(*) FROM pg_locks WHERE NOT granted
              AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
            """
        ):
            pass


class TestLoading:
    async def test_products_as_they_are_stored(self, database: Database, other: Connection) -> None:
        acme = await add_customer(database)
        voucher_id = await add_voucher(other, "voucher")
        await add_voucher(other, "retired", active=False)
        await database.execute(
            OPERATOR,
            """
            INSERT INTO products (key, name, is_digital, currency, countries, min_amount_minor, max_amount_minor)
            VALUES ('books', 'Books', true, 'EUR', '{IE,FR}', 500, 20000)
            """,
        )
        await database.execute(
            OPERATOR,
            """
            INSERT INTO products (key, name, is_digital, currency, cost_minor, markup_percent, postage_minor,
                                  vat_percent, customer_ids)
            VALUES ('hamper', 'Hamper', false, 'GBP', 3500, 12.5, '{"GB": 495, "IE": 995}', '{"GB": 20, "IE": "13.5"}',
                    ARRAY[$1::integer])
            """,
            acme,
        )
        snapshot = await load_snapshot(other, SERIALIZER)
        assert snapshot.version == await version_in(other)
        assert snapshot.product(voucher_id, "GB", acme) == Product(
            id=voucher_id,
            name="voucher",
            is_digital=True,
            currency="GBP",
            countries=frozenset({"GB"}),
            denominations_minor=(500, 1000, 2500),
        )
        assert snapshot.product(voucher_id + 1, "GB", acme) is None
        assert snapshot.product(voucher_id + 2, "FR", acme) == Product(
            id=voucher_id + 2,
            name="Books",
            is_digital=True,
            currency="EUR",
            countries=frozenset({"IE", "FR"}),
            range_minor=(500, 20000),
        )
        assert snapshot.product(voucher_id + 3, "IE", acme) == Product(
            id=voucher_id + 3,
            name="Hamper",
            is_digital=False,
            currency="GBP",
            cost_minor=3500,
            markup_percent=Decimal("12.5"),
            postage_minor={"GB": 495, "IE": 995},
            vat_percent={"GB": Decimal(20), "IE": Decimal("13.5")},
            customer_ids=frozenset({acme}),
        )
        assert snapshot.product(voucher_id + 3, "IE", acme + 1) is None

    async def test_percent_keeps_every_digit(self, database: Database, other: Connection) -> None:
        found = await database.fetchval(
            OPERATOR,
            """
            INSERT INTO products (key, name, is_digital, currency, cost_minor, postage_minor, vat_percent)
            VALUES ('h', 'H', false, 'GBP', 100, '{"GB": 0}', '{"GB": 20.12345678901234567890123456789}') RETURNING id
            """,
        )
        product = (await load_snapshot(other, SERIALIZER)).product(found, "GB", 1)
        assert product is not None
        assert product.vat_percent == {"GB": Decimal("20.12345678901234567890123456789")}

    async def test_collections_as_they_are_stored(self, database: Database, other: Connection) -> None:
        acme = await add_customer(database)
        curated, custom, retired = [
            row["id"]
            for row in await database.fetch(
                OPERATOR,
                """
                INSERT INTO collections (key, customer_id, name, country, currency, value_minor, value_points_minor,
                                         allow_custom_value, product_ids, active)
                VALUES ('treats', NULL, 'Treats', 'GB', 'GBP', NULL, '{5000,1000}', true, '{1,2}', true),
                       ('thanks', $1, 'Thanks', 'IE', 'EUR', 2500, '{}', false, '{3}', true),
                       ('retired', NULL, 'Retired', 'GB', 'GBP', NULL, '{1000}', false, '{1}', false)
                RETURNING id
                """,
                acme,
            )
        ]
        snapshot = await load_snapshot(other, SERIALIZER)
        assert snapshot.collection(custom, acme) is None  # a customer's own are read when it uses them
        own = await load_own(other, [acme, acme + 1], SERIALIZER)
        assert {customer_id: len(one.collections) for customer_id, one in own.items()} == {acme: 1, acme + 1: 0}
        snapshot = snapshot.with_own(own[acme].collections)
        assert snapshot.collection(curated, acme) == Collection(
            id=curated,
            name="Treats",
            country="GB",
            currency="GBP",
            value_points_minor=(1000, 5000),
            allow_custom_value=True,
            product_ids=(1, 2),
        )
        assert snapshot.collection(custom, acme) == Collection(
            id=custom, name="Thanks", country="IE", currency="EUR", customer_id=acme, value_minor=2500, product_ids=(3,)
        )
        assert snapshot.collection(custom, acme + 1) is None
        assert snapshot.collection(retired, acme) is None

    @pytest.mark.parametrize(
        ("is_digital", "column", "value"),
        [
            (True, "denominations_minor", [0, 500]),
            (True, "denominations_minor", []),
            (True, "min_amount_minor", 500),
            (True, "max_amount_minor", 500),
            (False, "cost_minor", 0),
            (False, "cost_minor", None),
            (False, "markup_percent", -1),
        ],
    )
    async def test_a_gift_without_a_positive_amount_cannot_be_stored(
        self, database: Database, is_digital: bool, column: str, value: Any
    ) -> None:
        sound = {"denominations_minor": [500]} if is_digital else {"cost_minor": 100}
        range_alone = {"denominations_minor": []} if column.endswith("amount_minor") else {}
        columns = {"key": "k", "name": "K", "is_digital": is_digital, "currency": "GBP"} | sound | range_alone
        insert = "INSERT INTO products ({}) VALUES ({})"

        async def store(row: dict[str, Any]) -> None:
            places = ", ".join(f"${number}" for number in range(1, len(row) + 1))
            await database.execute(OPERATOR, insert.format(", ".join(row), places), *row.values())

        with pytest.raises(asyncpg.CheckViolationError):
            await store(columns | {column: value})
        await store(columns | sound)

    async def test_ten_thousand_products(self, database: Database, other: Connection) -> None:
        await database.execute(
            OPERATOR,
            """
            INSERT INTO products (key, name, is_digital, currency, countries, denominations_minor)
            SELECT n, 'Voucher ' || n, true, 'GBP', '{GB,IE}', '{500,1000}' FROM generate_series(1, 10000) n
            """,
        )
        snapshot = await load_snapshot(other, SERIALIZER)
        last = msgspec.json.decode(snapshot.serialized_products(1, Filters("IE"), page=50, limit=200))
        assert len(last) == 200
        assert {item["name"] for item in last} == {f"Voucher {n}" for n in range(9801, 10_001)}


class TestVersions:
    async def test_one_load_serves_until_the_version_grows(
        self, catalogue: Catalogue, database: CountingDatabase, other: Connection
    ) -> None:
        version = await version_in(other)
        first = await catalogue.at(version)
        assert await catalogue.at(version) is first
        assert await catalogue.at(version - 1) is first
        assert database.loads == 1

    async def test_a_change_shows_to_whoever_has_seen_its_version(
        self, catalogue: Catalogue, database: CountingDatabase, other: Connection
    ) -> None:
        version = await version_in(other)
        before = await catalogue.at(version)
        voucher_id = await add_voucher(other, "voucher")
        assert await version_in(other) > version
        assert await catalogue.at(version) is before
        after = await catalogue.at(await version_in(other))
        assert after.product(voucher_id, "GB", 1) is not None
        assert before.product(voucher_id, "GB", 1) is None
        assert await catalogue.at(version) is after
        assert database.loads == 2

    @pytest.mark.parametrize(
        "change",
        [
            "UPDATE products SET active = false",
            "DELETE FROM products",
            "INSERT INTO collections (key, name, country, currency, product_ids) VALUES ('c', 'C', 'GB', 'GBP', '{}')",
            "UPDATE collections SET name = 'Other'",
            "DELETE FROM collections",
            "TRUNCATE products CASCADE",
        ],
    )
    async def test_every_kind_of_change_makes_a_version(self, other: Connection, change: str) -> None:
        await add_voucher(other, "voucher")
        await add_curated(other, "curated")
        version = await version_in(other)
        await other.execute(change)
        assert await version_in(other) == version + 1

    async def test_version_and_rows_belong_together(
        self, catalogue: Catalogue, database: CountingDatabase, other: Connection
    ) -> None:
        """A load caught between the version and the rows by a change gives the old of both, and whoever has
        seen the new version waits for another load."""
        version = await version_in(other)
        async with other.transaction():
            await other.execute("LOCK TABLE products IN ACCESS EXCLUSIVE MODE")
            voucher_id = await add_voucher(other, "voucher")
            first = asyncio.create_task(catalogue.at(version))
            await until_a_load_waits_for_a_lock(other)
            second = asyncio.create_task(catalogue.at(version + 1))
            await asyncio.sleep(0)  # it joins the load under way
            assert database.loads == 1
        before, after = await first, await second
        assert (before.version, before.product(voucher_id, "GB", 1)) == (version, None)
        assert after.version == version + 1
        assert after.product(voucher_id, "GB", 1) is not None
        assert database.loads == 2

    async def test_a_version_that_never_comes_is_no_endless_load(
        self, catalogue: Catalogue, database: CountingDatabase, other: Connection
    ) -> None:
        with pytest.raises(Unavailable):
            await catalogue.at(GONE)
        assert database.loads == 2
        assert (await catalogue.at(1)).version == await version_in(other)


class TestSingleFlight:
    async def test_all_who_wait_share_one_load(
        self, catalogue: Catalogue, database: CountingDatabase, other: Connection
    ) -> None:
        version = await version_in(other)
        snapshots = await asyncio.gather(*(catalogue.at(version) for _ in range(100)))
        assert len(set(map(id, snapshots))) == 1
        assert database.loads == 1

    async def test_a_failure_goes_to_all_who_wait_and_the_next_call_loads_again(
        self, catalogue: Catalogue, database: CountingDatabase, other: Connection
    ) -> None:
        await other.execute("ALTER TABLE products RENAME TO mislaid")
        outcomes = await asyncio.gather(*(catalogue.at(1) for _ in range(10)), return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [asyncpg.UndefinedTableError] * 10
        assert database.loads == 1
        await other.execute("ALTER TABLE mislaid RENAME TO products")
        assert (await catalogue.at(1)).version == await version_in(other)
        assert database.loads == 2

    async def test_a_failed_reload_keeps_the_old_snapshot_for_its_version(
        self, catalogue: Catalogue, other: Connection
    ) -> None:
        version = await version_in(other)
        before = await catalogue.at(version)
        await add_voucher(other, "voucher")
        await other.execute("ALTER TABLE products RENAME TO mislaid")
        with pytest.raises(asyncpg.UndefinedTableError):
            await catalogue.at(version + 1)
        assert await catalogue.at(version) is before

    async def test_who_gives_up_does_not_end_the_load_of_others(
        self, catalogue: Catalogue, database: CountingDatabase, other: Connection
    ) -> None:
        version = await version_in(other)
        async with other.transaction():
            await other.execute("LOCK TABLE products IN ACCESS EXCLUSIVE MODE")
            impatient = asyncio.create_task(catalogue.at(version))
            patient = asyncio.create_task(catalogue.at(version))
            await until_a_load_waits_for_a_lock(other)
            impatient.cancel()
            with pytest.raises(asyncio.CancelledError):
                await impatient
        assert (await patient).version == version
        assert database.loads == 1

    async def test_a_failure_that_nobody_waits_for_is_quiet(self, catalogue: Catalogue, other: Connection) -> None:
        complaints: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        async with other.transaction():
            await other.execute("LOCK TABLE products IN ACCESS EXCLUSIVE MODE")
            impatient = asyncio.create_task(catalogue.at(1))
            await until_a_load_waits_for_a_lock(other)
            impatient.cancel()
            with pytest.raises(asyncio.CancelledError):
                await impatient
            loading = catalogue._loading
            assert loading is not None
            await other.execute("DROP TABLE products CASCADE")
        await asyncio.wait([loading])
        assert loading.done()
        catalogue._loading = loading = None
        gc.collect()
        assert complaints == []
