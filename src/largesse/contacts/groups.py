"""Groups of contacts, and the fields that customers define for them: their SQL, and operations on them."""

from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from contextlib import asynccontextmanager

from largesse.base.errors import InvalidRequest, NotFound, existing
from largesse.base.text import free_key
from largesse.contacts import model, store
from largesse.customers.actor import Actor, Transaction
from largesse.customers.roles import Right
from largesse.db.fragments import compose
from largesse.db.pool import Connection
from largesse.db.scope import Place

# The customer's groups with the number of members, which is counted up to a limit: all groups together may have millions.
_GROUPS = compose(
    """
    SELECT g.id, g.name, (
        SELECT count(*) FROM (SELECT FROM contact_members m WHERE m.customer_id = g.customer_id AND m.group_id = g.id LIMIT {most} + 1) AS counted
    ) AS members
    FROM contact_groups g WHERE g.customer_id = $1 AND g.environment = $2
    """,
    most=model.MOST_MEMBERS_COUNTED,
)
_LIST = compose("{groups} ORDER BY lower(g.name)", groups=_GROUPS)
_ONE = compose("{groups} AND g.id = $3", groups=_GROUPS)
_NAMES = "SELECT id, name FROM contact_groups WHERE customer_id = $1 AND environment = $2 ORDER BY lower(name)"
_INSERT = """
    INSERT INTO contact_groups (customer_id, environment, name) SELECT $1, $2, name FROM unnest($3::text[]) AS new (name)
    RETURNING id, name
"""
_RENAME = "UPDATE contact_groups SET name = $4 WHERE customer_id = $1 AND environment = $2 AND id = $3"
_DELETE = "DELETE FROM contact_groups WHERE customer_id = $1 AND environment = $2 AND id = $3"
# A contact that is already in a group keeps the day on which it joined.
_JOIN = """
    INSERT INTO contact_members (customer_id, environment, group_id, contact_id, joined_on)
    SELECT $1, $2, new.group_id, new.contact_id, (SELECT clock_now() AT TIME ZONE 'UTC')::date
    FROM unnest($3::int[], $4::int[]) AS new (group_id, contact_id) ON CONFLICT DO NOTHING
"""
_LEAVE = """
    DELETE FROM contact_members m USING unnest($3::int[], $4::int[]) AS gone (group_id, contact_id)
    WHERE m.customer_id = $1 AND m.environment = $2 AND m.group_id = gone.group_id AND m.contact_id = gone.contact_id
"""
_FIELDS = "SELECT key, name FROM contact_fields WHERE customer_id = $1 AND environment = $2 ORDER BY created_at, key"
_INSERT_FIELD = "INSERT INTO contact_fields (customer_id, environment, key, name) VALUES ($1, $2, $3, $4)"
_RENAME_FIELD = "UPDATE contact_fields SET name = $4 WHERE customer_id = $1 AND environment = $2 AND key = $3"
_DELETE_FIELD = "DELETE FROM contact_fields WHERE customer_id = $1 AND environment = $2 AND key = $3"
_EMPTY_FIELD = """
    UPDATE contacts SET own_fields = own_fields - $3::text
    WHERE customer_id = $1 AND environment = $2 AND jsonb_exists(own_fields, $3)
"""

Pair = tuple[int, int]  # the id of a group and the id of a contact


async def list_groups(connection: Connection, place: Place) -> list[model.Group]:
    """Returns the customer's groups by name."""
    return [model.Group(**row) for row in await connection.fetch(_LIST, *place)]


async def list_group_names(connection: Connection, place: Place) -> dict[int, str]:
    """Returns the names of the customer's groups by their ids, sorted by name. Unlike `list_groups`, this counts no members."""
    return {row["id"]: row["name"] for row in await connection.fetch(_NAMES, *place)}


async def read_group(connection: Connection, place: Place, group_id: int) -> model.Group:
    """Returns a group of the customer. Raises NotFound."""
    return model.Group(**existing(await connection.fetchrow(_ONE, *place, group_id), "There is no such group."))


async def group_ids(connection: Connection, place: Place) -> dict[str, int]:
    """Returns the ids of the customer's groups by their keys (`group_key`)."""
    return {model.group_key(name): id_ for id_, name in (await list_group_names(connection, place)).items()}


async def insert_groups(connection: Connection, place: Place, names: Sequence[str]) -> dict[str, int]:
    """Adds groups. Returns their ids by their keys (`group_key`)."""
    if not names:
        return {}
    return {model.group_key(row["name"]): row["id"] for row in await connection.fetch(_INSERT, *place, list(names))}


async def save_members(connection: Connection, place: Place, joins: Collection[Pair], leaves: Collection[Pair]) -> None:
    """Puts contacts into groups, and takes others out."""
    if leaves:
        await connection.execute(_LEAVE, *place, *_columns(leaves))
    if joins:
        await connection.execute(_JOIN, *place, *_columns(joins))


async def list_fields(connection: Connection, place: Place) -> list[model.OwnField]:
    """Returns the fields that the customer defined, the oldest first."""
    return [model.OwnField(**row) for row in await connection.fetch(_FIELDS, *place)]


