"""Operations of the back office on products and curated collections: drafts, and publishing them.

Every change is a draft first. Publishing replaces what customers see in one statement. It records the changes, so that each process reads
only these (docs/decisions/0062-catalogue-by-changes.md). Objects of a seed file can be changed here only after `release`.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

import structlog

from largesse.base.errors import NotFound, StateConflict, existing
from largesse.base.money import canonical
from largesse.base.text import unfit_key
from largesse.catalogue import draft_store as store
from largesse.catalogue.content import (
    KINDS,
    REQUIRED,
    TOO_LONG,
    UNFIT,
    CollectionContent,
    Content,
    Fault,
    Faulty,
    ProductContent,
    differences,
)
from largesse.catalogue.draft_store import Edited
from largesse.catalogue.pictures import Picture, save_pictures
from largesse.catalogue.typed import Names, keys_in
from largesse.customers.actor import Actor, Transaction
from largesse.customers.staff_roles import StaffRight
from largesse.db.pool import DATABASE_AWAY, Connection
from largesse.db.statements import read_now

MOST_KEY = 100
MOST_AT_ONCE = 1_000  # drafts that are published or imported together; one record of changes holds no more
KEY_TAKEN = "Another one has this key."
NOT_LATER = "Choose a time in the future."
_MOST_SHOWN = 200  # characters of a text in the audit log

log = structlog.get_logger(__name__)


class ManagedByFile(StateConflict, rule="The seed file manages it. Release it first, or change the file."):
    """The seed file manages the object. Change it there, or release it first."""


class ChangedMeanwhile(StateConflict):
    """Somebody else saved, published or discarded the object since the form was opened. `edited` is the current state."""

    def __init__(self, edited: Edited) -> None:
        super().__init__("Somebody else changed it meanwhile.")
        self.edited = edited


class NothingToPublish(StateConflict, rule="There is nothing to publish."):
    """There is no draft, or it does not differ from the published content."""


async def read_names(connection: Connection, typed: Sequence[Mapping[str, str]]) -> Names:
    """Returns the customers and products whose keys are in texts of forms or rows. Skips keys with NUL, which the database refuses."""
    customers = {key for one in typed for key in keys_in(one.get("customers", "")) if "\0" not in key}
    products = {key for one in typed for key in keys_in(one.get("products", "")) if "\0" not in key}
    return Names(
        await store.customers_by_key(connection, customers) if customers else {},
        await store.products_by_key(connection, products) if products else {},
    )


async def create(actor: Actor, kind: str, key: str, content: Content) -> int:
    """Creates an object that nobody can send until its draft is published. Returns its id. Raises Faulty for an invalid key."""
    _require_key(key)
    async with actor.transaction(StaffRight.CATALOGUE) as transaction:
        ids = await store.add(transaction.connection, kind, {key: content})
        if key not in ids:
            raise Faulty([Fault("key", KEY_TAKEN)])
        await store.save_drafts(transaction.connection, kind, [(ids[key], content, 0)], _author(actor))
        await transaction.record("catalogue.created", f"{kind} {key}", after=_shown(content, content.__struct_fields__))
    return ids[key]


async def save_draft(actor: Actor, kind: str, object_id: int, content: Content, seen: int) -> None:
    """Saves a draft. `seen` is the edition that the form was based on. Raises NotFound, ManagedByFile and ChangedMeanwhile."""
    async with actor.transaction(StaffRight.CATALOGUE) as transaction:
        edited = await _lock(transaction, kind, object_id, seen)
        changed = differences(edited.newest, content)
        if not changed and not edited.is_behind:
            return
        await store.save_drafts(transaction.connection, kind, [(object_id, content, edited.edition)], _author(actor))
        before, after = _shown(edited.newest, changed), _shown(content, changed)
        await transaction.record("catalogue.draft_saved", f"{kind} {edited.key}", before=before, after=after)


async def set_picture(actor: Actor, product_id: int, picture: Picture | None, seen: int) -> None:
    """Sets the picture of a product's draft; None removes it. Raises as `save_draft` does."""
    async with actor.transaction(StaffRight.CATALOGUE) as transaction:
        edited = await _lock(transaction, "product", product_id, seen)
        assert isinstance(edited.newest, ProductContent)
        if picture is not None:
            await save_pictures(transaction.connection, [picture])
        values = {name: getattr(edited.newest, name) for name in edited.newest.__struct_fields__}
        content = ProductContent(**{**values, "picture": picture and picture.name})
        await store.save_drafts(
            transaction.connection, "product", [(product_id, content, edited.edition)], _author(actor)
        )
        before, after = {"picture": edited.newest.picture}, {"picture": content.picture}
        await transaction.record("catalogue.draft_saved", f"product {edited.key}", before=before, after=after)


