"""Checks the rows of a sheet by the rules of an order, and finds all faults and repeated recipients. Also replaces and adds rows."""

from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from largesse.base.cooperative import Steps
from largesse.base.email import MAX_EMAIL, email_key, is_mistyped
from largesse.base.errors import InvalidRequest
from largesse.base.text import csv_file, is_error
from largesse.drafts.columns import Columns, has_numbered_names, is_quantity, name_in, plain_quantity
from largesse.drafts.mailboxes import Mailbox, fault_of, is_bare, read_mailboxes
from largesse.drafts.mistyped import likely_addresses
from largesse.drafts.sheet import Sheet, SheetMaker, SheetRow
from largesse.orders.recipients import MAX_CODES, MAX_NAME, MAX_QUANTITY, OrderRecipient, check_recipient

# The faults of a row, in English; pages have their own texts.
PROBLEMS = {
    "email_missing": "The e-mail address is missing.",
    "email_long": f"The e-mail address has more than {MAX_EMAIL} characters.",
    "email_no_at": "The @ is missing, as in name@example.com.",
    "email_two_at": "The address has more than one @.",
    "email_comma": "The part after @ has a comma where a dot belongs.",
    "email_space": "The address has a space in it.",
    "email_domain": "The part after @ is incomplete. It looks like example.com.",
    "email_dots": "The address has a dot too many.",
    "email_sign": "A sign before the @ does not belong in an address, such as \u2019 for an apostrophe.",
    "email_wrong": "Type an e-mail address, such as name@example.com.",
    "email_in_list": "One of the addresses is not an e-mail address:",
    "email_more": "Another address stands in a column that is not used:",
    "name_long": f"The name has more than {MAX_NAME} characters.",
    "name_wrong": "The name has characters that are not allowed in a name.",
    "name_formula": "The name is a spreadsheet's error text, such as #N/A or ####.",
    "quantity_wrong": f"The quantity is not a whole number from 1 to {MAX_QUANTITY:,}.",
}


class RowProblem(msgspec.Struct, frozen=True, gc=False):
    """A fault of a cell. `kind` is one of PROBLEMS. `detail` is the address with the fault, if the cell has several."""

    field: str  # email, name or quantity
    kind: str
    detail: str = ""

    @property
    def message(self) -> str:
        """The fault in words for people."""
        return PROBLEMS[self.kind] + (f" {self.detail}" if self.detail else "")


class CheckedRow(msgspec.Struct, frozen=True, gc=False):
    """A row with the values of its columns, and its faults.

    A cell such as `Ada <ada@example.com>` is split into name and address. A cell with several recipients is unchanged.
    """

    number: int
    email: str
    name: str
    quantity: str
    problems: tuple[RowProblem, ...] = ()
    same_as: int | None = None  # the number of the first valid row with the same address, for a valid row
    members: int = 1  # the number of recipients in the row, as a cell may hold a list


class Checked(msgspec.Struct, frozen=True):
    """The checked rows of a sheet.

    `recipients` are the recipients of the valid rows, in their order. `doubtful` are the addresses that were probably meant, by row number, for
    valid rows of one address with a domain that looks mistyped.
    """

    rows: tuple[CheckedRow, ...]
    recipients: tuple[OrderRecipient, ...]
    doubtful: Mapping[int, str] = {}

    @property
    def bad(self) -> tuple[CheckedRow, ...]:
        """The rows with faults."""
        return tuple(row for row in self.rows if row.problems)

    @property
    def repeated(self) -> tuple[CheckedRow, ...]:
        """The valid rows whose address is in an earlier valid row."""
        return tuple(row for row in self.rows if row.same_as is not None)

    @property
    def recipient_count(self) -> int:
        """The number of recipients of an order of the valid rows. An address in several rows counts once."""
        return len({email_key(recipient.email) for recipient in self.recipients})

    @property
    def code_count(self) -> int:
        """The number of codes of the valid rows."""
        return sum(recipient.quantity for recipient in self.recipients)

    @property
    def has_too_many(self) -> bool:
        """Whether the valid rows have more codes than one order may have."""
        return self.code_count > MAX_CODES

    def can_be_sent(self, *, leaves_out: bool = False) -> bool:
        """Returns whether there are recipients, and no faults unless rows with faults are skipped."""
        return bool(self.recipients) and (leaves_out or not self.bad) and not self.has_too_many


