"""Holding the rows of a sheet to the rules of an order: all that is wrong with each, and who is in it twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from largesse.base.cooperative import Steps
from largesse.base.email import MAX_EMAIL, email_key
from largesse.base.errors import InvalidRequest
from largesse.drafts.columns import Columns, is_quantity
from largesse.drafts.mailboxes import Mailbox, read_mailboxes
from largesse.drafts.sheet import Sheet, SheetRow
from largesse.orders.recipients import MAX_CODES, MAX_NAME, MAX_QUANTITY, OrderRecipient, check_recipient

# What may be wrong with a row, in words for people; pages say the same in theirs.
PROBLEMS = {
    "email_missing": "The e-mail address is missing.",
    "email_long": f"The e-mail address has more than {MAX_EMAIL} characters.",
    "email_wrong": "This is no e-mail address.",
    "email_in_list": "One of the addresses is no e-mail address:",
    "email_more": "Another address stands in a column that is not used:",
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
    headings = sheet.rows[0].cells if columns.has_heading and sheet.rows else []
    unused = [at for at in range(sheet.width) if at not in columns.used and not "".join(headings[at : at + 1])]
    for row in sheet.rows[int(columns.has_heading) :]:
        checked, mailboxes = _check(row, columns, unused)
        for key in (email_key(address) for _, address in mailboxes if address):
            if key in seen:
                checked = msgspec.structs.replace(checked, same_as=checked.same_as or seen[key])
            seen.setdefault(key, row.number)
        rows.append(checked)
        if not checked.problems:
            count = int(checked.quantity or 1)
            recipients += [check_recipient(address, name, count) for name, address in mailboxes]
        yield
    return Checked(tuple(rows), tuple(recipients))


def _check(row: SheetRow, columns: Columns, unused: Sequence[int]) -> tuple[CheckedRow, list[Mailbox]]:
    """The row, checked, and the name and address of each recipient in it: a cell may hold a list of them."""
    email = _cell(row, columns.email)
    name = " ".join(filter(None, (_cell(row, at) for at in columns.names)))
    quantity = _cell(row, columns.quantity)
    listed = read_mailboxes(email) or [("", email)]
    if name:  # the column says it; of several, each keeps their own
        listed = [(name if len(listed) == 1 else own or name, address) for own, address in listed]
    problems: list[RowProblem] = []
    for own, address in listed:
        problems += _problems(address, own, is_listed=address != email)
    problems += [RowProblem("email", "email_more", _cell(row, at)) for at in unused if "@" in _cell(row, at)]
    if not is_quantity(quantity):
        problems.append(RowProblem("quantity", "quantity_wrong"))
    problems = list(dict.fromkeys(problems))
    problems.sort(key=lambda problem: ("email", "name", "quantity").index(problem.field))
    return CheckedRow(row.number, email, name, quantity, tuple(problems)), listed


def _problems(email: str, name: str, *, is_listed: bool) -> Iterator[RowProblem]:
    """What keeps a recipient out of an order, by the order's own rules."""
    if not email:
        yield RowProblem("email", "email_missing")
    elif len(email) > MAX_EMAIL:
        yield RowProblem("email", "email_long")
    else:
        try:
            check_recipient(email, None, 1)
        except InvalidRequest as refusal:
            if is_listed:
                yield RowProblem("email", "email_in_list", email)
            else:
                yield RowProblem("email", "email_wrong", refusal.detail.partition(": ")[2])
    if len(name) > MAX_NAME:
        yield RowProblem("name", "name_long")
    else:
        try:
            check_recipient(_ANYBODY, name, 1)
        except InvalidRequest:
            yield RowProblem("name", "name_wrong")


_ANYBODY = "x@example.com"


def _cell(row: SheetRow, at: int | None) -> str:
    return row.cells[at] if at is not None and at < len(row.cells) else ""
