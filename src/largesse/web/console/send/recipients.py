"""The recipients step of a send: the list of recipients or the forms to enter them, and forms that correct, add and remove recipients."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import zip_longest
from typing import Any
from urllib.parse import urlencode

import msgspec
from starlette.responses import Response

from largesse.base.email import email_key
from largesse.base.i18n.languages import text
from largesse.drafts.checking import Checked, CheckedRow, Typed, as_typed, bad_rows_file
from largesse.drafts.columns import Columns, sample, unread_columns
from largesse.drafts.recipients import FIX_ROWS, View, list_rows, suggestions
from largesse.drafts.sheet import SheetRefused
from largesse.drafts.text_sheet import better_encoding
from largesse.ledger.store import list_funding_accounts
from largesse.orders.recipients import MAX_CODES
from largesse.reports.usage import earlier_gifts
from largesse.web.console.context import RequestContext
from largesse.web.console.form import EMAIL_FAULTS, Form
from largesse.web.console.send.opening import Chosen, Open, change, chosen, open_draft, step
from largesse.web.kit.query import Whole
from largesse.web.kit.security import OF_FORMS

NEW = "new"  # the number of an added row in the form
MOST_FIELDS = 6 * (FIX_ROWS + 2)
_MOST_SAMPLE = 30  # characters of the first cell of a column
_OF_LIST = ("q", "state", "sort", "page")  # parameters of the list, which stay after one of its forms is sent

# Why a file or pasted cells were refused.
_REFUSED = {
    "bytes": text("The file is too large: at most %(limit)s bytes are read."),
    "rows": text("There are more than %(limit)s rows: send them in several orders."),
    "columns": text("Row %(row)s has more than %(limit)s columns."),
    "cell": text("A cell of row %(row)s has more than %(limit)s characters."),
    "characters": text("It holds more than %(limit)s characters in all."),
    "empty": text("It is empty."),
    "headings": text("It has headings, and no rows below them. Add a row for each recipient."),
    "no_email": text("No column has e-mail addresses. Give each recipient one."),
    "more_emails": text(
        "Row %(row)s has a second e-mail address in a column that is not read. Put it into a row of its own."
    ),
    "encoding": text("The text of the file cannot be read. Save it as CSV in UTF-8, or as XLSX."),
    "quotes": text("A quotation mark in row %(row)s is not closed, or is inside a cell."),
    "kind": text(
        "This is neither a CSV file nor a workbook of Excel (XLSX) or OpenDocument (ODS). Save the list as one of them."
    ),
    "old": text("This workbook is of an older kind, or has a password. Save it as XLSX without one."),
    "unpacked": text("The workbook is too large when it is unpacked."),
    "broken": text("The workbook cannot be read. Save it again, or as CSV."),
}
# The names of encodings in the form.
ENCODINGS = {
    "utf-8": "UTF-8",
    "utf-16-le": "UTF-16",
    "utf-16-be": "UTF-16",
    "cp1252": text("Windows, western Europe"),
    "mac_roman": text("Mac, western Europe"),
    "cp850": text("DOS, western Europe"),
    "cp1250": text("Windows, central Europe"),
    "cp1251": text("Windows, Cyrillic"),
    "cp1253": text("Windows, Greek"),
    "cp1254": text("Windows, Turkish"),
    "cp1256": text("Windows, Arabic"),
    "cp932": text("Japanese (Shift-JIS)"),
    "cp949": text("Korean (EUC-KR)"),
    "gb18030": text("Chinese, simplified (GB 18030)"),
    "big5": text("Chinese, traditional (Big5)"),
}
# What is wrong with a cell, and how to fix it.
WRONG = {
    "email_missing": text("The e-mail address is missing."),
    "email_long": text("The e-mail address is too long: at most 254 characters."),
    **EMAIL_FAULTS,
    "email_in_list": text("“%(detail)s” is not an e-mail address."),
    "email_more": text("“%(detail)s” is in the same row. Add it here after a comma, or leave it out."),
    "name_long": text("The name is too long: at most 200 characters."),
    "name_wrong": text("The name has characters that are not allowed."),
    "name_formula": text("This is a spreadsheet's error text, such as #N/A or ####. Correct it."),
    "quantity_wrong": text("The quantity is not a whole number from 1 to 1000."),
}


class ShownRow(msgspec.Struct, frozen=True):
    """A row of the list as the page shows it."""

    number: int | str
    cells: Typed
    faults: Sequence[tuple[str, str]] = ()  # each wrong field, and what is wrong with it
    suggestion: str | None = None  # the probable correct address
    same_as: int | None = None
    had_at: datetime | None = None  # when this address last got the gift
    is_open: bool = False  # whether the row's cells are form fields
    was: str = ""  # the stored address, by which `save` recognises the row

    def faults_of(self, field: str) -> list[str]:
        """Returns what is wrong with a field."""
        return [said for name, said in self.faults if name == field]


async def show(context: RequestContext) -> Response:
    """Shows the recipients, or the forms to enter them."""
    return await show_recipients(context, await open_draft(context))


def list_address(context: RequestContext, opened: Open, **changes: str | int | None) -> str:
    """Returns the address of the list with its current search, sort order and filter, and those parameters changed."""
    given: dict[str, Any] = {name: context.query(name) for name in _OF_LIST} | changes
    query = urlencode({name: value for name, value in given.items() if value not in {None, ""}})
    return f"{opened.path}/recipients" + (f"?{query}" if query else "")


def refused(context: RequestContext, refusal: SheetRefused) -> str:
    """Returns why a sheet was refused, in the language of the page."""
    return context.say(_REFUSED[refusal.why], row=refusal.row, limit=context.language.number(refusal.limit))


def hidden_rows(context: RequestContext, count: int) -> str:
    """Returns the notice that a workbook hides `count` rows, and that they were read too."""
    return context.ngettext(
        "The workbook hides %(count)s row, as a filter does. It is in the list, too.",
        "The workbook hides %(count)s rows, as a filter does. They are in the list, too.",
        count,
    )


def column_name(context: RequestContext, at: int, heading: str, first_cell: str) -> str:
    """Returns the name of a column: its heading, or its number and its first cell."""
    if heading or not first_cell:
        return heading or context.say("Column %(number)s", number=at + 1)
    shown = first_cell if len(first_cell) <= _MOST_SAMPLE else f"{first_cell[:_MOST_SAMPLE]}…"
    return context.say("Column %(number)s (“%(sample)s”)", number=at + 1, sample=shown)


def reading_of(opened: Open) -> str:
    """Returns the sheet, the encoding and the columns by which the list is read, as one text to compare."""
    source = opened.content.source
    return f"{source.sheet} {source.encoding} {opened.content.columns}"


def columns_in(form: Form) -> Columns:
    """Returns the columns that a form chooses by their indexes, and whether the first row is a heading."""
    email, quantity, *names = (form.number(name, 999) for name in ("email", "quantity", "name", "name_2"))
    return Columns(email, tuple(at for at in names if at is not None), quantity, form["heading"] == "yes")


async def show_recipients(
    context: RequestContext,
    opened: Open,
    *,
    tab: str = "",
    said: str = "",
    typed: Mapping[int, Typed] | None = None,
    new: Sequence[Typed] = (),
) -> Response:
    """Returns the page. `typed` and `new` are the rows of a refused form."""
    principal, columns = opened.caller.principal, opened.content.columns
    rows = context.services.drafts.rows
    sheet = await rows.sheet(principal, opened.draft)
    checked = await rows.check(principal, sheet, columns) if columns else Checked((), ())
    has_heading = columns is not None and columns.has_heading
    first = sheet.rows[0].cells if has_heading and sheet.rows else ()
    gift = await chosen(context, opened)
    earlier = await _earlier(context, opened, gift, checked) if gift else {}
    view = View(
        context.query("q"), context.query("state"), context.query("sort"), context.parameters.number("page") or 1
    )
    listed = list_rows(checked, view, earlier)
    suggested = suggestions(checked, listed.rows)
    if context.query("edit") == NEW and not new:
        new = [Typed("")]
    return await step(
        context,
        opened,
        "recipients",
        status=422 if said else None,
        chosen=gift,
        tab=tab or context.query("tab"),
        said=said,
        view=view,
        edited=context.query("edit"),
        listed=listed,
        rows=_shown(context, listed.rows, suggested, earlier, typed or {}),
        new_rows=[ShownRow(NEW, one, is_open=True) for one in new],
        suggested=list(suggested),
        at=lambda **changes: list_address(context, opened, **changes),
        sheet=sheet,
        checked=checked,
        columns=columns,
        unread=unread_columns(sheet, columns.used, has_heading=has_heading) if columns else [],
        names=[
            column_name(context, at, "".join(first[at : at + 1]), sample(sheet, at, has_heading=has_heading))
            for at in range(sheet.width)
        ],
        most=MAX_CODES,
        account=await _account(context, opened, gift),
        source=opened.content.source,
        read_as=reading_of(opened),
        hidden=hidden_rows(context, opened.content.source.hidden) if opened.content.source.hidden else "",
        encoding_name=lambda name: context.say(ENCODINGS[name]),
        better=better_encoding(
            (row.name for row in checked.rows), opened.content.source.encoding or "", opened.content.source.encodings
        ),
    )


def _shown(
    context: RequestContext,
    rows: Sequence[CheckedRow],
    suggested: Mapping[int, str],
    earlier: Mapping[str, datetime],
    typed: Mapping[int, Typed],
) -> list[ShownRow]:
    """Returns the rows of a page of the list. Rows to fix and the row that is being edited have form fields."""
    edited = context.query("edit")
    return [
        ShownRow(
            row.number,
            typed.get(row.number, as_typed(row)),
            [(one.field, context.say(WRONG[one.kind], detail=one.detail)) for one in row.problems],
            suggested.get(row.number),
            row.same_as,
            earlier.get(email_key(row.email)),
            bool(row.problems) or str(row.number) == edited or row.number in typed,
            row.email,
        )
        for row in rows
    ]


async def _account(context: RequestContext, opened: Open, gift: Chosen | None) -> Any:
    """Returns the account that pays: the chosen one, or the only one in the currency. None if it is not decided yet."""
    if gift is None:
        return None
    principal = opened.caller.principal
    accounts = await context.read(list_funding_accounts, principal)
    fitting = [one for one in accounts if one.currency == gift.gift.currency]
    chosen_one = next((one for one in fitting if one.id == opened.content.account_id), None)
    return chosen_one or (fitting[0] if len(fitting) == 1 else None)


async def _earlier(context: RequestContext, opened: Open, gift: Chosen, checked: Checked) -> Mapping[str, datetime]:
    """Returns when recipients recently got this gift, by the `email_key` of their address."""
    found = await context.read(
        earlier_gifts,
        opened.caller.principal,
        {one.email for one in checked.recipients},
        product_id=gift.gift.product_id,
        collection_id=gift.gift.collection_id,
        now=opened.caller.now,
    )
    return {email_key(email): at for email, at in found.items()}


_REMOVED = text("Removed %(name)s.")
_SAVED = text("Saved.")
_OTHER_LIST = text(
    "The list was changed in another window, and nothing was saved. What you typed into rows that are gone is in new rows: check them, and save."
)


async def save(context: RequestContext) -> Response:
    """Saves the rows that were corrected or added. The list shows what is still wrong with them."""
    opened = await open_draft(context)
    typed: dict[int, Typed] = {}
    new: list[Typed] = []
    was: dict[int, str] = {}
    fields = (context.form.all(name) for name in ("number", "was", "email", "name", "quantity"))
    for number, address, *cells in zip_longest(*fields, fillvalue=""):
        if number == NEW:
            new.append(Typed(*cells))
        elif (row := Whole().read(number)) is not None:
            typed[row], was[row] = Typed(*cells), address
    if "was" in context.form and (moved := await _moved(context, opened, was, typed)):
        new += [one for row in moved if (one := typed.pop(row)).email.split() != was[row].split()]
        return await show_recipients(context, opened, typed=typed, new=new, said=context.say(_OTHER_LIST))
    try:
        await context.services.drafts.rows.edit(context.actor, opened.draft.id, typed, new)
    except SheetRefused as refusal:
        said = refused(context, refusal)
        return await show_recipients(context, opened, typed=typed, new=new, said=said)
    return context.see(list_address(context, opened), context.say(_SAVED))


async def _moved(
    context: RequestContext, opened: Open, was: Mapping[int, str], typed: Mapping[int, Typed]
) -> list[int]:
    """Returns the rows of a form that no longer match the list, because another window replaced or removed them."""
    checked = await context.services.drafts.rows.checked(opened.caller.principal, opened.draft)
    stored = {row.number: row.email.split() for row in checked.rows}
    return [row for row, one in typed.items() if stored.get(row) not in (was[row].split(), one.email.split())]


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
    checked = await context.services.drafts.rows.checked(opened.caller.principal, opened.draft)
    headers = {**OF_FORMS, "Content-Disposition": 'attachment; filename="rows-to-fix.csv"'}
    return Response(bad_rows_file(checked), media_type="text/csv", headers=headers)
