"""The recipients of a send: typed, pasted or from a file, or anonymous codes; and the correction of rows that are not valid."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from itertools import zip_longest

from starlette.responses import Response

from largesse.base.i18n.templates import text
from largesse.drafts.checking import Checked
from largesse.drafts.columns import Columns, fits
from largesse.drafts.mending import bad_rows_file
from largesse.drafts.sheet import Sheet, SheetRefused
from largesse.drafts.text_sheet import written_as_text
from largesse.drafts.workbook import SeveralSheets
from largesse.orders.recipients import MAX_CODES
from largesse.reports.usage import earlier_gifts
from largesse.web.console.context import RequestContext
from largesse.web.console.send.opening import Chosen, Open, chosen, open_draft, step
from largesse.web.kit.query import Whole
from largesse.web.kit.security import OF_FORMS

MENDED_AT_ONCE = 200

# Why a file or pasted cells are refused.
REFUSED = {
    "bytes": text("The file is too large: at most %(limit)s bytes are read."),
    "rows": text("There are more than %(limit)s rows: send them in several orders."),
    "columns": text("Row %(row)s has more than %(limit)s columns."),
    "cell": text("A cell of row %(row)s has more than %(limit)s characters."),
    "characters": text("It holds more than %(limit)s characters in all."),
    "empty": text("It is empty."),
    "headings": text("It has headings, and no rows below them. Add a row for each recipient."),
    "encoding": text("Its letters cannot be read. Save it as CSV in UTF-8, or as XLSX."),
    "quotes": text("A quotation mark in row %(row)s is not closed, or stands inside a cell."),
    "kind": text("This is neither a CSV file nor an Excel workbook (XLSX)."),
    "old": text("This workbook is of an older kind, or has a password. Save it as XLSX without one."),
    "unpacked": text("The workbook is too large when it is unpacked."),
    "broken": text("The workbook cannot be read. Save it again, or as CSV."),
}
# What is wrong with a cell.
WRONG = {
    "email_missing": text("The e-mail address is missing."),
    "email_long": text("The e-mail address is too long."),
    "email_wrong": text("This is not an e-mail address."),
    "email_in_list": text("“%(detail)s” is not an e-mail address."),
    "email_more": text("“%(detail)s” stands in the same row. Add it here after a comma, or leave it out."),
    "name_long": text("The name is too long: at most 200 characters."),
    "name_wrong": text("The name holds characters that may not be in it."),
    "quantity_wrong": text("The quantity is no whole number from 1 to 1000."),
}
_CHOOSE_FILE = text("Choose a file.")
_EMPTY_FILE = text("The file is empty: it has 0 bytes. Save it again, or choose another.")
_SEVERAL = text("The workbook has several sheets. Choose the one with the recipients.")
_QUANTITY = text("Type a whole number from 1 to 5000.")
_COLUMNS = text("Choose another column for each: one of them stands for the e-mail address.")


async def show(context: RequestContext) -> Response:
    """Shows the recipients, or the ways to enter them."""
    return await _show(context, await open_draft(context))


async def take_typed(context: RequestContext) -> Response:
    """Takes rows that were typed or pasted."""
    return await _take(context, await open_draft(context), "rows", context.form["rows"].encode())


async def take_file(context: RequestContext) -> Response:
    """Takes a CSV or XLSX file."""
    opened = await open_draft(context)
    data = context.files.get("file", b"")
    if not data:
        context.form.error("file", context.say(_EMPTY_FILE if "file" in context.files else _CHOOSE_FILE))
        return await _show(context, opened, status=422)
    return await _take(context, opened, "file", data)


async def take_quantity(context: RequestContext) -> Response:
    """Takes the number of anonymous codes."""
    opened = await open_draft(context)
    quantity = context.form.number("quantity") or 0
    if not 1 <= quantity <= MAX_CODES:
        context.form.error("quantity", context.say(_QUANTITY))
        return await _show(context, opened, status=422)
    await context.services.drafts.set_quantity(context.actor, opened.draft.id, quantity)
    return context.see(f"{opened.path}/message")


async def take_columns(context: RequestContext) -> Response:
    """Takes which column is what, and remembers it for files with the same headings."""
    opened = await open_draft(context)
    sheet = await context.services.drafts.sheet(opened.caller.principal, opened.draft)
    names = tuple(at for at in (_column(context, "name"), _column(context, "name_2")) if at is not None)
    columns = Columns(_column(context, "email"), names, _column(context, "quantity"), context.form["heading"] == "yes")
    if columns.email is None or not fits(columns, sheet):
        context.form.error("email", context.say(_COLUMNS))
        return await _show(context, opened, status=422)
    await context.services.drafts.set_columns(context.actor, opened.draft.id, sheet, columns)
    return context.see(f"{opened.path}/recipients")


async def start_over(context: RequestContext) -> Response:
    """Removes the recipients, so that they can be entered again."""
    opened = await open_draft(context)
    await context.services.drafts.set_quantity(context.actor, opened.draft.id, None)
    return context.see(f"{opened.path}/recipients")


async def mend(context: RequestContext) -> Response:
    """Saves the corrected rows, and shows those that are still not valid."""
    opened = await open_draft(context)
    typed = {
        row: cells
        for number, *cells in zip_longest(
            *(context.form.all(name) for name in ("number", "email", "name", "quantity")), fillvalue=""
        )
        if (row := Whole().read(number)) is not None
    }
    notice = None
    try:
        await context.services.drafts.mend(context.actor, opened.caller.principal, opened.draft, typed)
    except SheetRefused as refusal:
        notice = _refused(context, refusal)
    return context.see(f"{opened.path}/recipients", notice)


async def leave_out(context: RequestContext) -> Response:
    """Deletes all rows that are not valid."""
    opened = await open_draft(context)
    await context.services.drafts.drop_invalid(context.actor, opened.caller.principal, opened.draft)
    return context.see(f"{opened.path}/recipients")


async def bad_rows(context: RequestContext) -> Response:
    """Returns the rows that are not valid as a file for a spreadsheet."""
    opened = await open_draft(context)
    checked = await context.services.drafts.recipients(opened.caller.principal, opened.draft)
    headers = {**OF_FORMS, "Content-Disposition": 'attachment; filename="bad-rows.csv"'}
    return Response(bad_rows_file(checked), media_type="text/csv", headers=headers)


async def _take(context: RequestContext, opened: Open, field: str, data: bytes) -> Response:
    """Takes the sheet in `data`, replacing the rows or adding to them, as the form says."""
    try:
        await context.services.drafts.take_file(
            context.actor,
            opened.caller.principal,
            opened.draft,
            data,
            is_typed=field == "rows",
            adds=context.form["add"] == "yes",
        )
    except SheetRefused as refusal:
        context.form.error(field, _refused(context, refusal))
        return await _show(context, opened, status=422)
    except SeveralSheets as several:
        context.form.error("sheet", context.say(_SEVERAL))
        return await _show(context, opened, status=422, sheets=several.sheets)
    return context.see(f"{opened.path}/recipients")


def _refused(context: RequestContext, refusal: SheetRefused) -> str:
    """Returns why a sheet is refused, in the language of the page."""
    return context.say(REFUSED[refusal.why], row=refusal.row, limit=refusal.limit)


async def _show(
    context: RequestContext,
    opened: Open,
    *,
    status: int = 200,
    sheets: Mapping[str, Sheet | SheetRefused] | None = None,
) -> Response:
    """Returns the page. `sheets` are those of a workbook, of which the person chooses one."""
    principal = opened.caller.principal
    columns = opened.content.columns
    drafts = context.services.drafts
    sheet = await drafts.sheet(principal, opened.draft)
    checked = await drafts.check(principal, sheet, columns) if columns else Checked((), ())
    first = sheet.rows[0].cells if sheet.rows else []
    gift = await chosen(context, opened)
    return await step(
        context,
        opened,
        "recipients",
        status=status,
        chosen=gift,
        earlier=await _earlier(context, opened, gift, checked) if gift else [],
        sheet=sheet,
        checked=checked,
        columns=columns,
        headings=[first[at] if at < len(first) else "" for at in range(sheet.width)],
        shown=checked.bad[:MENDED_AT_ONCE],
        wrong=lambda problem: context.say(WRONG[problem.kind], detail=problem.detail),
        most=MAX_CODES,
        sheets=[
            (name, len(one.rows), written_as_text(one), "")
            if isinstance(one, Sheet)
            else (name, 0, "", _refused(context, one))
            for name, one in (sheets or {}).items()
        ],
    )


async def _earlier(context: RequestContext, opened: Open, gift: Chosen, checked: Checked) -> list[tuple[str, datetime]]:
    """Returns the recipients who got this gift lately, and when, the latest first."""
    principal = opened.caller.principal
    async with context.database.connection(principal.scope) as connection:
        found = await earlier_gifts(
            connection,
            principal,
            {one.email for one in checked.recipients},
            product_id=gift.gift.product_id,
            collection_id=gift.gift.collection_id,
            now=opened.caller.now,
        )
    return sorted(found.items(), key=lambda one: one[1], reverse=True)


def _column(context: RequestContext, name: str) -> int | None:
    return context.form.number(name, 999)