async def discard_draft(actor: Actor, kind: str, object_id: int, seen: int) -> bool:
    """Deletes a draft. Also deletes its object if that was never published and nothing refers to it.

    Returns whether the object was deleted. Raises as `save_draft` does.
    """
    async with actor.transaction(StaffRight.CATALOGUE) as transaction:
        edited = await _lock(transaction, kind, object_id, seen)
        if edited.draft is None:
            return False
        await store.delete_drafts(transaction.connection, kind, [object_id])
        is_gone = edited.is_new and await store.delete_new(transaction.connection, kind, object_id)
        await transaction.record("catalogue.draft_discarded", f"{kind} {edited.key}")
    return is_gone


async def publish(actor: Actor, kind: str, object_id: int, seen: int) -> None:
    """Publishes a draft. Customers see it from the next request on. Raises as `save_draft` does, and NothingToPublish."""
    async with actor.transaction(StaffRight.CATALOGUE) as transaction:
        edited = await _lock(transaction, kind, object_id, seen)
        await _publish(transaction, edited, _author(actor))


async def publish_many(actor: Actor, kind: str, keys: Sequence[str]) -> int:
    """Publishes up to 1,000 drafts of one kind, all of them or none, as one change of the catalogue. Returns how many.

    Skips scheduled drafts. Raises ManagedByFile, NothingToPublish, and ChangedMeanwhile for a draft that is older than the last publication.
    """
    async with actor.transaction(StaffRight.CATALOGUE) as transaction:
        connection = transaction.connection
        found = list((await store.read_many(connection, kind, keys[:MOST_AT_ONCE])).values())
        await store.lock_all(connection, kind, [one.id for one in found])
        again = await store.read_many(connection, kind, keys[:MOST_AT_ONCE])
        drafts = [one for one in again.values() if one.draft and one.draft.publish_at is None]
        if not drafts:
            raise NothingToPublish
        for one in drafts:
            _require_publishable(one)
        await _write(transaction, kind, drafts, [one.newest for one in drafts], _author(actor))
        shown = {f"{kind}s": len(drafts), "keys": [one.key for one in drafts[:100]]}
        await transaction.record("catalogue.published_many", f"{len(drafts)} {kind}s", after=shown)
    return len(drafts)


async def schedule(actor: Actor, kind: str, object_id: int, at: datetime | None, seen: int) -> None:
    """Sets when a draft is published automatically; None means never. Raises as `publish` does, and Faulty for a time in the past."""
    async with actor.transaction(StaffRight.CATALOGUE) as transaction:
        edited = await _lock(transaction, kind, object_id, seen)
        if edited.draft is None:
            raise NothingToPublish
        if at is not None:
            _require_publishable(edited)
        if at is not None and at <= await read_now(transaction.connection):
            raise Faulty([Fault("at", NOT_LATER)])
        await store.schedule(transaction.connection, kind, object_id, at)
        act = "catalogue.unscheduled" if at is None else "catalogue.scheduled"
        await transaction.record(act, f"{kind} {edited.key}", after=None if at is None else {"at": at.isoformat()})


async def undo(actor: Actor, kind: str, object_id: int, seen: int) -> None:
    """Publishes the content before the last publication again. Keeps a draft, marked as older. Raises as `save_draft` does."""
    async with actor.transaction(StaffRight.CATALOGUE) as transaction:
        edited = await _lock(transaction, kind, object_id, seen)
        versions = await store.list_versions(transaction.connection, kind, object_id, 2)
        if len(versions) < 2 or versions[0].edition != edited.edition:
            raise StateConflict("There is nothing to undo.")
        former = versions[1].content
        changed = differences(edited.content, former)
        await _write(transaction, kind, [edited], [former], _author(actor), keeps_draft=True)
        before, after = _shown(edited.content, changed), _shown(former, changed)
        await transaction.record("catalogue.undone", f"{kind} {edited.key}", before=before, after=after)


async def release(actor: Actor, kind: str, object_id: int) -> None:
    """Makes the back office manage an object of the seed file. Later loads skip it. Raises NotFound."""
    async with actor.transaction(StaffRight.CATALOGUE) as transaction:
        key = await store.release(transaction.connection, kind, object_id)
        if key is None:
            if await store.read(transaction.connection, kind, object_id) is None:
                raise NotFound(f"There is no such {kind}.")
            return
        await transaction.record("catalogue.released", f"{kind} {key}")


async def import_drafts(
    actor: Actor, kind: str, contents: Mapping[str, Content], seen: Mapping[str, int], source: str
) -> None:
    """Saves drafts of one kind by key, and creates objects that are missing. Saves all drafts or none.

    `seen` has the editions that existing objects had when the contents were read. Raises ChangedMeanwhile and ManagedByFile.
    """
    async with actor.transaction(StaffRight.CATALOGUE) as transaction:
        connection = transaction.connection
        there = await store.read_many(connection, kind, contents)
        await store.lock_all(connection, kind, [one.id for one in there.values()])
        there = await store.read_many(connection, kind, contents)
        for key, edited in there.items():
            _require_office(edited)
            if seen.get(key) != edited.seen:
                raise ChangedMeanwhile(edited)
        new = {key: content for key, content in contents.items() if key not in there}
        ids = await store.add(connection, kind, new) if new else {}
        if len(ids) < len(new):
            raise StateConflict(f"Somebody else created one of these {kind}s meanwhile. Import the file again.")
        drafts = [(there[key].id, content, there[key].edition) for key, content in contents.items() if key in there]
        drafts += [(ids[key], content, 0) for key, content in new.items()]
        await store.save_drafts(connection, kind, drafts, _author(actor))
        after = {"new": len(new), "changed": len(there), "keys": list(contents)[:100]}
        await transaction.record("catalogue.imported", source[:200], after=after)


