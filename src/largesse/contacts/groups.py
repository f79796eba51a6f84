"""Operations on groups of contacts, and on the fields that customers define for them."""

from largesse.base.errors import BrokenRule, InvalidRequest, NotFound
from largesse.base.text import free_key
from largesse.contacts import group_store
from largesse.contacts.model import MAX_KEY, MOST_FIELDS, MOST_GROUPS, Group, OwnField, checked_group, group_key
from largesse.contacts.service import TooManyGroups, changing_contacts
from largesse.customers.actor import Actor, Transaction

# The placeholders of every message. No own field may have these keys.
RESERVED = frozenset({"first_name", "name", "company"})


class NameTaken(InvalidRequest):
    """Another group, or field, has that name."""


class TooManyFields(BrokenRule):
    """The customer has as many fields of its own as it may."""

    rule = f"A customer defines at most {MOST_FIELDS} fields for its contacts."


async def create_group(actor: Actor, name: str) -> int:
    """Creates a group and returns its id. Raises NameTaken, TooManyGroups, and ContactFault for an invalid name."""
    name = checked_group(name)
    async with changing_contacts(actor) as transaction:
        groups = await group_store.group_ids(transaction.connection, actor.place)
        if group_key(name) in groups:
            raise NameTaken("Another group has this name.")
        if len(groups) >= MOST_GROUPS:
            raise TooManyGroups
        made = await group_store.insert_groups(transaction.connection, actor.place, [name])
        group_id = made[group_key(name)]
        await transaction.record("contact_group.created", f"contact group {group_id}", after={"name": name})
    return group_id


async def rename_group(actor: Actor, group_id: int, name: str) -> None:
    """Renames a group. Raises NotFound, NameTaken and ContactFault."""
    name = checked_group(name)
    async with changing_contacts(actor) as transaction:
        before = await _require_group(transaction, group_id)
        if (await group_store.group_ids(transaction.connection, actor.place)).get(
            group_key(name), group_id
        ) != group_id:
            raise NameTaken("Another group has this name.")
        await group_store.rename_group(transaction.connection, actor.place, group_id, name)
        subject = f"contact group {group_id}"
        await transaction.record("contact_group.renamed", subject, before={"name": before.name}, after={"name": name})


async def remove_group(actor: Actor, group_id: int) -> None:
    """Deletes a group; its contacts stay. Raises NotFound."""
    async with changing_contacts(actor) as transaction:
        before = await _require_group(transaction, group_id)
        await transaction.connection.execute(group_store.DELETE_GROUP, *actor.place, group_id)
        await transaction.record("contact_group.removed", f"contact group {group_id}", before={"name": before.name})


async def create_field(actor: Actor, name: str) -> OwnField:
    """Defines a field, and returns it with the key that is its placeholder in messages. Raises NameTaken and TooManyFields."""
    async with changing_contacts(actor) as transaction:
        fields = await group_store.list_fields(transaction.connection, actor.place)
        if any(one.name.lower() == name.lower() for one in fields):
            raise NameTaken("Another field has this name.")
        if len(fields) >= MOST_FIELDS:
            raise TooManyFields
        taken = {one.key for one in fields} | RESERVED
        field = OwnField(free_key(name, taken, "field", joint="_", longest=MAX_KEY - 3), name)
        await transaction.connection.execute(group_store.INSERT_FIELD, *actor.place, field.key, field.name)
        await transaction.record("contact_field.created", f"contact field {field.key}", after={"name": name})
    return field


async def rename_field(actor: Actor, key: str, name: str) -> None:
    """Renames a field. Its placeholder in messages stays the same. Raises NotFound and NameTaken."""
    async with changing_contacts(actor) as transaction:
        before = await _require_field(transaction, key)
        fields = await group_store.list_fields(transaction.connection, actor.place)
        if any(one.name.lower() == name.lower() and one.key != key for one in fields):
            raise NameTaken("Another field has this name.")
        await group_store.rename_field(transaction.connection, actor.place, key, name)
        await transaction.record(
            "contact_field.renamed", f"contact field {key}", before={"name": before.name}, after={"name": name}
        )


async def remove_field(actor: Actor, key: str) -> None:
    """Deletes a field with all its values. Raises NotFound."""
    async with changing_contacts(actor) as transaction:
        before = await _require_field(transaction, key)
        await group_store.delete_field(transaction.connection, actor.place, key)
        await transaction.record("contact_field.removed", f"contact field {key}", before={"name": before.name})


async def _require_group(transaction: Transaction, group_id: int) -> Group:
    group = await group_store.read_group(transaction.connection, transaction.actor.place, group_id)
    if group is None:
        raise NotFound("There is no such group.")
    return group


async def _require_field(transaction: Transaction, key: str) -> OwnField:
    fields = await group_store.list_fields(transaction.connection, transaction.actor.place)
    found = next((one for one in fields if one.key == key), None)
    if found is None:
        raise NotFound("There is no such field.")
    return found
