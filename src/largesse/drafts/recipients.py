"""The rows of a draft: reads them from files, corrects, adds, removes and checks them. Also lists them, searched, sorted and in pages."""

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from enum import Enum
from typing import Any

import msgspec

from largesse.base.cooperative import CooperativeRunner, Result, Steps
from largesse.base.email import email_key
from largesse.base.errors import NotFound
from largesse.base.text import folded, has_words, search_words
from largesse.base.timeouts import Timeouts
from largesse.customers.actor import Actor
from largesse.customers.principal import Principal
from largesse.db.pool import Database
from largesse.drafts import store
from largesse.drafts.checking import Checked, CheckedRow, Typed, as_typed, check_rows, mended_sheet
from largesse.drafts.columns import (
    Columns,
    as_labelled,
    below_title,
    fits,
    guess_columns,
    heading_key,
    sample,
    unread_columns,
)
from largesse.drafts.mailboxes import common_domains, name_before, suggested
from largesse.drafts.model import Draft, SheetName, Source
from largesse.drafts.sheet import Sheet, SheetRefused, SheetRow
from largesse.drafts.text_sheet import converted, read_text_file, read_text_sheet, repaired
from largesse.drafts.workbook import Workbooks, is_workbook, read_sheets


class Taking(Enum):
    """What happens to the existing rows of a draft when new rows are read."""

    REPLACE = "replace"  # the new rows replace the existing ones
    ADD = "add"  # the new rows follow the existing ones
    MEND = "mend"  # the new rows replace the rows to fix


class Unseen(msgspec.Struct, frozen=True):
    """The parts of an added file that the list does not show: unread columns with heading and first cell, and the number of hidden rows."""

    unread: Sequence[tuple[int, str, str]] = ()
    hidden: int = 0


