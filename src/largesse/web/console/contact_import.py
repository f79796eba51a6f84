"""Importing contacts. The page checks a file, shows its columns and all errors, and then imports it.

Nothing is stored in between: the page contains the sheet, and posts it again.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated

import msgspec
from starlette.responses import Response

from largesse.base.cooperative import Steps
from largesse.base.i18n.languages import text
from largesse.contacts.groups import TooManyGroups, list_fields
from largesse.contacts.importing import (
    DAY,
    MONTH,
    OWN,
    PARTS,
    CheckedContact,
    CheckedContacts,
    ContactColumns,
    check_contacts,
    guess_contact_columns,
)
from largesse.contacts.model import OwnField
from largesse.contacts.service import MOST_AT_ONCE, ContactFaults, TooManyContacts, save_contacts
from largesse.drafts.columns import Columns, sample
from largesse.drafts.model import SheetName, Source
from largesse.drafts.sheet import MAX_COLUMNS, MAX_ROWS, Sheet, SheetMaker, SheetRefused
from largesse.drafts.text_sheet import TWICE, better_encoding, converted, repaired
from largesse.web.console.contacts import too_many, wrong
from largesse.web.console.context import RequestContext, note_no_file
from largesse.web.console.send.recipients import ENCODINGS, columns_in, hidden_rows, refused

_NO_EMAIL = text("Choose the column of the e-mail addresses, and one column for each of the others.")
_NO_ROWS = text("It has headings, and no rows below them.")
_TOO_MANY_ROWS = text("There are more than %(limit)s rows. Split the file.")
_SHOWN = 200  # the most rows to fix that the page shows
_NAMED = 20  # the most rows with a repeated address, or with a mistyped one, that the page lists
_MOST_VALUE = 60  # the most characters of a wrong value that the page shows
_PART_NAMES = {
    "birthday": text("Birthday"),
    "start_date": text("Start date"),
    "language": text("Language"),
    "country": text("Country"),
    "groups": text("Groups"),
    "external_id": text("Your ID"),
    "state": text("State"),
    "address": text("Postal address"),
    "address_number": text("Postal address, house number"),
    "address_line": text("Postal address, second line"),
    "address_2": text("Postal address, postcode"),
    "address_3": text("Postal address, town"),
    "address_region": text("Postal address, state or province"),
}
_FIELD = "field_"
_rows = msgspec.json.Decoder(list[msgspec.Raw])
_row = msgspec.json.Decoder(tuple[int, Annotated[list[str], msgspec.Meta(max_length=MAX_COLUMNS)]])
_encode = msgspec.json.Encoder().encode


async def ask(context: RequestContext) -> Response:
    """Shows the form for the file."""
    return context.page("contacts/import.html")


async def read(context: RequestContext) -> Response:
    """Reads a CSV, XLSX or ODS file, and shows its rows and columns."""
    data = context.files.get("file", b"")
    if not data:
        note_no_file(context)
        return context.page("contacts/import.html")
    rows = context.services.drafts.rows
    try:
        source, sheets = await rows.read(context.principal, data)
    except SheetRefused as refusal:
        most = context.language.number(refusal.limit)
        said = context.say(_TOO_MANY_ROWS, limit=most) if refusal.why == "rows" else refused(context, refusal)
        context.form.error("file", said)
        return context.page("contacts/import.html")
    sheet = sheets[source.sheet]
    own = await context.read(list_fields, context.customer)
    columns = guess_contact_columns(sheet, own)
    if columns.base.has_heading and len(sheet.rows) == 1:
        context.form.error("file", context.say(_NO_ROWS))
        return context.page("contacts/import.html")
    if not columns.fits(sheet):
        context.form.error("email", context.say(_NO_EMAIL))
    return await _show(context, sheet, columns, own, source=source)


async def take(context: RequestContext) -> Response:
    """Checks the sheet again with the chosen columns or in the encoding that the page suggests, or imports the valid rows."""
    try:
        sheet = await context.services.drafts.rows.finish(context.principal, _sheet_of(context.form["sheet"]))
    except (SheetRefused, msgspec.DecodeError, RecursionError):
        note_no_file(context)
        return context.page("contacts/import.html")
    own = await context.read(list_fields, context.customer)
    columns = _columns_of(context, own)
    source = _source_of(context)
    if context.form["then"] == "letters":
        sheet, source = _in_better_encoding(sheet, source, context.form["letters"])
    show = partial(_show, context, sheet, columns, own, source=source)
    if not columns.fits(sheet):
        context.form.error("email", context.say(_NO_EMAIL))
        return await show()
    if context.form["then"] != "import":
        return await show()
    checked = await context.services.drafts.rows.finish(context.principal, _check(context, sheet, columns))
    if not checked.changes:
        context.form.error("email", context.say("The file has no contact to import."))
        return await show()
    try:
        saved = await save_contacts(context.actor, context.services.vault, checked.changes)
    except ContactFaults as faults:
        context.form.error("email", context.say("Some rows no longer fit your contacts. Check them and import again."))
        return await show(checked=_with(checked, faults))
    except (TooManyContacts, TooManyGroups) as refusal:
        context.form.error("email", too_many(context, refusal))
        return await show()
    said = context.say(
        "Contacts added: %(created)s. Contacts changed: %(changed)s.",
        created=context.language.number(saved.created),
        changed=context.language.number(saved.changed),
    )
    return context.see("/app/contacts", said)


async def _show(
    context: RequestContext,
    sheet: Sheet,
    columns: ContactColumns,
    own: Sequence[OwnField],
    *,
    source: Source,
    checked: CheckedContacts | None = None,
) -> Response:
    if checked is None:
        checked = CheckedContacts(())
        if columns.fits(sheet):
            checked = await context.services.drafts.rows.finish(context.principal, _check(context, sheet, columns))
    headings = sheet.rows[0].cells if sheet.rows else ()
    offered = [
        (
            str(at),
            _heading(context, headings, at, columns.base),
            sample(sheet, at, has_heading=columns.base.has_heading),
        )
        for at in range(sheet.width)
    ]
    cells = {row.number: row.cells for row in sheet.rows}
    return context.page(
        "contacts/check.html",
        sheet=_encode([(row.number, row.cells) for row in sheet.rows]).decode(),
        columns=columns,
        offered=offered,
        unread=[_heading(context, headings, at, columns.base) for at in columns.unread(sheet)],
        parts=[(part, context.say(_PART_NAMES[part]), columns.parts.get(part)) for part in PARTS],
        fields=[(f"{_FIELD}{field.key}", field.name, columns.fields.get(field.key)) for field in own],
        checked=checked,
        order=_order_of(context),
        corrects=context.form["correct"] == "yes",
        unsure=[(context.say(_PART_NAMES[part]), example) for part, example in checked.unsure],
        month_first=[context.say(_PART_NAMES[part]) for part in checked.month_first],
        to_fix=[(row, _said(context, cells[row.number], columns, own, row)) for row in checked.bad[:_SHOWN]],
        most_named=_NAMED,
        most=MOST_AT_ONCE,
        source=source,
        hidden=hidden_rows(context, source.hidden) if source.hidden else "",
        encoding_name=lambda name: context.say(ENCODINGS[name]),
        better=better_encoding((row.name for row in checked.rows), source.encoding or "", source.encodings),
    )


def _check(context: RequestContext, sheet: Sheet, columns: ContactColumns) -> Steps[CheckedContacts]:
    return check_contacts(sheet, columns, _order_of(context), corrects=context.form["correct"] == "yes")


def _said(
    context: RequestContext, cells: Sequence[str], columns: ContactColumns, own: Sequence[OwnField], row: CheckedContact
) -> list[str]:
    """Returns all errors of a row, with column and value unless the table shows them."""
    names = {part: context.say(name) for part, name in _PART_NAMES.items()}
    names |= {f"{OWN}{field.key}": field.name for field in own}
    places = {**columns.parts, **{f"{OWN}{key}": at for key, at in columns.fields.items()}}
    said = []
    for field, kind in row.faults:
        what, at = wrong(context, kind), places.get(field)
        if at is not None:
            value = cells[at] if at < len(cells) else ""
            value = value if len(value) <= _MOST_VALUE else f"{value[:_MOST_VALUE]}\N{HORIZONTAL ELLIPSIS}"
            what = context.say("%(column)s “%(value)s”: %(wrong)s", column=names[field], value=value, wrong=what)
        said.append(what)
    return said


def _with(checked: CheckedContacts, faults: ContactFaults) -> CheckedContacts:
    """Returns the rows with the faults that saving them has found."""
    fine = [row.number for row in checked.rows if not row.faults]
    found: Mapping[int, tuple[str, str]] = {
        fine[at]: (fault.field, fault.kind) for at, fault in faults.faults.items() if at < len(fine)
    }
    replace = msgspec.structs.replace
    rows = (replace(row, faults=(found[row.number],)) if row.number in found else row for row in checked.rows)
    return replace(checked, rows=tuple(rows))


def _sheet_of(posted: str) -> Steps[Sheet]:
    """Returns the sheet in the form, a row in each step. Raises SheetRefused, or DecodeError or RecursionError if it is not a sheet.

    Only a forged form has rows or cells by the million: they are counted before they are looked at.
    """
    rows = _rows.decode(posted)
    if len(rows) > MAX_ROWS + 1:  # the first may be a heading
        raise SheetRefused("rows", limit=MAX_ROWS)
    maker = SheetMaker()
    for row in rows:
        maker.add(*_row.decode(row))
        yield
    return maker.sheet()


def _source_of(context: RequestContext) -> Source:
    """Returns how the file of the sheet in the form was read."""
    known = [name for name in (context.form["encoding"], *context.form["encodings"].split()) if name in ENCODINGS]
    sheets = (SheetName("", hidden=context.form.number("hidden") or 0),)
    return Source(encoding=known[0] if known else None, encodings=tuple(known[1:]), sheets=sheets)


def _in_better_encoding(sheet: Sheet, source: Source, encoding: str) -> tuple[Sheet, Source]:
    """Returns the sheet in the chosen encoding and how it is then read. Changes nothing for an encoding that was not offered."""
    if encoding == TWICE:
        return repaired(sheet), source
    if source.encoding is None or encoding not in source.encodings:
        return sheet, source
    return converted(sheet, source.encoding, encoding), msgspec.structs.replace(source, encoding=encoding)


def _columns_of(context: RequestContext, own: Sequence[OwnField]) -> ContactColumns:
    form = context.form
    parts = {part: at for part in PARTS if (at := form.number(part, 999)) is not None}
    fields = {field.key: at for field in own if (at := form.number(f"{_FIELD}{field.key}", 999)) is not None}
    return ContactColumns(columns_in(form), parts, fields)


def _order_of(context: RequestContext) -> str:
    """Returns the chosen order of dates such as `03/04/1990`; empty if none was chosen."""
    return context.form["dates"] if context.form["dates"] in {DAY, MONTH} else ""


def _heading(context: RequestContext, headings: Sequence[str], at: int, base: Columns) -> str:
    if base.has_heading and at < len(headings) and headings[at]:
        return headings[at]
    return context.say("Column %(number)s", number=at + 1)
