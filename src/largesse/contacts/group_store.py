"""The SQL of groups of contacts, their members, and the fields that customers define."""

from collections.abc import Collection, Iterable, Sequence

from largesse.contacts.model import MOST_MEMBERS_COUNTED, Group, OwnField, group_key
from largesse.contacts.store import Place
from largesse.db.fragments import compose
from largesse.db.pool import Connection

# The customer's groups with the number of members, which is counted up to a limit: all groups together may have millions.
_GROUPS = compose(
    """
    SELECT g.id, g.name, (
        SELECT count(*) FROM (SELECT FROM contact_members m WHERE m.customer_id = g.customer_id AND m.group_id = g.id LIMIT {most} + 1) AS counted
    ) AS members
    FROM contact_groups g WHERE g.customer_id = $1 AND g.environment = $2
    """,
    most=MOST_MEMBERS_COUNTED,
)
_LIST = compose("{groups} ORDER BY lower(g.name)", groups=_GROUPS)
_ONE = compose("{groups} AND g.id = $3", groups=_GROUPS)
_NAMES = "SELECT id, name FROM contact_groups WHERE customer_id = $1 AND environment = $2"
_INSERT = """
    INSERT INTO contact_groups (customer_id, environment, name) SELECT $1, $2, name FROM unnest($3::text[]) AS new (name)
    RETURNING id, name
"""
_RENAME = "UPDATE contact_groups SET name = $4 WHERE customer_id = $1 AND environment = $2 AND id = $3"
DELETE_GROUP = "DELETE FROM contact_groups WHERE customer_id = $1 AND environment = $2 AND id = $3"
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
INSERT_FIELD = "INSERT INTO contact_fields (customer_id, environment, key, name) VALUES ($1, $2, $3, $4)"
_RENAME_FIELD = "UPDATE contact_fields SET name = $4 WHERE customer_id = $1 AND environment = $2 AND key = $3"
_DELETE_FIELD = "DELETE FROM contact_fields WHERE customer_id = $1 AND environment = $2 AND key = $3"
_EMPTY_FIELD = """
    UPDATE contacts SET own_fields = own_fields - $3::text
    WHERE customer_id = $1 AND environment = $2 AND jsonb_exists(own_fields, $3)
"""

Pair = tuple[int, int]  # the id of a group and the id of a contact


async def list_groups(connection: Connection, place: Place) -> list[Group]:
    """Returns the customer's groups by name."""
    return [Group(**row) for row in await connection.fetch(_LIST, *place)]


async def read_group(connection: Connection, place: Place, group_id: int) -> Group | None:
    """Returns a group of the customer; None if it has none with that id."""
    row = await connection.fetchrow(_ONE, *place, group_id)
    return None if row is None else Group(**row)


async def group_ids(connection: Connection, place: Place) -> dict[str, int]:
    """Returns the ids of the customer's groups by their keys (`group_key`)."""
    return {group_key(row["name"]): row["id"] for row in await connection.fetch(_NAMES, *place)}


async def insert_groups(connection: Connection, place: Place, names: Sequence[str]) -> dict[str, int]:
    """Adds groups. Returns their ids by their keys (`group_key`)."""
    if not names:
        return {}
    return {group_key(row["name"]): row["id"] for row in await connection.fetch(_INSERT, *place, list(names))}


async def rename_group(connection: Connection, place: Place, group_id: int, name: str) -> None:
    """Renames a group."""
    await connection.execute(_RENAME, *place, group_id, name)


async def save_members(connection: Connection, place: Place, joins: Collection[Pair], leaves: Collection[Pair]) -> None:
    """Puts contacts into groups, and takes others out."""
    if leaves:
        await connection.execute(_LEAVE, *place, *_columns(leaves))
    if joins:
        await connection.execute(_JOIN, *place, *_columns(joins))


async def list_fields(connection: Connection, place: Place) -> list[OwnField]:
    """Returns the fields that the customer defined, the oldest first."""
    return [OwnField(**row) for row in await connection.fetch(_FIELDS, *place)]


async def rename_field(connection: Connection, place: Place, key: str, name: str) -> None:
    """Renames a field; its key stays."""
    await connection.execute(_RENAME_FIELD, *place, key, name)


async def delete_field(connection: Connection, place: Place, key: str) -> None:
    """Deletes a field with all its values."""
    await connection.execute(_DELETE_FIELD, *place, key)
    await connection.execute(_EMPTY_FIELD, *place, key)


def _columns(pairs: Iterable[Pair]) -> tuple[list[int], list[int]]:
    groups, contacts = zip(*pairs, strict=True)
    return list(groups), list(contacts)
