"""Holding the rows of a sheet to the rules of an order: all that is wrong with each, and who is in it twice."""

from __future__ import annotations

import msgspec

from largesse.base.email import MAX_EMAIL, email_key
from largesse.base.errors import InvalidRequest
from largesse.base.slices import Steps
from largesse.drafts.columns import Columns
from largesse.drafts.sheet import Sheet, SheetRow
from largesse.orders import MAX_CODES, MAX_NAME, MAX_QUANTITY, OrderRecipient, check_recipient

# What may be wrong with a row, in words for people; pages say the same in theirs.
PROBLEMS = {
    "email_missing": "The e-mail address is missing.",
    "email_long": f"The e-mail address has more than {MAX_EMAIL} characters.",
    "email_wrong": "This is no e-mail address.",
    "name_long": f"The name has more than {MAX_NAME} characters.",
    "name_wrong": "The name holds characters that no name may.",
    "quantity_wrong": f"The quantity is no whole number from 1 to {MAX_QUANTITY:,}.",
}


class RowProblem(msgspec.Struct, frozen=True):
    """What is wrong with a cell: `kind` is one of PROBLEMS, `detail` the rule's own words where there are any."""

    field: str  # email, name or quantity
    kind: str
    detail: str = ""

    @property
    def told(self) -> str:
        """In words for people."""
        return PROBLEMS[self.kind] + (f" {self.detail}" if self.detail else "")


class CheckedRow(msgspec.Struct, frozen=True):
    """A row with what is in its columns, and what is wrong with that."""

    number: int
    email: str
    name: str
    quantity: str
    problems: tuple[RowProblem, ...] = ()
    same_as: int | None = None  # the number of the first row with that address


class Checked(msgspec.Struct, frozen=True):
    """The rows of a sheet, checked: `recipients` are those of the rows that are fine, in their order."""

    rows: tuple[CheckedRow, ...]
    recipients: tuple[OrderRecipient, ...]

    @property
    def bad(self) -> tuple[CheckedRow, ...]:
        """The rows that are wrong."""
        return tuple(row for row in self.rows if row.problems)

    @property
    def repeated(self) -> tuple[CheckedRow, ...]:
        """The rows that are fine, and whose address has been in one before."""
        return tuple(row for row in self.rows if row.same_as is not None and not row.problems)

    @property
    def code_count(self) -> int:
        """The codes that the rows that are fine ask for."""
        return sum(recipient.quantity for recipient in self.recipients)

    @property
    def has_too_many(self) -> bool:
        """Whether they ask for more codes than one order may have."""
        return self.code_count > MAX_CODES

    @property
    def can_be_sent(self) -> bool:
        """Whether there is somebody, and nothing is wrong."""
        return bool(self.recipients) and not self.bad and not self.has_too_many


def check_rows(sheet: Sheet, columns: Columns) -> Steps[Checked]:
    """All rows but the heading, checked, one a step: an address at a domain not of ASCII takes milliseconds."""
    rows: list[CheckedRow] = []
    recipients: list[OrderRecipient] = []
    seen: dict[str, int] = {}
    for row in sheet.rows[int(columns.has_heading) :]:
        checked, recipient = _check(row, columns)
        key = email_key(checked.email)
        same_as = seen.setdefault(key, row.number) if key else row.number
        rows.append(checked if same_as == row.number else msgspec.structs.replace(checked, same_as=same_as))
        if recipient is not None:
            recipients.append(recipient)
        yield
    return Checked(tuple(rows), tuple(recipients))


def _check(row: SheetRow, columns: Columns) -> tuple[CheckedRow, OrderRecipient | None]:
    email = _cell(row, columns.email)
    name = " ".join(filter(None, (_cell(row, at) for at in columns.names)))
    quantity = _cell(row, columns.quantity)
    problems: list[RowProblem] = []
    count = _quantity(quantity)
    if count is None:
        problems.append(RowProblem("quantity", "quantity_wrong"))
    recipient = _recipient(email, name, count or 1, problems)
    problems.sort(key=lambda problem: ("email", "name", "quantity").index(problem.field))
    checked = CheckedRow(row.number, email, name, quantity, tuple(problems))
    return checked, None if problems else recipient


def _recipient(email: str, name: str, quantity: int, problems: list[RowProblem]) -> OrderRecipient | None:
    """The recipient as an order keeps it, by the order's own rules; None where one is broken, which `problems` then tells."""
    if len(name) > MAX_NAME:
        problems.append(RowProblem("name", "name_long"))
        name = ""
    if not email:
        problems.append(RowProblem("email", "email_missing"))
    elif len(email) > MAX_EMAIL:
        problems.append(RowProblem("email", "email_long"))
    else:
        try:
            check_recipient(email, None, quantity)
        except InvalidRequest as refusal:
            problems.append(RowProblem("email", "email_wrong", refusal.detail.partition(": ")[2]))
    try:
        check_recipient(_ANYBODY, name, quantity)
    except InvalidRequest:
        problems.append(RowProblem("name", "name_wrong"))
    return None if problems else check_recipient(email, name, quantity)


_ANYBODY = "x@example.com"


def _cell(row: SheetRow, at: int | None) -> str:
    return row.cells[at] if at is not None and at < len(row.cells) else ""


def _quantity(text: str) -> int | None:
    """How many codes; one where nothing is said, None for what is no quantity."""
    if not text:
        return 1
    if not text.isascii() or not text.isdigit() or len(text) > len(str(MAX_QUANTITY)):
        return None
    return int(text) if 1 <= int(text) <= MAX_QUANTITY else None
