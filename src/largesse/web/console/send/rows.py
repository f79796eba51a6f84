"""Forms that correct, add and remove recipients of a send, and the file of the rows to fix."""

from __future__ import annotations

from itertools import zip_longest

from starlette.responses import Response

from largesse.base.i18n.templates import text
from largesse.drafts.mending import Typed, bad_rows_file
from largesse.drafts.sheet import SheetRefused
from largesse.web.console.context import RequestContext
from largesse.web.console.send.opening import change, open_draft
from largesse.web.console.send.recipients import NEW, list_address, refused, show_recipients
from largesse.web.kit.query import Whole
from largesse.web.kit.security import OF_FORMS

_REMOVED = text("Removed %(name)s.")
_SAVED = text("Saved.")


async def save(context: RequestContext) -> Response:
    """Saves the rows that were corrected or added. The list shows what is still wrong with them."""
    opened = await open_draft(context)
    typed: dict[int, Typed] = {}
    new: list[Typed] = []
    fields = (context.form.all(name) for name in ("number", "email", "name", "quantity"))
    for number, *cells in zip_longest(*fields, fillvalue=""):
        if number == NEW:
            new.append(Typed(*cells))
        elif (row := Whole().read(number)) is not None:
            typed[row] = Typed(*cells)
    try:
        await context.services.drafts.rows.edit(context.actor, opened.draft.id, typed, new)
    except SheetRefused as refusal:
        said = refused(context, refusal)
        return await show_recipients(context, opened, status=422, typed=typed, new=new, said=said)
    return context.see(list_address(context, opened), context.say(_SAVED))


async def remove(context: RequestContext) -> Response:
    """Removes one recipient."""
    opened = await open_draft(context)
    number = context.form.number("remove")
    rows = context.services.drafts.rows
    checked = await rows.checked(opened.caller.principal, opened.draft)
    row = next((one for one in checked.rows if one.number == number), None)
    if row is None:  # already removed, on another page
        return context.see(list_address(context, opened))
    await rows.remove(context.actor, opened.draft.id, [row.number])
    return context.see(list_address(context, opened), context.say(_REMOVED, name=row.name or row.email or row.number))


async def remove_invalid(context: RequestContext) -> Response:
    """Removes all rows to fix."""
    opened = await open_draft(context)
    await context.services.drafts.rows.remove_invalid(context.actor, opened.caller.principal, opened.draft)
    return context.see(f"{opened.path}/recipients")


async def remove_repeated(context: RequestContext) -> Response:
    """Removes the rows that repeat the address of an earlier row."""
    opened = await open_draft(context)
    await context.services.drafts.rows.remove_repeated(context.actor, opened.caller.principal, opened.draft)
    return context.see(f"{opened.path}/recipients")


async def use_suggestions(context: RequestContext) -> Response:
    """Applies the suggested addresses to the rows that the form names."""
    opened = await open_draft(context)
    numbers = context.form.numbers("suggestion")
    await context.services.drafts.rows.use_suggestions(context.actor, opened.caller.principal, opened.draft, numbers)
    return context.see(list_address(context, opened), context.say(_SAVED))


async def leave_out(context: RequestContext) -> Response:
    """Continues without the rows to fix. They stay in the draft."""
    opened = await open_draft(context)
    await change(context, opened, leaves_out=True)
    return context.see(f"{opened.path}/message")


async def bad_rows(context: RequestContext) -> Response:
    """Sends the rows to fix as a CSV file."""
    opened = await open_draft(context)
    checked = await context.services.drafts.recipients(opened.caller.principal, opened.draft)
    headers = {**OF_FORMS, "Content-Disposition": 'attachment; filename="rows-to-fix.csv"'}
    return Response(bad_rows_file(checked), media_type="text/csv", headers=headers)
