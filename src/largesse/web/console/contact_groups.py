"""Groups of contacts, and the fields that a company defines for its contacts: one page each."""

from collections.abc import Awaitable, Callable

from starlette.responses import Response

from largesse.automations.store import list_automations
from largesse.base.i18n.languages import text
from largesse.contacts import groups
from largesse.contacts.model import MAX_FIELD_NAME, MAX_GROUP, MOST_FIELDS, MOST_MEMBERS_COUNTED, Group, OwnField
from largesse.web.console.contacts import too_many
from largesse.web.console.context import RequestContext

_TOO_MANY_FIELDS = text("A company defines at most %(most)s fields. Delete one first.")


async def show(context: RequestContext) -> Response:
    """Shows the groups."""
    found = await context.read(groups.list_groups, context.customer)
    return context.page("contacts/groups.html", groups=found, most=MAX_GROUP, most_members=MOST_MEMBERS_COUNTED)


async def create(context: RequestContext) -> Response:
    """Creates a group."""
    if not await _is_saved(context, MAX_GROUP, lambda name: groups.create_group(context.actor, name)):
        return await show(context)
    return context.see("/app/contacts/groups", context.say("The group was created."))


async def one(context: RequestContext) -> Response:
    """Shows a group, to rename or delete it, with the automations that send to it. Raises NotFound."""
    group = await _group(context)
    automations = await context.read(list_automations, context.customer)
    return context.page(
        "contacts/group.html",
        group=group,
        automations=[one for one in automations if one.group_id == group.id],
        most=MAX_GROUP,
        most_members=MOST_MEMBERS_COUNTED,
    )


async def rename(context: RequestContext) -> Response:
    """Renames a group. Raises NotFound."""
    group = await _group(context)
    context.form.keep_others({"name": group.name})
    if not await _is_saved(context, MAX_GROUP, lambda name: groups.rename_group(context.actor, group.id, name)):
        return await one(context)
    return context.see("/app/contacts/groups", context.say("The group was renamed."))


async def remove(context: RequestContext) -> Response:
    """Deletes a group. Raises NotFound."""
    await groups.remove_group(context.actor, context.number("group"))
    return context.see("/app/contacts/groups", context.say("The group was deleted. Its contacts stay."))


async def show_fields(context: RequestContext) -> Response:
    """Shows the fields that the company defined."""
    fields = await context.read(groups.list_fields, context.customer)
    return context.page("contacts/fields.html", fields=fields, most=MAX_FIELD_NAME, most_fields=MOST_FIELDS)


async def define(context: RequestContext) -> Response:
    """Defines a field."""
    if not await _is_saved(context, MAX_FIELD_NAME, lambda name: groups.create_field(context.actor, name)):
        return await show_fields(context)
    return context.see("/app/contacts/fields", context.say("The field was created."))


async def show_field(context: RequestContext) -> Response:
    """Shows a field, to rename or delete it. Raises NotFound."""
    return context.page("contacts/field.html", field_shown=await _field(context), most=MAX_FIELD_NAME)


async def name_field(context: RequestContext) -> Response:
    """Renames a field. Raises NotFound."""
    field = await _field(context)
    context.form.keep_others({"name": field.name})
    if not await _is_saved(context, MAX_FIELD_NAME, lambda name: groups.rename_field(context.actor, field.key, name)):
        return await show_field(context)
    return context.see("/app/contacts/fields", context.say("The field was renamed."))


async def drop_field(context: RequestContext) -> Response:
    """Deletes a field with its values. Raises NotFound."""
    await groups.remove_field(context.actor, context.request.path_params["field"])
    return context.see("/app/contacts/fields", context.say("The field was deleted."))


async def _is_saved(context: RequestContext, most: int, save: Callable[[str], Awaitable[object]]) -> bool:
    """Calls `save` with the typed name. Returns whether it was saved; if not, the form has an error."""
    form = context.form
    name = form.text("name", most)
    if not form.errors:
        try:
            await save(name)
        except groups.NameTaken:
            form.error("name", context.say("This name is taken. Choose another."))
        except groups.TooManyGroups as refusal:
            form.error("name", too_many(context, refusal))
        except groups.TooManyFields:
            form.error("name", context.say(_TOO_MANY_FIELDS, most=MOST_FIELDS))
    return not form.errors


async def _group(context: RequestContext) -> Group:
    return await context.read(groups.read_group, context.customer, context.number("group"))


async def _field(context: RequestContext) -> OwnField:
    return await context.read(groups.read_field, context.customer, context.request.path_params["field"])
