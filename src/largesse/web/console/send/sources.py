"""Forms that enter the recipients of a send (typed, pasted, from a file, from contacts, or as anonymous codes), and forms that change how a file is read."""

from starlette.responses import Response

from largesse.base.email import email_key
from largesse.base.i18n.languages import text
from largesse.base.text import cleaned
from largesse.contacts.groups import list_groups
from largesse.contacts.model import MOST_COUNTED, Contact
from largesse.contacts.store import Filter, count_contacts, find_contacts, list_by_id, list_contacts
from largesse.drafts.checking import Typed
from largesse.drafts.columns import fits
from largesse.drafts.recipients import Taking
from largesse.drafts.sheet import SheetRefused
from largesse.drafts.text_sheet import TWICE
from largesse.orders.recipients import MAX_CODES
from largesse.web.console.contacts import group_choices
from largesse.web.console.context import RequestContext, note_no_file
from largesse.web.console.send.opening import Open, open_draft, step
from largesse.web.console.send.recipients import (
    column_name,
    columns_in,
    hidden_rows,
    reading_of,
    refused,
    show_recipients,
)

_MOST_FILE_NAME = 100
_OTHERS = text("Another window has added recipients meanwhile. Nothing was saved: look at them, and try again.")

_OTHER_READING = text(
    "Another window has changed how the list is read. Nothing was saved: look at it, and choose again."
)


async def take_typed(context: RequestContext) -> Response:
    """Reads typed or pasted rows."""
    return await _take(context, await open_draft(context), "rows", context.form["rows"].encode(), None)


async def take_file(context: RequestContext) -> Response:
    """Reads a CSV, XLSX or ODS file."""
    opened = await open_draft(context)
    data = context.files.get("file", b"")
    if not data:
        note_no_file(context)
        return await show_recipients(context, opened, tab="file")
    name = cleaned(context.file_names["file"], "")[:_MOST_FILE_NAME]
    return await _take(context, opened, "file", data, name)


async def take_quantity(context: RequestContext) -> Response:
    """Sets the number of anonymous codes."""
    opened = await open_draft(context)
    if (others := await _others(context, opened, "")) is not None:
        return others
    quantity = context.form.number("quantity") or 0
    if not 1 <= quantity <= MAX_CODES:
        context.form.error("quantity", context.say("Type a whole number from 1 to 5000."))
        return await show_recipients(context, opened)
    await context.services.drafts.rows.set_quantity(context.actor, opened.draft.id, quantity)
    return context.see(f"{opened.path}/message")


async def read_again(context: RequestContext) -> Response:
    """Reads the file as the form says: another sheet, another encoding, or other columns."""
    opened, form = await open_draft(context), context.form
    rows, source = context.services.drafts.rows, opened.content.source
    principal = opened.caller.principal
    if "was_reading" in form and form["was_reading"] != reading_of(opened):
        return await show_recipients(context, opened, said=context.say(_OTHER_READING))
    sheet_at = form.number("sheet")
    try:
        if sheet_at is not None and sheet_at != source.sheet:
            await rows.choose_sheet(context.actor, principal, opened.draft, sheet_at)
            return context.see(f"{opened.path}/recipients")
    except SheetRefused as refusal:
        form.error("sheet", refused(context, refusal))
        return await show_recipients(context, opened)
    sheet = await rows.sheet(principal, opened.draft)
    columns = columns_in(form)
    if columns.email is None or not fits(columns, sheet):
        form.error("email", context.say("Choose a different column for each. One of them must be the e-mail address."))
        return await show_recipients(context, opened)
    if columns != opened.content.columns:
        await rows.set_columns(context.actor, opened.draft.id, sheet, columns)
    if form["encoding"] and form["encoding"] != source.encoding:
        await rows.choose_encoding(context.actor, opened.draft.id, form["encoding"])
    return context.see(f"{opened.path}/recipients")


async def repair_letters(context: RequestContext) -> Response:
    """Reads the names again, in the encoding that the page suggests."""
    opened = await open_draft(context)
    rows = context.services.drafts.rows
    if context.form["encoding"] == TWICE:
        await rows.repair(context.actor, opened.draft.id)
    else:
        await rows.choose_encoding(context.actor, opened.draft.id, context.form["encoding"])
    return context.see(f"{opened.path}/recipients")


async def start_over(context: RequestContext) -> Response:
    """Removes the recipients, so that they can be entered again."""
    opened = await open_draft(context)
    await context.services.drafts.rows.set_quantity(context.actor, opened.draft.id, None)
    return context.see(f"{opened.path}/recipients")


