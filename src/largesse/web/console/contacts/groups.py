"""Groups of contacts, and the fields that a company defines for its contacts: one page each."""

from __future__ import annotations

from typing import Annotated

import msgspec
from starlette.responses import Response

from largesse.base.errors import NotFound
from largesse.base.i18n.templates import text
from largesse.contacts.group_store import list_fields, list_groups, read_group
from largesse.contacts.groups import (
    NameTaken,
    TooManyFields,
    create_field,
    create_group,
    remove_field,
    remove_group,
    rename_field,
    rename_group,
)
from largesse.contacts.model import MAX_FIELD_NAME, MAX_GROUP, MOST_FIELDS, Group, OwnField
from largesse.contacts.service import TooManyGroups
from largesse.web.console.contacts.words import too_many
from largesse.web.console.context import RequestContext
from largesse.web.console.form import Text

_TAKEN = text("This name is taken. Choose another.")
_TOO_MANY_FIELDS = text("A company defines at most %(most)s fields. Delete one first.")


class GroupForm(msgspec.Struct):
    """The name of a group."""

    name: Annotated[str, Text(MAX_GROUP)]


class FieldForm(msgspec.Struct):
    """The name of a field."""

    name: Annotated[str, Text(MAX_FIELD_NAME)]


async def show(context: RequestContext) -> Response:
    """Shows the groups."""
    return await _groups(context)


async def create(context: RequestContext) -> Response:
    """Creates a group."""
    form = context.form.read(GroupForm)
    if not context.form.errors:
        try:
            await create_group(context.actor, form.name)
        except NameTaken:
            context.form.error("name", context.say(_TAKEN))
        except TooManyGroups as refusal:
            context.form.error("name", too_many(context, refusal))
    if context.form.errors:
        return await _groups(context)
    return context.see("/app/contacts/groups", context.say("The group was created."))


async def one(context: RequestContext) -> Response:
    """Shows a group, to rename or delete it. Raises NotFound."""
    return context.page("contacts/group.html", group=await _group(context), most=MAX_GROUP)


async def rename(context: RequestContext) -> Response:
    """Renames a group. Raises NotFound."""
    group, form = await _group(context), context.form.read(GroupForm)
    if not context.form.errors:
        try:
            await rename_group(context.actor, group.id, form.name)
        except NameTaken:
            context.form.error("name", context.say(_TAKEN))
    if context.form.errors:
        return context.page("contacts/group.html", group=group, most=MAX_GROUP)
    return context.see("/app/contacts/groups", context.say("The group was renamed."))


async def remove(context: RequestContext) -> Response:
    """Deletes a group. Raises NotFound."""
    await remove_group(context.actor, context.number("group"))
    return context.see("/app/contacts/groups", context.say("The group was deleted. Its contacts stay."))


async def show_fields(context: RequestContext) -> Response:
    """Shows the fields that the company defined."""
    return await _fields(context)


async def define(context: RequestContext) -> Response:
    """Defines a field."""
    form = context.form.read(FieldForm)
    if not context.form.errors:
        try:
            await create_field(context.actor, form.name)
        except NameTaken:
            context.form.error("name", context.say(_TAKEN))
        except TooManyFields:
            context.form.error("name", context.say(_TOO_MANY_FIELDS, most=MOST_FIELDS))
    if context.form.errors:
        return await _fields(context)
    return context.see("/app/contacts/fields", context.say("The field was created."))


async def show_field(context: RequestContext) -> Response:
    """Shows a field, to rename or delete it. Raises NotFound."""
    return context.page("contacts/field.html", field_shown=await _field(context), most=MAX_FIELD_NAME)


async def name_field(context: RequestContext) -> Response:
    """Renames a field. Raises NotFound."""
    field, form = await _field(context), context.form.read(FieldForm)
    if not context.form.errors:
        try:
            await rename_field(context.actor, field.key, form.name)
        except NameTaken:
            context.form.error("name", context.say(_TAKEN))
    if context.form.errors:
        return context.page("contacts/field.html", field_shown=field, most=MAX_FIELD_NAME)
    return context.see("/app/contacts/fields", context.say("The field was renamed."))


async def drop_field(context: RequestContext) -> Response:
    """Deletes a field with its values. Raises NotFound."""
    await remove_field(context.actor, context.request.path_params["field"])
    return context.see("/app/contacts/fields", context.say("The field was deleted."))


async def _groups(context: RequestContext) -> Response:
    person = context.person
    async with context.database.connection(person.scope) as connection:
        groups = await list_groups(connection, (person.customer_id, person.environment))
    return context.page("contacts/groups.html", groups=groups, most=MAX_GROUP)


async def _group(context: RequestContext) -> Group:
    person = context.person
    async with context.database.connection(person.scope) as connection:
        found = await read_group(connection, (person.customer_id, person.environment), context.number("group"))
    if found is None:
        raise NotFound("There is no such group.")
    return found


async def _own_fields(context: RequestContext) -> list[OwnField]:
    person = context.person
    async with context.database.connection(person.scope) as connection:
        return await list_fields(connection, (person.customer_id, person.environment))


async def _field(context: RequestContext) -> OwnField:
    key = context.request.path_params["field"]
    found = next((one for one in await _own_fields(context) if one.key == key), None)
    if found is None:
        raise NotFound("There is no such field.")
    return found


async def _fields(context: RequestContext) -> Response:
    fields = await _own_fields(context)
    return context.page("contacts/fields.html", fields=fields, most=MAX_FIELD_NAME, most_fields=MOST_FIELDS)