def check_rows(sheet: Sheet, columns: Columns) -> Steps[Checked]:
    """Returns all checked rows except the heading. Checks one row in each step: an address with a domain beyond ASCII takes milliseconds."""
    rows: list[CheckedRow] = []
    recipients: list[OrderRecipient] = []
    seen: dict[str, int] = {}
    headings = sheet.rows[0].cells if columns.has_heading and sheet.rows else ()
    unused = [at for at in range(sheet.width) if at not in columns.used and not "".join(headings[at : at + 1])]
    is_numbered = has_numbered_names(sheet, columns)
    for row in sheet.rows[int(columns.has_heading) :]:
        name = name_in(row, columns, is_numbered=is_numbered)
        checked, mailboxes, found = _check(row, columns, name, unused)
        for key in [] if checked.problems else [email_key(address) for _, address in mailboxes]:
            if seen.setdefault(key, row.number) != row.number and checked.same_as is None:
                checked = msgspec.structs.replace(checked, same_as=seen[key])
        rows.append(checked)
        recipients += found
        yield
    single = {row.number: row.email for row in rows if not row.problems and row.members == 1}
    return Checked(tuple(rows), tuple(recipients), (yield from likely_addresses(single)))


def _check(
    row: SheetRow, columns: Columns, name: str, unused: Sequence[int]
) -> tuple[CheckedRow, list[Mailbox], list[OrderRecipient]]:
    """Returns the checked row, the name and address of each recipient in it, and the recipients who get a gift: none if it has a fault."""
    cell = _cell(row, columns.email)
    quantity = plain_quantity(_cell(row, columns.quantity))
    listed = ([] if is_bare(cell) else read_mailboxes(cell)) or [("", cell)]
    if name and not quantity and len(listed) == 1 and listed[0][0] and is_quantity(name):
        name, quantity = "", name  # `Ada <ada@example.com>, 3` between rows of three cells
    if name:  # the name from its column; in a list, it applies only to addresses without a name
        listed = [(name if len(listed) == 1 else own or name, address) for own, address in listed]
    email = cell
    if len(listed) == 1:
        name, email = listed[0]
    problems = [RowProblem("email", "email_more", _cell(row, at)) for at in unused if "@" in _cell(row, at)]
    recipients: list[OrderRecipient] = []
    try:
        is_named = all(len(own) <= MAX_NAME and not is_error(own) for own, _ in listed)
        if is_named and is_quantity(quantity) and not problems:
            count = int(quantity or 1)
            recipients = [_recipient(address, own, count) for own, address in listed]
    except InvalidRequest:
        pass
    if not recipients:
        problems = _all_problems(listed, cell, quantity, problems)
    checked = CheckedRow(row.number, email, name, quantity, tuple(problems), members=len(recipients) or 1)
    return checked, listed, recipients


def _all_problems(listed: Sequence[Mailbox], cell: str, quantity: str, more: Sequence[RowProblem]) -> list[RowProblem]:
    """Returns all faults of a row, in the order of its columns."""
    problems: list[RowProblem] = []
    for own, address in listed:
        problems += _problems(address, own, is_listed=len(listed) > 1 and address != cell)
    problems += more
    if not is_quantity(quantity):
        problems.append(RowProblem("quantity", "quantity_wrong"))
    problems = list(dict.fromkeys(problems))
    problems.sort(key=lambda problem: ("email", "name", "quantity").index(problem.field))
    return problems