async def _others(context: RequestContext, opened: Open, tab: str) -> Response | None:
    """Returns the page with the recipients that another window has entered since the page of the form showed none; None if there are none."""
    content, rows = opened.content, context.services.drafts.rows
    if "was_none" in context.form and (
        content.code_quantity or (await rows.checked(opened.caller.principal, opened.draft)).rows
    ):
        return await show_recipients(context, opened, tab=tab, said=context.say(_OTHERS))
    return None


async def _take(context: RequestContext, opened: Open, field: str, data: bytes, name: str | None) -> Response:
    """Reads the sheet in `data`. As the form says, it replaces all rows, adds to them, or replaces the rows to fix."""
    tab = "paste" if field == "rows" else "file"
    if (others := await _others(context, opened, tab)) is not None:
        return others
    taking = next((one for one in Taking if one.value == context.form["taking"]), Taking.REPLACE)
    try:
        unseen = await context.services.drafts.rows.take(
            context.actor, opened.caller.principal, opened.draft, data, file_name=name, taking=taking
        )
    except SheetRefused as refusal:
        context.form.error(field, refused(context, refusal))
        return await show_recipients(context, opened, tab=tab)
    names = ", ".join(column_name(context, *column) for column in unseen.unread)
    said = [context.say("Not read: %(columns)s.", columns=names)] if names else []
    if unseen.hidden:
        said.append(hidden_rows(context, unseen.hidden))
    return context.see(f"{opened.path}/recipients", " ".join(said) or None)


PAGE = 100
_TOO_MANY = text("One order has at most %(most)s recipients. Search for fewer contacts.")


async def show(context: RequestContext) -> Response:
    """Shows the contacts to choose from."""
    return await _show(
        context, await open_draft(context), _filter(context.query("q"), context.parameters.number("group"))
    )


async def take(context: RequestContext) -> Response:
    """Adds the selected contacts, or all that the search finds, to the recipients. Leaves out those that are in the list already."""
    opened, form, gone = await open_draft(context), context.form, 0
    shown = _filter(form["q"], form.number("group"))
    if form["all"] == "yes":  # at most one more than an order may have, so that too many are noticed
        chosen = await context.read(list_by_id, context.customer, shown, MAX_CODES + 1)
    else:
        chosen = await _ticked(context)
        gone = len(set(form.numbers("contact"))) - len(chosen)
    if not chosen:
        form.error("contact", context.say("Choose at least one contact."))
    elif len(chosen) > MAX_CODES:
        form.error("contact", context.say(_TOO_MANY, most=context.language.number(MAX_CODES)))
    else:
        checked = await context.services.drafts.rows.checked(context.principal, opened.draft)
        listed = {email_key(one.email) for one in checked.recipients}
        rows = [Typed(one.email, one.name) for one in chosen if email_key(one.email) not in listed]
        try:
            if rows:
                await context.services.drafts.rows.edit(context.actor, opened.draft.id, {}, rows)
        except SheetRefused as refusal:
            form.error("contact", refused(context, refusal))
        else:
            return context.see(f"{opened.path}/recipients", _not_added(context, gone, len(chosen) - len(rows)))
    return await _show(context, opened, shown)


def _not_added(context: RequestContext, gone: int, twice: int) -> str | None:
    """Returns the notice about contacts that were not added; None if there are none."""
    said = []
    if twice:
        said.append(
            context.ngettext(
                "%(count)s contact was not added again: they are in the list.",
                "%(count)s contacts were not added again: they are in the list.",
                twice,
            )
        )
    if gone:
        said.append(
            context.ngettext(
                "%(count)s contact was not added: they have left, or were deleted.",
                "%(count)s contacts were not added: they have left, or were deleted.",
                gone,
            )
        )
    return " ".join(said) or None


def _filter(words: str, group_id: int | None) -> Filter:
    return Filter(words, is_active=True, group_id=group_id or None)


async def _ticked(context: RequestContext) -> list[Contact]:
    ids = context.form.numbers("contact")
    found = {one.id: one for one in await context.read(find_contacts, context.customer, ids=ids)}
    return [found[id_] for id_ in dict.fromkeys(ids) if id_ in found and found[id_].is_active]


async def _show(context: RequestContext, opened: Open, shown: Filter) -> Response:
    place, after = context.customer, context.parameters.number("after")
    async with context.database.connection(context.person.scope) as connection:
        found = await list_contacts(connection, place, shown, PAGE + 1, after=after)
        count = await count_contacts(connection, place, shown)
        groups = await list_groups(connection, place)
    contacts = found[:PAGE]
    return await step(
        context,
        opened,
        "contacts",
        contacts=contacts,
        count=count,
        most_counted=MOST_COUNTED,
        groups=group_choices(context, groups),
        shown=shown,
        is_filtered=bool(shown.words or shown.group_id),
        ticked=set(context.form.numbers("contact")),
        next=context.here(after=contacts[-1].id) if len(found) > PAGE and not context.form.errors else None,
    )
