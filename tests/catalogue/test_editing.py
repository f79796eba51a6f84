"""Drafts of products and collections: two who edit, publishing at once and at a time, undoing, and what a file manages."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest
from tests.catalogue.images import png
from tests.chained import acting_on

from largesse.base.errors import NotFound, StateConflict
from largesse.catalogue import draft_store as store
from largesse.catalogue import editing
from largesse.catalogue.cache import Catalogue
from largesse.catalogue.content import Content, Faulty
from largesse.catalogue.draft_store import KEPT_VERSIONS, Edited
from largesse.catalogue.impact import read_impact
from largesse.catalogue.pictures import read_picture
from largesse.catalogue.typed import read_collection, read_product
from largesse.customers.actor import Actor, command_actor, worker_actor
from largesse.db.pool import Database
from largesse.db.scope import OPERATOR, WORKER
from largesse.encryption.vault import Vault
from largesse.web.api.shapes import CatalogueInJson

COFFEE = {"name": "Coffee", "active": "yes", "countries": "GB, IE", "denominations": "5 10 25"}
HAMPER = {"name": "Hamper", "active": "yes", "cost": "30", "postage": "GB 4.95", "vat_percent": "GB 20%"}
TREATS = {"name": "Treats", "active": "yes", "country": "gb", "value_points": "10 25", "products": "coffee"}


@pytest.fixture
async def actor(database: Database, vault: Vault) -> Actor:
    return command_actor(database, await acting_on(database, vault))


async def product(database: Database, digital: bool = True, **typed: str) -> Content:
    fields: Mapping[str, str] = {**(COFFEE if digital else HAMPER), **typed}
    async with database.connection(OPERATOR) as connection:
        return read_product(fields, await editing.read_names(connection, [fields]), is_digital=digital, currency="GBP")


async def collection(database: Database, **typed: str) -> Content:
    fields = {**TREATS, **typed}
    async with database.connection(OPERATOR) as connection:
        return read_collection(fields, await editing.read_names(connection, [fields]), currency="GBP")


async def edited(database: Database, object_id: int, kind: str = "product") -> Edited:
    async with database.connection(OPERATOR) as connection:
        found = await store.read(connection, kind, object_id)
    assert found is not None
    return found


async def newest(database: Database, object_id: int, kind: str = "product") -> int:
    """What somebody has seen who opens it now."""
    return (await edited(database, object_id, kind)).seen


async def save(database: Database, actor: Actor, object_id: int, **typed: str) -> None:
    await editing.save_draft(
        actor, "product", object_id, await product(database, **typed), await newest(database, object_id)
    )


async def published(database: Database, actor: Actor, key: str = "coffee", **typed: str) -> int:
    object_id = await editing.create(actor, "product", key, await product(database, **typed))
    await editing.publish(actor, "product", object_id, await newest(database, object_id))
    return object_id


async def test_a_product_is_sold_once_its_draft_is_published(
    database: Database, actor: Actor, beside: asyncpg.Connection
) -> None:
    catalogue = Catalogue(database, CatalogueInJson("https://gifts.example"))
    snapshot = await catalogue.at(1)
    object_id = await editing.create(actor, "product", "coffee", await product(database))
    assert (await edited(database, object_id)).is_new
    version = await beside.fetchval("SELECT version FROM catalogue_version")
    assert (await catalogue.at(version)).product(object_id, "GB", 1) is None

    await editing.publish(actor, "product", object_id, await newest(database, object_id))

    # One change, which says what it changed: no process reads the whole catalogue for it.
    assert await beside.fetchval("SELECT version FROM catalogue_version") == version + 1
    changed = await beside.fetchval("SELECT product_ids FROM catalogue_changes WHERE version = $1", version + 1)
    assert changed == [object_id]
    sold = (await catalogue.at(version + 1)).product(object_id, "GB", 1)
    assert sold is not None
    assert sold.denominations_minor == (500, 1000, 2500)
    assert snapshot.product(object_id, "GB", 1) is None
    acts = await beside.fetch("SELECT act, subject FROM audit_events ORDER BY id")
    assert [tuple(act) for act in acts] == [
        ("catalogue.created", "product coffee"),
        ("catalogue.published", "product coffee"),
    ]
    await catalogue.close()


async def test_the_second_of_two_is_shown_what_changed(database: Database, actor: Actor) -> None:
    object_id = await published(database, actor)
    seen = await newest(database, object_id)
    await editing.save_draft(actor, "product", object_id, await product(database, name="Tea"), seen)

    with pytest.raises(editing.ChangedMeanwhile) as caught:
        await editing.save_draft(actor, "product", object_id, await product(database, name="Cocoa"), seen)

    assert caught.value.edited.newest.name == "Tea"
    with pytest.raises(editing.ChangedMeanwhile):
        await editing.publish(actor, "product", object_id, seen)
    with pytest.raises(editing.ChangedMeanwhile):
        await editing.discard_draft(actor, "product", object_id, seen)
    await editing.save_draft(
        actor, "product", object_id, await product(database, name="Cocoa"), caught.value.edited.seen
    )
    assert (await edited(database, object_id)).newest.name == "Cocoa"


async def test_of_many_at_once_one_wins(database: Database, actor: Actor) -> None:
    object_id = await published(database, actor)
    seen = await newest(database, object_id)
    contents = [await product(database, name=f"Coffee {number}") for number in range(5)]

    results = await asyncio.gather(
        *(editing.save_draft(actor, "product", object_id, content, seen) for content in contents),
        return_exceptions=True,
    )

    assert sum(result is None for result in results) == 1
    assert sum(isinstance(result, editing.ChangedMeanwhile) for result in results) == 4


async def test_what_a_file_manages_is_changed_only_after_it_is_released(
    database: Database, actor: Actor, beside: asyncpg.Connection
) -> None:
    object_id = await published(database, actor)
    await beside.execute("UPDATE products SET managed = 'file'")
    seen = await newest(database, object_id)
    content = await product(database, name="Tea")

    for attempt in (
        editing.save_draft(actor, "product", object_id, content, seen),
        editing.publish(actor, "product", object_id, seen),
        editing.undo(actor, "product", object_id, seen),
        editing.schedule(actor, "product", object_id, None, seen),
        editing.set_picture(actor, object_id, None, seen),
        editing.discard_draft(actor, "product", object_id, seen),
        editing.import_drafts(actor, "product", {"coffee": content}, {"coffee": seen}, "file"),  # type: ignore[dict-item]
    ):
        with pytest.raises(editing.ManagedByFile):
            await attempt

    await editing.release(actor, "product", object_id)
    await editing.release(actor, "product", object_id)  # nothing more
    await editing.save_draft(actor, "product", object_id, content, await newest(database, object_id))
    assert await beside.fetchval("SELECT count(*) FROM audit_events WHERE act = 'catalogue.released'") == 1
    with pytest.raises(NotFound):
        await editing.release(actor, "product", 999)


async def test_the_last_publication_is_undone_and_that_too(database: Database, actor: Actor) -> None:
    object_id = await published(database, actor)
    await save(database, actor, object_id, name="Tea")
    await editing.publish(actor, "product", object_id, await newest(database, object_id))

    await editing.undo(actor, "product", object_id, await newest(database, object_id))
    assert (await edited(database, object_id)).content.name == "Coffee"
    await editing.undo(actor, "product", object_id, await newest(database, object_id))
    assert (await edited(database, object_id)).content.name == "Tea"


async def test_a_draft_of_before_an_undo_is_published_once_it_is_saved_again(database: Database, actor: Actor) -> None:
    object_id = await published(database, actor)
    tea, opened = await product(database, name="Tea"), await newest(database, object_id)
    await editing.save_draft(actor, "product", object_id, tea, opened)
    opened = await newest(database, object_id)
    await editing.undo(actor, "product", object_id, opened)
    with pytest.raises(editing.ChangedMeanwhile):  # the form of before the undo
        await editing.save_draft(actor, "product", object_id, tea, opened)

    behind = await edited(database, object_id)
    for acting in (editing.publish(actor, "product", object_id, behind.seen), editing.schedule(actor, "product", object_id, datetime.max.replace(tzinfo=UTC), behind.seen)):  # fmt: skip
        with pytest.raises(editing.ChangedMeanwhile):
            await acting
    await editing.save_draft(actor, "product", object_id, tea, behind.seen)
    await editing.publish(actor, "product", object_id, await newest(database, object_id))

    assert (await edited(database, object_id)).content.name == "Tea"


async def test_the_first_publication_is_undone_by_not_selling_it(database: Database, actor: Actor) -> None:
    object_id = await published(database, actor)

    await editing.undo(actor, "product", object_id, await newest(database, object_id))

    assert not (await edited(database, object_id)).content.active


async def test_what_was_never_published_in_the_office_cannot_be_undone(
    database: Database, actor: Actor, beside: asyncpg.Connection
) -> None:
    object_id = await published(database, actor)
    await beside.execute("DELETE FROM catalogue_versions")

    with pytest.raises(StateConflict, match="nothing to undo"):
        await editing.undo(actor, "product", object_id, await newest(database, object_id))


async def test_versions_are_bounded(database: Database, actor: Actor, beside: asyncpg.Connection) -> None:
    object_id = await published(database, actor)
    for number in range(KEPT_VERSIONS + 1):
        await save(database, actor, object_id, name=f"Coffee {number}")
        await editing.publish(actor, "product", object_id, await newest(database, object_id))

    async with database.connection(OPERATOR) as connection:
        versions = await store.list_versions(connection, "product", object_id, 100)
    assert len(versions) == KEPT_VERSIONS
    assert versions[0].content.name == f"Coffee {KEPT_VERSIONS}"
    assert await beside.fetchval("SELECT count(*) FROM catalogue_versions") == KEPT_VERSIONS


async def test_a_draft_publishes_itself_at_its_time(
    database: Database, actor: Actor, vault: Vault, beside: asyncpg.Connection
) -> None:
    object_id = await published(database, actor)
    await save(database, actor, object_id, name="Tea")
    now = await beside.fetchval("SELECT clock_now()")
    with pytest.raises(Faulty):
        await editing.schedule(actor, "product", object_id, now, await newest(database, object_id))
    await editing.schedule(actor, "product", object_id, now + timedelta(hours=1), await newest(database, object_id))
    worker = worker_actor(database, await acting_on(database, vault))

    async with database.connection(WORKER) as connection:
        assert await editing.publish_due(connection, worker, 10) == 0
        await beside.execute("UPDATE catalogue_drafts SET publish_at = clock_now()")
        assert await editing.publish_due(connection, worker, 10) == 1
        assert await editing.publish_due(connection, worker, 10) == 0

    assert (await edited(database, object_id)).content.name == "Tea"
    assert (await edited(database, object_id)).draft is None


async def test_a_scheduled_draft_of_before_a_publication_stays_and_says_why(
    database: Database, actor: Actor, vault: Vault, beside: asyncpg.Connection
) -> None:
    object_id = await published(database, actor)
    await save(database, actor, object_id, name="Tea")
    await beside.execute("UPDATE catalogue_drafts SET publish_at = clock_now(), based_on = 0")

    async with database.connection(WORKER) as connection:
        await editing.publish_due(connection, worker_actor(database, await acting_on(database, vault)), 10)

    draft = (await edited(database, object_id)).draft
    assert draft is not None
    assert (draft.failed, draft.publish_at) == ("ChangedMeanwhile", None)
    assert (await edited(database, object_id)).content.name == "Coffee"


async def test_a_draft_that_cannot_be_written_stops_no_other(
    database: Database, actor: Actor, vault: Vault, beside: asyncpg.Connection
) -> None:
    await editing.create(actor, "product", "odd", await product(database))
    usual = await editing.create(actor, "product", "usual", await product(database))
    await beside.execute("UPDATE catalogue_drafts SET publish_at = clock_now()")
    await beside.execute("ALTER TABLE products ADD CONSTRAINT fails CHECK (key <> 'odd' OR name IS NULL) NOT VALID")
    worker = worker_actor(database, await acting_on(database, vault))
    async with database.connection(WORKER) as connection:
        assert await editing.publish_due(connection, worker, 10) == 1
    await beside.execute("ALTER TABLE products DROP CONSTRAINT fails")
    assert (await edited(database, usual)).draft is None


async def test_a_schedule_is_taken_back(database: Database, actor: Actor, beside: asyncpg.Connection) -> None:
    object_id = await editing.create(actor, "product", "coffee", await product(database))
    at = await beside.fetchval("SELECT clock_now() + interval '1 hour'")
    await editing.schedule(actor, "product", object_id, at, await newest(database, object_id))
    await editing.schedule(actor, "product", object_id, None, await newest(database, object_id))

    draft = (await edited(database, object_id)).draft
    assert draft is not None
    assert draft.publish_at is None


async def test_there_is_nothing_to_publish_without_a_draft(database: Database, actor: Actor) -> None:
    object_id = await published(database, actor)

    with pytest.raises(editing.NothingToPublish):
        await editing.publish(actor, "product", object_id, await newest(database, object_id))
    with pytest.raises(editing.NothingToPublish):
        await editing.publish_many(actor, "product", ["coffee"])


@pytest.mark.parametrize("key", ["", "a/b", "a,b", "a;b", " a", "a" * 101, "a\nb"])
async def test_keys_that_cannot_be(database: Database, actor: Actor, key: str) -> None:
    with pytest.raises(Faulty):
        await editing.create(actor, "product", key, await product(database))


async def test_a_key_of_100_characters_and_one_that_is_taken(database: Database, actor: Actor) -> None:
    await editing.create(actor, "product", "k" * 100, await product(database))
    with pytest.raises(Faulty, match="has this key"):
        await editing.create(actor, "product", "k" * 100, await product(database))


async def test_a_picture_is_part_of_the_draft(database: Database, actor: Actor, beside: asyncpg.Connection) -> None:
    object_id = await published(database, actor)
    picture = read_picture(png(100, 100))

    await editing.set_picture(actor, object_id, picture, await newest(database, object_id))
    assert await beside.fetchval("SELECT picture FROM products") is None
    await editing.publish(actor, "product", object_id, await newest(database, object_id))

    assert await beside.fetchval("SELECT picture FROM products") == picture.name
    assert await beside.fetchval("SELECT count(*) FROM pictures") == 1


async def test_many_drafts_are_one_change_of_the_catalogue(
    database: Database, actor: Actor, beside: asyncpg.Connection
) -> None:
    contents = {f"p{number:03}": await product(database, name=f"Product {number}") for number in range(30)}
    await editing.import_drafts(actor, "product", contents, {}, "file")  # type: ignore[arg-type]
    before = await beside.fetchval("SELECT version FROM catalogue_version")

    assert await editing.publish_many(actor, "product", list(contents)) == 30

    assert await beside.fetchval("SELECT version FROM catalogue_version") == before + 1
    assert await beside.fetchval("SELECT count(*) FROM products WHERE active") == 30
    assert await beside.fetchval("SELECT count(*) FROM catalogue_drafts") == 0


async def test_a_change_says_which_templates_and_collections_it_breaks(
    database: Database, actor: Actor, beside: asyncpg.Connection
) -> None:
    object_id = await published(database, actor)
    treats = await editing.create(actor, "collection", "treats", await collection(database))
    await editing.publish(actor, "collection", treats, await newest(database, treats, "collection"))
    template = "INSERT INTO templates (customer_id, key, name, product_id, gift_name, value_minor, currency, country) "
    await beside.execute(template + "VALUES (1, 'a', 'Ten', $1, 'Coffee', 1000, 'GBP', 'GB')", object_id)
    await beside.execute(template + "VALUES (1, 'b', 'Five', $1, 'Coffee', 500, 'GBP', 'IE')", object_id)
    await beside.execute(template + "VALUES (1, 'c', 'Never', $1, 'Coffee', 700, 'GBP', 'IE')", object_id)
    await save(database, actor, object_id, denominations="5 25", countries="GB")

    async with database.connection(OPERATOR) as connection:
        impact = await read_impact(connection, await edited(database, object_id))

    assert [one.name for one in impact.templates] == ["Ten", "Five"]
    assert [(one.name, list(one.values_minor)) for one in impact.collections] == [("Treats", [1000])]
    await editing.save_draft(
        actor,
        "collection",
        treats,
        await collection(database, value_points="25"),
        await newest(database, treats, "collection"),
    )
    await beside.execute(
        "INSERT INTO templates (customer_id, key, name, collection_id, gift_name, value_minor, currency) "
        "VALUES (1, 'd', 'Choice', $1, 'Treats', 1000, 'GBP')",
        treats,
    )
    async with database.connection(OPERATOR) as connection:
        impact = await read_impact(connection, await edited(database, treats, "collection"))
    assert [one.name for one in impact.templates] == ["Choice"]
