"""A customer's own collections: for that customer alone, read when it uses them, and bounded."""

import asyncio

from tests.catalogue.conftest import CUSTOMERS, CountingDatabase, add_own, caller, version_in

from largesse.catalogue.cache import Catalogue
from largesse.catalogue.model import Collection
from largesse.db.pool import Connection


class TestOwnCollections:
    async def test_only_their_customer_sees_them_and_a_change_at_once(
        self, catalogue: Catalogue, other: Connection
    ) -> None:
        collection_id = await add_own(other, "ours")
        for _ in range(2):
            assert (await catalogue.of(await caller(other))).collection(collection_id, 1) is not None
            for stranger in (2, 3):
                snapshot = await catalogue.of(await caller(other, stranger))
                assert snapshot.collection(collection_id, stranger) is None
                assert not snapshot.has_gift(None, collection_id)
        await other.execute("UPDATE collections SET name = 'New name'")
        found = (await catalogue.of(await caller(other))).collection(collection_id, 1)
        assert isinstance(found, Collection)
        assert found.name == "New name"
        await other.execute("UPDATE collections SET active = false")
        assert (await catalogue.of(await caller(other))).collection(collection_id, 1) is None

    async def test_a_stranger_who_holds_the_owners_snapshot_sees_nothing_of_it(
        self, catalogue: Catalogue, other: Connection
    ) -> None:
        collection_id = await add_own(other, "ours")
        snapshot = await catalogue.of(await caller(other))
        assert snapshot.collection(collection_id, 2) is None
        assert snapshot.collections(2) == []
        assert snapshot.serialized_collections(2) == b"[]"

    async def test_an_edit_changes_nothing_for_all_others(
        self, catalogue: Catalogue, database: CountingDatabase, other: Connection
    ) -> None:
        await add_own(other, "ours")
        await add_own(other, "theirs", 2)
        before = await catalogue.of(await caller(other, 2))
        database.loads = 0
        await add_own(other, "ours too")
        after = await catalogue.of(await caller(other, 2))
        assert database.loads == 0
        assert after.version == before.version
        assert [one.name for one in (await catalogue.of(await caller(other))).collections(1)] == ["ours", "ours too"]
        assert database.loads == 1

    async def test_a_customer_without_any_costs_no_read(
        self, catalogue: Catalogue, database: CountingDatabase, other: Connection
    ) -> None:
        await add_own(other, "ours")
        assert await catalogue.of(await caller(other, 2)) is await catalogue.at(await version_in(other))
        assert database.loads == 1

    async def test_who_asks_at_once_shares_a_read(
        self, catalogue: Catalogue, database: CountingDatabase, other: Connection
    ) -> None:
        ids = [await add_own(other, f"c{number}", number) for number in range(1, CUSTOMERS + 1)]
        callers = [await caller(other, number) for number in range(1, CUSTOMERS + 1)]
        await catalogue.at(await version_in(other))
        database.loads = 0
        snapshots = await asyncio.gather(*(catalogue.of(one) for one in callers for _ in range(5)))
        assert database.loads <= 2
        for number, snapshot in enumerate(snapshots):
            customer_id = number // 5 + 1
            assert [one.id for one in snapshot.collections(customer_id)] == [ids[customer_id - 1]]

    async def test_those_of_the_customers_that_used_theirs_last_are_kept(
        self, catalogue: Catalogue, database: CountingDatabase, other: Connection
    ) -> None:
        for number in (1, 2, 3):
            await add_own(other, f"c{number}", number)
        for number in (1, 2, 1, 3):  # room for two: the third takes the place of the second
            await catalogue.of(await caller(other, number))
        database.loads = 0
        for number in (1, 3):
            await catalogue.of(await caller(other, number))
        assert database.loads == 0
        await catalogue.of(await caller(other, 2))
        assert database.loads == 1
        assert len(catalogue._own) == 2

    async def test_more_than_the_room_for_all_is_read_each_time(self, catalogue: Catalogue, other: Connection) -> None:
        await add_own(other, "large", 1, range(1, 1_000))
        await add_own(other, "small", 2)
        for _ in range(2):
            snapshot = await catalogue.of(await caller(other))
            assert len(snapshot.collections(1)[0].product_ids) == 999
        assert len(catalogue._own) == 0
        await catalogue.of(await caller(other, 2))
        assert len(catalogue._own) == 1

    async def test_both_versions_are_known_from_before(
        self, catalogue: Catalogue, database: CountingDatabase, other: Connection
    ) -> None:
        """A caller who was looked up before an edit gets the newer collections where somebody has read them."""
        await add_own(other, "first")
        early = await caller(other)
        await add_own(other, "second")
        await catalogue.of(await caller(other))
        database.loads = 0
        assert len((await catalogue.of(early)).collections(1)) == 2
        assert database.loads == 0