class RecipientService:
    """The operations on the rows of drafts. Operations that change a draft raise NotFound if the person has no draft with that id."""

    def __init__(self, database: Database, timeouts: Timeouts) -> None:
        self._database = database
        self._workbooks = Workbooks()
        self._runner = CooperativeRunner()
        self._timeouts = timeouts

    # All rows at once

    async def take(
        self,
        actor: Actor,
        principal: Principal,
        draft: Draft,
        data: bytes,
        *,
        file_name: str | None = None,
        taking: Taking = Taking.REPLACE,
    ) -> Unseen:
        """Reads the recipients from a CSV, XLSX or ODS file, or without a file name from typed or pasted cells.

        Takes the sheet of a workbook that has the most addresses. Returns the parts that the page does not show. Raises SheetRefused.
        """
        source, sheets = await self.read(principal, data)
        sheet = sheets[source.sheet]
        columns = await self._columns_of(principal, sheet)
        if columns.has_heading and len(sheet.rows) == 1:
            raise SheetRefused("headings")
        if file_name is None:
            source, columns = Source(), as_labelled(sheet, columns)
        else:
            source = msgspec.structs.replace(source, name=file_name)
        if taking is Taking.REPLACE or draft.content.columns is None:
            await self._replace(actor, draft.id, sheets, code_quantity=None, columns=columns, source=source)
            return Unseen()
        bad = (await self.checked(principal, draft)).bad if taking is Taking.MEND else ()
        more = _to_add(columns, await self.check(principal, sheet, columns))
        await self.edit(actor, draft.id, {row.number: Typed("") for row in bad}, more)
        headings = sheet.rows[0].cells if columns.has_heading else ()
        unread = unread_columns(sheet, columns.used, has_heading=columns.has_heading)
        samples = [sample(sheet, at, has_heading=columns.has_heading) for at in unread]
        headed = ["".join(headings[at : at + 1]) for at in unread]
        return Unseen([*zip(unread, headed, samples, strict=True)], source.hidden)

    async def set_quantity(self, actor: Actor, draft_id: str, code_quantity: int | None) -> None:
        """Makes it a draft of that many anonymous codes. None removes the recipients, so that they can be entered again."""
        await self._replace(actor, draft_id, {}, code_quantity=code_quantity, columns=None, source=Source())

    async def set_columns(self, actor: Actor, draft_id: str, sheet: Sheet, columns: Columns) -> None:
        """Sets the meaning of the columns of the draft's sheet, and stores it for files with the same headings."""
        async with self._changing(actor, draft_id) as change:
            change.content = msgspec.structs.replace(change.content, columns=columns, leaves_out=False)
            await store.remember_columns(change.connection, actor, heading_key(sheet, columns), columns)

    async def choose_sheet(self, actor: Actor, principal: Principal, draft: Draft, at: int) -> None:
        """Takes the recipients from another sheet of the workbook. Raises SheetRefused if it cannot be read, and NotFound."""
        sheets = draft.content.source.sheets
        if at >= len(sheets):
            raise NotFound("The workbook has no such sheet.")
        if (why := sheets[at].refused) is not None:
            raise SheetRefused(why, row=sheets[at].row, limit=sheets[at].limit)
        sheet = await self._database.read(principal.scope, store.read_sheet, principal, draft, at)
        columns = await self._columns_of(principal, sheet)
        async with self._changing(actor, draft.id) as change:
            source = msgspec.structs.replace(change.content.source, sheet=at)
            change.content = msgspec.structs.replace(change.content, columns=columns, source=source, leaves_out=False)

    async def choose_encoding(self, actor: Actor, draft_id: str, encoding: str) -> None:
        """Reads the file in another encoding. Rows that were typed since do not change. Raises NotFound for an encoding that is not offered."""
        async with self._changing(actor, draft_id) as change:
            source = change.content.source
            if source.encoding is None or encoding not in source.encodings:
                raise NotFound("The file cannot be read in this encoding.")
            sheet = await store.read_sheet(change.connection, actor, change.draft)
            fresh = converted(sheet, source.encoding, encoding, source.by_hand)
            source = msgspec.structs.replace(source, encoding=encoding)
            change.content = msgspec.structs.replace(change.content, source=source, leaves_out=False)
            await store.write_rows(change.connection, actor, draft_id, source.sheet, *_differing(sheet, fresh))

    async def repair(self, actor: Actor, draft_id: str) -> None:
        """Repairs names that were encoded twice."""
        async with self._changing(actor, draft_id) as change:
            sheet = await store.read_sheet(change.connection, actor, change.draft)
            change.content = msgspec.structs.replace(change.content, leaves_out=False)
            at = change.content.source.sheet
            await store.write_rows(change.connection, actor, draft_id, at, *_differing(sheet, repaired(sheet)))

    async def _columns_of(self, principal: Principal, sheet: Sheet) -> Columns:
        """Returns the columns that people last chose for a sheet with these headings, otherwise the likely ones."""
        columns = guess_columns(sheet)
        known = await self._database.read(
            principal.scope, store.remembered_columns, principal, heading_key(sheet, columns)
        )
        return known if known is not None and fits(known, sheet) else columns

    async def _replace(self, actor: Actor, draft_id: str, sheets: Mapping[int, Sheet], **fields: object) -> None:
        async with self._changing(actor, draft_id) as change:
            change.content = msgspec.structs.replace(change.content, leaves_out=False, **fields)
            await store.save_sheets(change.connection, actor, draft_id, sheets)

    # Single rows

    async def edit(self, actor: Actor, draft_id: str, typed: Mapping[int, Typed], more: Sequence[Typed] = ()) -> None:
        """Replaces some rows by typed values, and adds more at the end. Removes blank rows. Raises SheetRefused."""
        async with self._changing(actor, draft_id) as change:
            before = await store.read_sheet(change.connection, actor, change.draft)
            sheet, columns = mended_sheet(before, change.content.columns or Columns(), typed, more)
            present = {row.number for row in before.rows}
            rows = [row for row in sheet.rows if row.number in typed or row.number not in present]
            source = change.content.source
            source = msgspec.structs.replace(source, by_hand=source.by_hand | {row.number for row in rows})
            change.content = msgspec.structs.replace(
                change.content, columns=columns, source=source, code_quantity=None, leaves_out=False
            )
            await store.write_rows(change.connection, actor, draft_id, source.sheet, typed.keys(), rows)

    async def remove(self, actor: Actor, draft_id: str, numbers: Collection[int]) -> None:
        """Removes the rows with these numbers."""
        async with self._changing(actor, draft_id) as change:
            change.content = msgspec.structs.replace(change.content, leaves_out=False)
            await store.write_rows(change.connection, actor, draft_id, change.content.source.sheet, numbers, ())

    async def remove_invalid(self, actor: Actor, principal: Principal, draft: Draft) -> None:
        """Removes the rows to fix."""
        checked = await self.checked(principal, draft)
        await self.remove(actor, draft.id, [row.number for row in checked.bad])

    async def remove_repeated(self, actor: Actor, principal: Principal, draft: Draft) -> int:
        """Removes the rows whose address is also in an earlier row. Returns how many."""
        numbers = [row.number for row in (await self.checked(principal, draft)).repeated]
        await self.remove(actor, draft.id, numbers)
        return len(numbers)

    async def use_suggestions(self, actor: Actor, principal: Principal, draft: Draft, numbers: Collection[int]) -> None:
        """Replaces the addresses in the rows with these numbers by their suggestions. A name that was typed before an address stays."""
        checked = await self.checked(principal, draft)
        rows = {row.number: row for row in checked.rows if row.number in set(numbers)}
        found = suggestions(checked, rows.values())
        typed = {
            at: Typed(email, rows[at].name or name_before(rows[at].email), rows[at].quantity)
            for at, email in found.items()
        }
        await self.edit(actor, draft.id, typed)

    # Reading

    async def read(self, principal: Principal, data: bytes) -> tuple[Source, dict[int, Sheet]]:
        """Returns the source of a file, which says how it was read, and its sheets by index. Raises SheetRefused."""
        if not is_workbook(data):
            file = read_text_file(data)
            sheet = await self.finish(principal, read_text_sheet(file.text))
            return Source(encoding=file.encoding if file.offered else None, encodings=file.offered), {
                0: below_title(sheet)
            }
        async with self._workbooks.unpacked(principal.customer_id, data) as output:
            found = await self.finish(principal, read_sheets(output))
        names = tuple(
            SheetName(name, one.why, one.row, one.limit)
            if isinstance(one, SheetRefused)
            else SheetName(name, hidden=one.hidden)
            for name, one in found.items()
        )
        sheets = {at: below_title(one) for at, one in enumerate(found.values()) if isinstance(one, Sheet)}
        return Source(sheets=names, sheet=await self.finish(principal, _with_most_addresses(sheets))), sheets

    async def check(self, principal: Principal, sheet: Sheet, columns: Columns) -> Checked:
        """Checks the rows of a sheet by the rules of an order."""
        return await self.finish(principal, check_rows(sheet, columns))

    async def sheet(self, principal: Principal, draft: Draft) -> Sheet:
        """Returns the rows of a draft."""
        return await self._database.read(principal.scope, store.read_sheet, principal, draft)

    async def checked(self, principal: Principal, draft: Draft) -> Checked:
        """Returns the checked rows of the draft. It has none before they are entered, or if it is for anonymous codes."""
        columns = draft.content.columns
        if columns is None or draft.content.code_quantity is not None:
            return Checked((), ())
        return await self.check(principal, await self.sheet(principal, draft), columns)

    async def finish(self, principal: Principal, steps: Steps[Result]) -> Result:
        """Runs `steps` in the customer's turn. No time-out applies, as the time depends on their file."""
        with self._timeouts.suspended():
            return await self._runner.finish(principal.customer_id, steps)

    @asynccontextmanager
    async def _changing(self, actor: Actor, draft_id: str) -> AsyncIterator[store.DraftChange]:
        """Changes a draft in the customer's turn, as it may write many rows."""
        with self._timeouts.suspended():
            async with self._runner.turn(actor.customer_id), store.changing_draft(actor, draft_id) as change:
                yield change