async def read_field(connection: Connection, place: Place, key: str) -> model.OwnField:
    """Returns the field with that key. Raises NotFound."""
    for field in await list_fields(connection, place):
        if field.key == key:
            return field
    raise NotFound("There is no such field.")


def _columns(pairs: Iterable[Pair]) -> tuple[list[int], list[int]]:
    groups, contacts = zip(*pairs, strict=True)
    return list(groups), list(contacts)


# The placeholders of every message. No own field may have these keys.
RESERVED = frozenset({"first_name", "name", "company"})


class NameTaken(InvalidRequest):
    """Another group, or field, has that name."""


class TooManyGroups(InvalidRequest, rule=f"A customer has at most {model.MOST_GROUPS} groups of contacts."):
    """The customer would have more groups than it may."""


class TooManyFields(InvalidRequest, rule=f"A customer defines at most {model.MOST_FIELDS} fields for its contacts."):
    """The customer has as many fields of its own as it may."""


@asynccontextmanager
async def changing_contacts(actor: Actor) -> AsyncIterator[Transaction]:
    """Begins a transaction, and locks the customer's contacts and groups against other changes."""
    async with actor.transaction(Right.CONTACTS) as transaction:
        await store.lock_contacts(transaction.connection, actor.place)
        yield transaction


async def create_group(actor: Actor, name: str) -> int:
    """Creates a group and returns its id. Raises NameTaken, TooManyGroups, and ContactFault for an invalid name."""
    name = model.checked_group(name)
    async with changing_contacts(actor) as transaction:
        groups = await group_ids(transaction.connection, actor.place)
        if model.group_key(name) in groups:
            raise NameTaken("Another group has this name.")
        if len(groups) >= model.MOST_GROUPS:
            raise TooManyGroups
        made = await insert_groups(transaction.connection, actor.place, [name])
        group_id = made[model.group_key(name)]
        await transaction.record("contact_group.created", f"contact group {group_id}", after={"name": name})
    return group_id


async def rename_group(actor: Actor, group_id: int, name: str) -> None:
    """Renames a group. Raises NotFound, NameTaken and ContactFault."""
    name = model.checked_group(name)
    async with changing_contacts(actor) as transaction:
        before = await read_group(transaction.connection, actor.place, group_id)
        if (await group_ids(transaction.connection, actor.place)).get(model.group_key(name), group_id) != group_id:
            raise NameTaken("Another group has this name.")
        await transaction.connection.execute(_RENAME, *actor.place, group_id, name)
        subject = f"contact group {group_id}"
        await transaction.record("contact_group.renamed", subject, before={"name": before.name}, after={"name": name})


async def remove_group(actor: Actor, group_id: int) -> None:
    """Deletes a group; its contacts stay. Raises NotFound."""
    async with changing_contacts(actor) as transaction:
        before = await read_group(transaction.connection, actor.place, group_id)
        await transaction.connection.execute(_DELETE, *actor.place, group_id)
        await transaction.record("contact_group.removed", f"contact group {group_id}", before={"name": before.name})


async def create_field(actor: Actor, name: str) -> model.OwnField:
    """Defines a field, and returns it with the key that is its placeholder in messages. Raises NameTaken and TooManyFields."""
    async with changing_contacts(actor) as transaction:
        fields = await list_fields(transaction.connection, actor.place)
        if any(one.name.lower() == name.lower() for one in fields):
            raise NameTaken("Another field has this name.")
        if len(fields) >= model.MOST_FIELDS:
            raise TooManyFields
        taken = {one.key for one in fields} | RESERVED
        field = model.OwnField(free_key(name, taken, "field", joint="_", longest=model.MAX_KEY - 3), name)
        await transaction.connection.execute(_INSERT_FIELD, *actor.place, field.key, field.name)
        await transaction.record("contact_field.created", f"contact field {field.key}", after={"name": name})
    return field


async def rename_field(actor: Actor, key: str, name: str) -> None:
    """Renames a field. Its placeholder in messages stays the same. Raises NotFound and NameTaken."""
    async with changing_contacts(actor) as transaction:
        before = await read_field(transaction.connection, actor.place, key)
        fields = await list_fields(transaction.connection, actor.place)
        if any(one.name.lower() == name.lower() and one.key != key for one in fields):
            raise NameTaken("Another field has this name.")
        await transaction.connection.execute(_RENAME_FIELD, *actor.place, key, name)
        await transaction.record(
            "contact_field.renamed", f"contact field {key}", before={"name": before.name}, after={"name": name}
        )


async def remove_field(actor: Actor, key: str) -> None:
    """Deletes a field with all its values. Raises NotFound."""
    async with changing_contacts(actor) as transaction:
        before = await read_field(transaction.connection, actor.place, key)
        await transaction.connection.execute(_DELETE_FIELD, *actor.place, key)
        await transaction.connection.execute(_EMPTY_FIELD, *actor.place, key)
        await transaction.record("contact_field.removed", f"contact field {key}", before={"name": before.name})
