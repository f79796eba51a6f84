"""The catalogue by what changed: exactly what a whole load gives, and no more is read than was changed."""

import asyncio
import random
from typing import Any

import pytest
from tests.catalogue.conftest import (
    CUSTOMERS,
    CountingDatabase,
    CountingSerializer,
    add_curated,
    add_own,
    add_voucher,
    caller,
    version_in,
)

from largesse.catalogue.cache import Catalogue, load_snapshot
from largesse.catalogue.products import Filters
from largesse.catalogue.snapshot import Snapshot
from largesse.db.pool import Connection
from largesse.db.scope import OPERATOR
from largesse.web.api.shapes import CatalogueInJson

COUNTRIES = ("GB", "IE", "FR")


async def add_many(connection: Connection, count: int) -> None:
    await connection.execute(
        """
        INSERT INTO products (key, name, is_digital, currency, countries, denominations_minor)
        SELECT 'many ' || n, 'Voucher ' || n, true, 'GBP', '{GB}', '{1000}' FROM generate_series(1, $1::int) n
        """,
        count,
    )


def seen(snapshot: Snapshot) -> dict[str, Any]:
    """All that any customer gets of a snapshot."""
    found: dict[str, Any] = {}
    for customer_id in range(1, CUSTOMERS + 2):
        found[f"countries {customer_id}"] = snapshot.countries(customer_id)
        found[f"collections {customer_id}"] = snapshot.serialized_collections(customer_id)
        for country in COUNTRIES:
            own = found[f"{customer_id} {country}"] = list(snapshot.products(customer_id, Filters(country)))
            found[f"currencies {customer_id} {country}"] = snapshot.currencies(customer_id, country)
            for filters in ((None, None, None), ("GBP", None, None), (None, 20, None), ("EUR", 12, "b")):
                told = snapshot.serialized_products(customer_id, Filters(country, *filters), page=1, limit=50)
                found[f"{customer_id} {country} {filters}"] = told
            for product in own:
                assert snapshot.product(product.id, country, customer_id) == product
    return found


class Editor:
    """Changes the catalogue at random."""

    def __init__(self, connection: Connection, seed: int) -> None:
        self._connection = connection
        self._random = random.Random(seed)
        self._count = 0

    async def edit(self) -> None:
        edits = (self._add, self._add, self._add_curated, self._add_own, self._restrict, self._reprice, self._switch)
        await self._random.choice((*edits, self._rename, self._delete, self._hand_over))()

    def _countries(self) -> list[str]:
        return self._random.sample(COUNTRIES, self._random.randint(1, 3))

    def _customers(self) -> list[int] | None:
        if self._random.random() < 0.5:
            return None
        return self._random.sample(range(1, CUSTOMERS + 1), self._random.randint(0, CUSTOMERS))

    async def _add(self) -> None:
        self._count += 1
        await self._connection.execute(
            """
            INSERT INTO products (key, name, is_digital, currency, countries, denominations_minor, cost_minor, postage_minor, customer_ids)
            VALUES ($1, $1, $2, $3, $4, '{500,1000}', 900, jsonb_build_object('GB', 495), $5)
            """,
            f"{self._random.choice('abc')}{self._count}",
            self._random.random() < 0.7,
            self._random.choice(("GBP", "EUR")),
            self._countries(),
            self._customers(),
        )

    async def _add_curated(self) -> None:
        self._count += 1
        await add_curated(self._connection, f"curated {self._count}")

    async def _add_own(self) -> None:
        self._count += 1
        await add_own(self._connection, f"own {self._count}", self._random.randint(1, CUSTOMERS))

    async def _restrict(self) -> None:
        await self._some("customer_ids = $2, countries = $3", self._customers(), self._countries())

    async def _reprice(self) -> None:
        await self._some("denominations_minor = $2, cost_minor = $3", [self._random.randint(1, 3_000)], 700)

    async def _switch(self) -> None:
        await self._some("active = NOT active, name = name || $2::text || $3::text", "b", "")

    async def _some(self, values: str, first: object, second: object) -> None:
        await self._connection.execute(
            f"UPDATE products SET {values} WHERE id IN (SELECT id FROM products ORDER BY random() LIMIT $1)",
            self._random.randint(0, 4),
            first,
            second,
        )

    async def _rename(self) -> None:
        await self._connection.execute(
            "UPDATE collections SET name = name || 'x', active = random() < 0.8 WHERE id % 3 = $1",
            self._random.randint(0, 2),
        )

    async def _delete(self) -> None:
        await self._connection.execute(
            "DELETE FROM products WHERE id IN (SELECT id FROM products ORDER BY random() LIMIT 1)"
        )

    async def _hand_over(self) -> None:
        """A collection of a customer's own becomes everybody's, or the other way round."""
        await self._connection.execute(
            """
            UPDATE collections SET customer_id = CASE WHEN customer_id IS NULL THEN 1 END,
                   value_minor = CASE WHEN customer_id IS NULL THEN 1000 END
            WHERE id IN (SELECT id FROM collections ORDER BY random() LIMIT 1)
            """
        )