def _problems(email: str, name: str, *, is_listed: bool) -> Iterator[RowProblem]:
    """Yields the faults of a recipient by the rules of an order."""
    if not email:
        yield RowProblem("email", "email_missing")
    elif len(email) > MAX_EMAIL:
        yield RowProblem("email", "email_long")
    else:
        try:
            _recipient(email, None, 1)
        except InvalidRequest:
            yield RowProblem("email", "email_in_list", email) if is_listed else RowProblem("email", fault_of(email))
    if len(name) > MAX_NAME:
        yield RowProblem("name", "name_long")
    elif is_error(name):
        yield RowProblem("name", "name_formula")
    else:
        try:
            check_recipient(_ANYBODY, name, 1)
        except InvalidRequest:
            yield RowProblem("name", "name_wrong")


_ANYBODY = "x@example.com"


def _recipient(email: str, name: str | None, quantity: int) -> OrderRecipient:
    """Returns a checked recipient. Raises InvalidRequest."""
    if is_mistyped(email):
        raise InvalidRequest("The address has a character that no mailbox has.")
    return check_recipient(email, name, quantity)


def _cell(row: SheetRow, at: int | None) -> str:
    return row.cells[at] if at is not None and at < len(row.cells) else ""


_HEADING = ("email", "name", "quantity", "row", "what is wrong")


def bad_rows_file(checked: Checked) -> bytes:
    """Returns a CSV file of rows with faults. Its first columns can be imported again. The others have the row's number and its faults."""
    rows = [
        (row.email, row.name, row.quantity, str(row.number), " ".join(problem.message for problem in row.problems))
        for row in checked.bad
    ]
    return csv_file([_HEADING, *rows])


class Typed(msgspec.Struct, frozen=True):
    """The typed values of a row in the list."""

    email: str
    name: str = ""
    quantity: str = ""

    @property
    def is_blank(self) -> bool:
        """Whether all values are blank."""
        return not (self.email.strip() or self.name.strip() or self.quantity.strip())


def mended_sheet(
    sheet: Sheet, columns: Columns, typed: Mapping[int, Typed], more: Sequence[Typed] = ()
) -> tuple[Sheet, Columns]:
    """Returns the sheet with typed values in some rows, and with more rows at its end. Removes blank rows.

    A name from two columns moves to the first one. A value without a column gets a new one. Raises SheetRefused.
    """
    columns = _with_room(columns, sheet.width, [*typed.values(), *more])
    maker = SheetMaker()
    for row in sheet.rows:
        new = typed.get(row.number)
        maker.add(row.number, row.cells if new is None else [] if new.is_blank else _written(new, row.cells, columns))
    for number, one in enumerate(more, 1 + max((row.number for row in sheet.rows), default=0)):
        maker.add(number, [] if one.is_blank else _written(one, (), columns))
    return maker.sheet(may_be_blank=True), columns


def as_typed(row: CheckedRow) -> Typed:
    """Returns the values to type for this row."""
    return Typed(row.email, row.name, row.quantity)


def _with_room(columns: Columns, width: int, typed: Collection[Typed]) -> Columns:
    """Returns the columns. Adds new ones at the end for a name or a quantity for which the sheet has no column."""
    if columns.email is None:
        columns = msgspec.structs.replace(columns, email=width)
        width += 1
    if not columns.names and any(one.name.strip() for one in typed):
        columns = msgspec.structs.replace(columns, names=(width,))
        width += 1
    if columns.quantity is None and any(one.quantity.strip() not in {"", "1"} for one in typed):
        columns = msgspec.structs.replace(columns, quantity=width)
    return columns


def _written(typed: Typed, cells: Sequence[str], columns: Columns) -> list[str]:
    """Returns the cells of a row with the typed values.

    Removes an address in an unused column, as the person saw it beside the row and could use it.
    """
    written: dict[int | None, str] = dict(zip(columns.names, (typed.name, ""), strict=False))
    written |= {columns.email: typed.email, columns.quantity: typed.quantity}
    width = max(len(cells), *(at + 1 for at in columns.used))
    unused = ["" if "@" in cell else cell for cell in (*cells, *([""] * (width - len(cells))))]
    return [written.get(at, unused[at]) for at in range(width)]