def _to_add(columns: Columns, checked: Checked) -> list[Typed]:
    """Returns rows to add to a list that has its own columns. Raises SheetRefused for addresses that would get lost."""
    if columns.email is None:
        raise SheetRefused("no_email")
    for row in checked.bad:
        if any(problem.kind == "email_more" for problem in row.problems):
            raise SheetRefused("more_emails", row=row.number)
    return [as_typed(row) for row in checked.rows]


def _differing(old: Sheet, new: Sheet) -> tuple[list[int], list[SheetRow]]:
    """Returns the numbers of the rows that differ, and the new rows."""
    rows = [row for before, row in zip(old.rows, new.rows, strict=True) if before.cells != row.cells]
    return [row.number for row in rows], rows


def _with_most_addresses(sheets: Mapping[int, Sheet]) -> Steps[int]:
    """Returns the key of the sheet with the most cells that may be addresses, or the first of several."""
    counts = dict.fromkeys(sheets, 0)
    for at, sheet in sheets.items():
        for row in sheet.rows:
            counts[at] += sum("@" in cell for cell in row.cells)
            yield
    return max(counts, key=lambda at: (counts[at], -at))


def suggestions(checked: Checked, rows: Iterable[CheckedRow]) -> dict[int, str]:
    """Returns the addresses that were probably meant, by row number, for rows whose only fault is a wrong address, and for doubtful ones."""
    domains = common_domains(one.email for one in checked.recipients)
    found = {row.number: suggested(row.email, domains) for row in rows if _may_be_meant(row)}
    found |= {row.number: checked.doubtful[row.number] for row in rows if row.number in checked.doubtful}
    return {number: email for number, email in found.items() if email is not None}