@pytest.mark.parametrize("seed", range(4))
async def test_after_any_edits_it_is_what_a_whole_load_gives(
    catalogue: Catalogue, database: CountingDatabase, other: Connection, seed: int
) -> None:
    editor = Editor(other, seed)
    serializer = CatalogueInJson("https://gifts.example")
    for _ in range(25):
        for _ in range(3):
            await editor.edit()
        by_changes = await catalogue.at(await version_in(other))
        async with database.connection(OPERATOR) as connection:
            whole = await load_snapshot(connection, serializer)
        assert by_changes.version == whole.version
        assert seen(by_changes) == seen(whole)
        for customer_id in range(1, CUSTOMERS + 1):
            mine = (await catalogue.of(await caller(other, customer_id))).collections(customer_id)
            rows = await other.fetch(
                "SELECT id, name FROM collections WHERE active AND (customer_id IS NULL OR customer_id = $1) ORDER BY id",
                customer_id,
            )
            assert [(one.id, one.name) for one in mine] == [tuple(row) for row in rows]


class TestWhatIsRead:
    async def test_what_an_edit_leaves_alone_is_neither_read_nor_encoded_again(
        self, catalogue: Catalogue, other: Connection
    ) -> None:
        await add_many(other, 300)
        before = await catalogue.at(await version_in(other))
        before.serialized_products(1, Filters("GB"), limit=200)
        before.serialized_products(1, Filters("GB"), page=2, limit=200)
        await other.execute("UPDATE products SET name = 'Other' WHERE key = 'many 7'")
        after = await catalogue.at(await version_in(other))
        assert before.products(1, Filters("GB"))[6].name == "Voucher 7"
        assert after.products(1, Filters("GB"))[6].name == "Other"
        same = [
            one is two
            for one, two in zip(before.products(1, Filters("GB")), after.products(1, Filters("GB")), strict=True)
        ]
        assert same.count(False) == 1
        serializer = catalogue._serializer
        assert isinstance(serializer, CountingSerializer)
        serializer.products = 0
        after.serialized_products(1, Filters("GB"), limit=200)
        after.serialized_products(1, Filters("GB"), page=2, limit=200)
        assert serializer.products == 1

    async def test_a_change_of_what_no_snapshot_has_makes_no_new_product(
        self, catalogue: Catalogue, other: Connection
    ) -> None:
        product_id = await add_voucher(other, "voucher")
        before = await catalogue.at(await version_in(other))
        await other.execute("UPDATE products SET description = 'New'")
        after = await catalogue.at(await version_in(other))
        assert after.version > before.version
        assert after.product(product_id, "GB", 1) is before.product(product_id, "GB", 1)

    async def test_a_version_that_does_not_say_what_it_changed_reads_all(
        self, catalogue: Catalogue, other: Connection
    ) -> None:
        product_id = await add_voucher(other, "voucher")
        before = await catalogue.at(await version_in(other))
        await other.execute("UPDATE catalogue_version SET version = version + 1")
        after = await catalogue.at(await version_in(other))
        assert after.product(product_id, "GB", 1) == before.product(product_id, "GB", 1)
        assert after.product(product_id, "GB", 1) is not before.product(product_id, "GB", 1)
        assert not after.follows(before)

    @pytest.mark.parametrize(("count", "follows"), [(1_000, True), (1_001, False)])
    async def test_a_thousand_changes_of_one_statement_are_said(
        self, catalogue: Catalogue, other: Connection, count: int, follows: bool
    ) -> None:
        before = await catalogue.at(await version_in(other))
        await add_many(other, count)
        after = await catalogue.at(await version_in(other))
        assert len(after.products(1, Filters("GB"))) == count
        assert after.follows(before) is follows

    async def test_the_last_thousand_versions_say_what_they_changed(
        self, catalogue: Catalogue, other: Connection
    ) -> None:
        await add_voucher(other, "voucher")
        before = await catalogue.at(await version_in(other))
        await other.execute(
            """
            DO $$ BEGIN
                FOR n IN 1 .. 1000 LOOP UPDATE products SET name = 'Name ' || n; END LOOP;
            END $$
            """
        )
        assert await other.fetchval("SELECT count(*) FROM catalogue_changes") == 1_000
        after = await catalogue.at(await version_in(other))
        assert after.follows(before)
        assert [one.name for one in after.products(1, Filters("GB"))] == ["Name 1000"]
        await other.execute(
            "DO $$ BEGIN FOR n IN 1 .. 1001 LOOP UPDATE products SET name = 'No ' || n; END LOOP; END $$"
        )
        assert await other.fetchval("SELECT count(*) FROM catalogue_changes") == 1_000
        last = await catalogue.at(await version_in(other))
        assert not last.follows(after)
        assert [one.name for one in last.products(1, Filters("GB"))] == ["No 1001"]

    @pytest.mark.parametrize(
        "change", ["UPDATE products SET name = name WHERE false", "DELETE FROM collections WHERE false"]
    )
    async def test_a_statement_that_finds_no_row_makes_no_version(self, other: Connection, change: str) -> None:
        await add_voucher(other, "voucher")
        version = await version_in(other)
        await other.execute(change)
        assert await version_in(other) == version

    async def test_other_requests_run_while_a_large_catalogue_is_read(
        self, catalogue: Catalogue, other: Connection
    ) -> None:
        await add_many(other, 10_000)
        loading = asyncio.create_task(catalogue.at(await version_in(other)))
        turns = 0
        while not loading.done():
            await asyncio.sleep(0)
            turns += 1
        assert len((await loading).products(1, Filters("GB"))) == 10_000
        assert turns > 10_000 / 50