async def publish_due(connection: Connection, actor: Actor, most: int) -> int:
    """Publishes the due drafts, each in its own transaction. Returns how many it published or refused.

    A draft that can no longer be published stays, with the reason.
    """
    done = 0
    for row in await store.list_due(connection, most):
        kind, object_id = row["kind"], row["object_id"]
        try:
            await _publish_if_due(actor, kind, object_id)
        except DATABASE_AWAY:
            raise
        except Exception:
            log.exception("catalogue.not_published", kind=kind, object_id=object_id)  # the loop goes on
        else:
            done += 1
    return done


async def _publish_if_due(actor: Actor, kind: str, object_id: int) -> None:
    async with actor.transaction(StaffRight.CATALOGUE) as transaction:
        edited = await store.read(transaction.connection, kind, object_id, locks=True)
        now = await read_now(transaction.connection)
        draft = None if edited is None else edited.draft
        if edited is None or draft is None or draft.publish_at is None or draft.publish_at > now:
            return
        try:
            await _publish(transaction, edited, draft.author)
        except (ManagedByFile, ChangedMeanwhile, NothingToPublish) as refused:
            await store.fail(transaction.connection, kind, object_id, type(refused).__name__)


async def _publish(transaction: Transaction, edited: Edited, author: str) -> None:
    _require_publishable(edited)
    changed = differences(edited.content, edited.newest)
    if edited.draft is None or (not changed and edited.edition):
        raise NothingToPublish
    await _write(transaction, edited.kind, [edited], [edited.newest], author)
    before, after = _shown(edited.content, changed), _shown(edited.newest, changed)
    await transaction.record("catalogue.published", f"{edited.kind} {edited.key}", before=before, after=after)


async def _write(
    transaction: Transaction,
    kind: str,
    edited: Sequence[Edited],
    contents: Sequence[Content],
    author: str,
    *,
    keeps_draft: bool = False,
) -> None:
    """Publishes contents. The last statement locks the row of the catalogue's version, so that others wait only for a moment."""
    connection, ids = transaction.connection, [one.id for one in edited]
    edition = await connection.fetchval(store.NEXT_EDITION)
    if not keeps_draft:
        await store.delete_drafts(connection, kind, ids)
    await store.add_versions(connection, kind, [(one.id, one.edition, one.content) for one in edited], "")
    new = [(one.id, edition, content) for one, content in zip(edited, contents, strict=True)]
    await store.add_versions(connection, kind, new, author)
    await store.delete_old_versions(connection, kind, ids)
    written = await store.write(connection, kind, dict(zip(ids, contents, strict=True)), edition)
    if written != len(ids):
        raise ManagedByFile


async def _lock(transaction: Transaction, kind: str, object_id: int, seen: int) -> Edited:
    if kind not in KINDS:
        raise NotFound("There is nothing of that kind.")
    edited = existing(
        await store.read(transaction.connection, kind, object_id, locks=True), f"There is no such {kind}."
    )
    _require_office(edited)
    if edited.seen != seen:
        raise ChangedMeanwhile(edited)
    return edited


def _require_office(edited: Edited) -> None:
    if edited.managed != "office":
        raise ManagedByFile


def _require_publishable(edited: Edited) -> None:
    _require_office(edited)
    if edited.is_behind:
        raise ChangedMeanwhile(edited)


def _require_key(key: str) -> None:
    if len(key) > MOST_KEY:
        raise Faulty([Fault("key", TOO_LONG, {"found": len(key), "most": MOST_KEY})])
    if not key:
        raise Faulty([Fault("key", REQUIRED)])
    if unfit_key(key) or key != key.strip() or any(character in key for character in "/,;"):
        raise Faulty([Fault("key", UNFIT)])


def _author(actor: Actor) -> str:
    return actor.acting.who.name


def _shown(content: Content, names: Sequence[str]) -> dict[str, object]:
    """Returns fields for the audit log: amounts in major units, and the beginnings of texts."""
    return {name.removesuffix("_minor"): _value(content, name) for name in names}


def _value(content: ProductContent | CollectionContent, name: str) -> object:
    value = getattr(content, name)
    if isinstance(value, str):
        return value[:_MOST_SHOWN]
    if not name.endswith("_minor") or value is None:
        return len(value) if name == "customer_ids" and value is not None else value
    if isinstance(value, int):
        return canonical(value, content.currency)
    if isinstance(value, dict):
        return {country: canonical(minor, content.currency) for country, minor in value.items()}
    return [canonical(minor, content.currency) for minor in value]