def _may_be_meant(row: CheckedRow) -> bool:
    kinds = {one.kind for one in row.problems if one.field == "email"}
    return bool(kinds) and not kinds & {"email_more", "email_in_list"} and len(kinds) == len(row.problems)


PAGE_ROWS = 50
# Rows on a page that shows only rows to fix. All of them are fields of one form.
FIX_ROWS = 200
_GROUPED = str.maketrans("", "", " ,.'\N{RIGHT SINGLE QUOTATION MARK}\N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}")


class View(msgspec.Struct, frozen=True):
    """The part of the list to show. Unknown values are ignored."""

    words: str = ""  # words that the name, the address or the number contains
    state: str = ""  # one of STATES
    sort: str = ""  # one of SORTS; with a minus before it, in descending order
    page: int = 1  # the first page is 1


class Listed(msgspec.Struct, frozen=True):
    """A page of the list."""

    rows: tuple[CheckedRow, ...]
    found: int  # recipients on all pages
    page: int
    pages: int
    # Recipients in all and by state, regardless of the search. The first of several duplicates does not count as repeated.
    counts: Mapping[str, int]


STATES = ("ready", "fix", "doubtful", "repeated", "earlier")
SORTS: Mapping[str, Callable[[CheckedRow], Any]] = {
    "row": lambda row: row.number,
    "name": lambda row: (folded(row.name), row.number),
    "email": lambda row: (folded(row.email), row.number),
    "quantity": lambda row: (int(row.quantity) if row.quantity.isdecimal() else 1, row.number),
}


def list_rows(checked: Checked, view: View, earlier: Collection[str] = ()) -> Listed:
    """Returns the page of the list that a view shows. Without a chosen order, the rows to fix come first, then the doubtful ones.

    `earlier` has the `email_key` of each address that had the gift before.
    """
    of_state = _by_state(checked, earlier)
    counts = {"all": _recipients(checked.rows), **{name: _recipients(rows) for name, rows in of_state.items()}}
    counts["repeated"] = len([row for row in of_state["repeated"] if row.same_as is not None])
    found: Sequence[CheckedRow] = of_state.get(view.state, checked.rows)
    if view.words.strip():
        found = [row for row in found if _matches(row, view.words)]
    found = sorted(found, key=_order(view, checked.doubtful), reverse=view.sort.startswith("-"))
    most = FIX_ROWS if view.state == "fix" else PAGE_ROWS
    pages = max(1, -(-len(found) // most))
    page = min(max(view.page, 1), pages)
    return Listed(tuple(found[(page - 1) * most : page * most]), _recipients(found), page, pages, counts)


def _recipients(rows: Sequence[CheckedRow]) -> int:
    return sum(row.members for row in rows)


def _by_state(checked: Checked, earlier: Collection[str]) -> dict[str, list[CheckedRow]]:
    """Returns the rows of each of STATES. The repeated ones include the first row of each repeated address."""
    rows = checked.rows
    firsts = {row.same_as for row in rows if row.same_as is not None}
    return {
        "ready": [row for row in rows if not row.problems],
        "fix": list(checked.bad),
        "doubtful": [row for row in rows if row.number in checked.doubtful],
        "repeated": [row for row in rows if row.same_as is not None or row.number in firsts],
        "earlier": [row for row in rows if email_key(row.email) in earlier] if earlier else [],
    }


def _order(view: View, doubted: Collection[int]) -> Callable[[CheckedRow], Any]:
    sort = SORTS.get(view.sort.removeprefix("-"))
    if sort is not None:
        return sort
    if view.state == "repeated":
        return lambda row: (row.same_as or row.number, row.number)
    return lambda row: (not row.problems, row.number not in doubted, row.number)


def _matches(row: CheckedRow, words: str) -> bool:
    """Returns whether a row has all these words, ignoring letter case and accents, or is the row with that number."""
    if words.translate(_GROUPED) == str(row.number):
        return True
    return has_words(f"{row.name} {row.email}", search_words(words))
