"""Discarding the drafts of products that were never published: what something names stays."""

import asyncpg
import pytest
from tests.catalogue.test_editing import actor, collection, newest, product

from largesse.base.errors import NotFound
from largesse.catalogue.editing import create, discard_draft, publish, save_draft
from largesse.customers.actor import Actor
from largesse.db.pool import Database
from largesse.fulfilment.stock import warn_below

__all__ = ["actor"]


async def test_what_was_never_published_goes_with_its_draft_unless_something_names_it(
    database: Database, actor: Actor, beside: asyncpg.Connection
) -> None:
    tea = await create(actor, "product", "tea", await product(database))
    coffee = await create(actor, "product", "coffee", await product(database))
    treats = await create(actor, "collection", "treats", await collection(database))
    await publish(actor, "collection", treats, await newest(database, treats, "collection"))

    assert await discard_draft(actor, "product", tea, await newest(database, tea))
    assert not await discard_draft(actor, "product", coffee, await newest(database, coffee))

    assert [row["key"] for row in await beside.fetch("SELECT key FROM products")] == ["coffee"]
    with pytest.raises(NotFound):
        await publish(actor, "product", tea, 0)


async def test_what_an_unpublished_collection_names_stays_when_its_draft_is_discarded(
    database: Database, actor: Actor
) -> None:
    coffee = await create(actor, "product", "coffee", await product(database))
    tea = await create(actor, "product", "tea", await product(database))
    treats = await create(actor, "collection", "treats", await collection(database))

    assert not await discard_draft(actor, "product", coffee, await newest(database, coffee))
    seen = await newest(database, treats, "collection")
    await save_draft(actor, "collection", treats, await collection(database, products="tea"), seen)
    assert not await discard_draft(actor, "product", tea, await newest(database, tea))


async def test_a_stock_warning_keeps_what_was_never_published(database: Database, actor: Actor) -> None:
    coffee = await create(actor, "product", "coffee", await product(database))
    await warn_below(actor, coffee, 10)

    assert not await discard_draft(actor, "product", coffee, await newest(database, coffee))
    await warn_below(actor, coffee, None)
    seen = await newest(database, coffee)
    await save_draft(actor, "product", coffee, await product(database), seen)


async def test_what_an_earlier_version_of_a_collection_names_stays_so_that_it_can_be_undone(
    database: Database, actor: Actor
) -> None:
    await create(actor, "product", "coffee", await product(database))
    tea = await create(actor, "product", "tea", await product(database))
    treats = await create(actor, "collection", "treats", await collection(database, products="coffee, tea"))
    await publish(actor, "collection", treats, await newest(database, treats, "collection"))
    seen = await newest(database, treats, "collection")
    await save_draft(actor, "collection", treats, await collection(database), seen)
    await publish(actor, "collection", treats, await newest(database, treats, "collection"))

    assert not await discard_draft(actor, "product", tea, await newest(database, tea))
