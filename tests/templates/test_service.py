"""Templates and collections of people: made, changed and removed within their customer, and left alone by seed files."""

import asyncpg
import pytest
from msgspec.structs import replace
from tests.chained import actor_over
from tests.seed.conftest import load, one
from tests.seed.worlds import WHOLE

from largesse.base.errors import NotFound
from largesse.catalogue import service as collections
from largesse.catalogue.service import TooManyCollections, change_collection, create_collection, remove_collection
from largesse.catalogue.store import OwnCollection
from largesse.templates import service
from largesse.templates.service import TooManyTemplates, change_template, create_template, remove_template
from largesse.templates.store import TemplateContent

COFFEE = TemplateContent(
    name="Morning",
    product_id=1,
    collection_id=None,
    gift_name="Coffee House e-gift",
    value_minor=500,
    currency="GBP",
    country="GB",
    wrapping_key="gold",
    from_name=None,
    message="Good morning!\nHave one.",
    expiry_after_days=None,
)
TREAT = OwnCollection("Treat", "GB", "GBP", 1000, [1])


async def test_a_template_is_added_changed_and_removed(connection: asyncpg.Connection) -> None:
    ids = (await load(connection, WHOLE)).ids
    acme, globex = ids["customers"]["acme"], ids["customers"]["globex"]

    others = await connection.fetch("SELECT * FROM templates ORDER BY id")
    assert others
    added = await create_template(actor_over(connection, acme), COFFEE)
    row = await connection.fetchrow("SELECT * FROM templates WHERE id = $1", added)
    assert (row["customer_id"], row["name"], row["message"], row["of_people"]) == (
        acme,
        "Morning",
        COFFEE.message,
        True,
    )
    assert row["key"].startswith("app/")

    await change_template(actor_over(connection, acme), added, replace(COFFEE, name="Evening", value_minor=1000))
    row = await connection.fetchrow("SELECT * FROM templates WHERE id = $1", added)
    assert (row["name"], row["value_minor"]) == ("Evening", 1000)

    for stranger in (globex, 99):
        with pytest.raises(NotFound):
            await change_template(actor_over(connection, stranger), added, COFFEE)
        with pytest.raises(NotFound):
            await remove_template(actor_over(connection, stranger), added)
    await remove_template(actor_over(connection, acme), added)
    for _ in range(2):
        with pytest.raises(NotFound):
            await remove_template(actor_over(connection, acme), added)
        with pytest.raises(NotFound):
            await change_template(actor_over(connection, acme), added, COFFEE)
    assert await connection.fetch("SELECT * FROM templates WHERE id <> $1 ORDER BY id", added) == others


async def test_a_collection_is_added_changed_and_removed_and_every_change_is_a_new_version_of_the_customers_own(
    connection: asyncpg.Connection,
) -> None:
    ids = (await load(connection, WHOLE)).ids
    acme, globex = ids["customers"]["acme"], ids["customers"]["globex"]

    async def version() -> int:
        return int(
            await connection.fetchval("SELECT version FROM collection_versions WHERE customer_id = $1", acme) or 0
        )

    shared = await connection.fetchval("SELECT version FROM catalogue_version")
    versions = [await version()]
    added = await create_collection(actor_over(connection, acme), TREAT)
    versions.append(await version())
    await change_collection(actor_over(connection, acme), added, "Treats", [2, 1])
    versions.append(await version())
    row = await connection.fetchrow("SELECT * FROM collections WHERE id = $1", added)
    assert (row["name"], row["product_ids"], row["value_minor"], row["customer_id"]) == ("Treats", [2, 1], 1000, acme)
    for stranger, collection in ((globex, added), (acme, ids["collections"]["treats"]), (acme, 99)):
        with pytest.raises(NotFound):
            await change_collection(actor_over(connection, stranger), collection, "Mine", [1])
        with pytest.raises(NotFound):
            await remove_collection(actor_over(connection, stranger), collection)
    await remove_collection(actor_over(connection, acme), added)
    versions.append(await version())
    assert versions == sorted(set(versions))
    assert await connection.fetchval("SELECT version FROM catalogue_version") == shared, "only Acme's own has changed"
    with pytest.raises(NotFound):
        await remove_collection(actor_over(connection, acme), added)


async def test_there_are_so_many_at_most(connection: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    acme = (await load(connection, WHOLE)).ids["customers"]["acme"]  # has three templates and one collection
    monkeypatch.setattr(service, "MOST_TEMPLATES", 4)
    monkeypatch.setattr(collections, "MOST_COLLECTIONS", 2)
    first = await create_template(actor_over(connection, acme), COFFEE)
    with pytest.raises(TooManyTemplates):
        await create_template(actor_over(connection, acme), COFFEE)
    await remove_template(actor_over(connection, acme), first)
    await create_template(actor_over(connection, acme), COFFEE)

    treat = await create_collection(actor_over(connection, acme), TREAT)
    with pytest.raises(TooManyCollections):
        await create_collection(actor_over(connection, acme), TREAT)
    await remove_collection(actor_over(connection, acme), treat)
    await create_collection(actor_over(connection, acme), TREAT)


async def test_a_load_leaves_to_people_what_they_have_made_changed_and_removed(connection: asyncpg.Connection) -> None:
    ids = (await load(connection, WHOLE)).ids
    acme = ids["customers"]["acme"]
    made = await create_template(actor_over(connection, acme), COFFEE)
    own_one = await create_collection(actor_over(connection, acme), TREAT)
    await change_template(actor_over(connection, acme), ids["templates"]["welcome"], COFFEE)
    await remove_template(actor_over(connection, acme), ids["templates"]["box"])
    await change_collection(actor_over(connection, acme), ids["collections"]["acme-thanks"], "Ours", [1])

    loaded = await load(connection, WHOLE)

    assert loaded.ids == ids
    assert (await one(connection, "templates", "welcome"))["name"] == "Morning"
    assert (await one(connection, "templates", "box"))["removed_at"] is not None
    assert (await one(connection, "collections", "acme-thanks"))["name"] == "Ours"
    kept = [warning for warning in loaded.warnings if "stays as it is there" in warning]
    assert [warning.split(": ")[2].split(" was ")[0] for warning in kept] == [
        "the collection 'acme-thanks'",
        "the template 'welcome'",
        "the template 'box'",
    ]
    for table, row_id in (("templates", made), ("collections", own_one)):
        assert await connection.fetchval(f"SELECT of_people FROM {table} WHERE id = $1", row_id)


async def test_what_nobody_has_touched_is_the_files(connection: asyncpg.Connection) -> None:
    await load(connection, WHOLE)
    loaded = await load(connection, WHOLE.replace("name: Welcome,", "name: Willkommen,"))
    assert (await one(connection, "templates", "welcome"))["name"] == "Willkommen"
    assert not [warning for warning in loaded.warnings if "stays as it is there" in warning]
