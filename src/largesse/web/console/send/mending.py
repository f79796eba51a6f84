"""What is done about rows that are wrong: mended in place, left out, or taken away as a file."""

from __future__ import annotations

from itertools import zip_longest

from starlette.responses import Response

from largesse.drafts.handing_out import bad_rows_file
from largesse.drafts.keeping import read_sheet
from largesse.drafts.mending import mended_sheet
from largesse.drafts.sheet import SheetRefused
from largesse.web.console.send.opening import open_draft
from largesse.web.console.send.recipients import REFUSED, keep_sheet
from largesse.web.console.visit import Visit
from largesse.web.kit.security import OF_FORMS


async def mend(visit: Visit) -> Response:
    """Takes the rows as they were mended; what is still wrong is shown again."""
    opened = await open_draft(visit)
    principal, columns = opened.caller.principal, opened.content.columns
    back = visit.see(f"{opened.path}/recipients")
    if columns is None:
        return back
    typed = {
        int(number): cells
        for number, *cells in zip_longest(
            *(visit.form.all(name) for name in ("number", "email", "name", "quantity")), fillvalue=""
        )
        if number.isascii() and number.isdigit() and len(number) < 10
    }
    async with visit.database.connection(principal.scope) as connection:
        sheet = await read_sheet(connection, principal, opened.draft.id)
    try:
        mended = mended_sheet(sheet, columns, typed)
    except SheetRefused as refusal:
        notice = visit.say(REFUSED[refusal.why], row=refusal.row, limit=refusal.limit)
        return visit.see(f"{opened.path}/recipients", notice)
    await keep_sheet(visit, opened, mended, columns)
    return back


async def leave_out(visit: Visit) -> Response:
    """Leaves out all rows that are wrong."""
    opened = await open_draft(visit)
    principal, columns = opened.caller.principal, opened.content.columns
    if columns is not None:
        checked = await visit.services.drafts.recipients(principal, opened.draft)
        bad = {row.number for row in checked.bad}
        async with visit.database.connection(principal.scope) as connection:
            sheet = await read_sheet(connection, principal, opened.draft.id)
        await keep_sheet(visit, opened, sheet.without(bad), columns)
    return visit.see(f"{opened.path}/recipients")


async def bad_rows(visit: Visit) -> Response:
    """The rows that are wrong, as a file for a spreadsheet."""
    opened = await open_draft(visit)
    checked = await visit.services.drafts.recipients(opened.caller.principal, opened.draft)
    headers = {**OF_FORMS, "Content-Disposition": 'attachment; filename="bad-rows.csv"'}
    return Response(bad_rows_file(checked), media_type="text/csv", headers=headers)
