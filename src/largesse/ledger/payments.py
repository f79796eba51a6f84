"""Transfers that have come in, matched by their references with the top-ups they pay for.

A top-up is confirmed by a transfer of its amount in its currency, once. Whatever else the bank tells is left as it is, and told with the
reason, for an operator to decide.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from largesse.audit.service import Acting
from largesse.base.errors import OperatorError
from largesse.base.money import AmountError, label, to_minor
from largesse.db.pool import Database
from largesse.db.scope import OPERATOR
from largesse.ledger.bank_file import BankLine, read_decimal
from largesse.ledger.top_ups import (
    TopUp,
    confirm_top_up,
    spelled_reference,
    top_ups_of_references,
    transfer_references_in,
)

_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Match:
    """What became of a line: the top-up it confirms or has confirmed before, or `why` it confirms none."""

    line: int
    outcome: str  # confirmed, known (the same line was taken before) or unmatched
    reference: str | None
    amount: str  # as the bank writes it
    currency: str
    account: str | None
    why: str | None


async def match_payments(
    database: Database, acting: Acting, lines: Sequence[BankLine], *, decimal: str | None = None, dry_run: bool = False
) -> AsyncIterator[list[Match]]:
    """Confirms the top-ups that the lines pay for, each in a transaction of its own, and tells of every line in turn, some hundred at a time.

    Cut short, it may be run again: a line that was taken is known. With `dry_run` nothing is written.
    """
    taken: dict[str, bytes] = {}  # by lines before: in a dry run nothing else tells
    for at in range(0, len(lines), _AT_ONCE):
        some = lines[at : at + _AT_ONCE]
        named = {line.line: transfer_references_in(line.text) for line in some}
        async with database.connection(OPERATOR) as connection:
            found = await top_ups_of_references(connection, sorted({one for all_ in named.values() for one in all_}))
        matches = []
        for line in some:
            match, top_up = _judge(line, named[line.line], found, taken, decimal)
            if top_up is not None:
                taken[top_up.reference] = line.mark
                if not dry_run:
                    match = await _confirm(database, acting, line, match, top_up)
            matches.append(match)
        yield matches


def _judge(
    line: BankLine,
    references: Sequence[str],
    found: dict[str, tuple[TopUp, bytes | None]],
    taken: dict[str, bytes],
    decimal: str | None,
) -> tuple[Match, TopUp | None]:
    """What is to become of a line, and the top-up that it confirms, if it does."""

    def match(outcome: str, why: str | None, top_up: TopUp | None = None) -> Match:
        reference = None if top_up is None else top_up.reference
        account = None if top_up is None else f"{top_up.customer}: {top_up.account}"
        return Match(line.line, outcome, reference, line.amount, line.currency, account, why)

    ours = [one for one in references if one in found]
    if not references:
        return match("unmatched", "it names no reference"), None
    if not ours:
        return match("unmatched", f"there is no top-up {spelled_reference(references[0])}"), None
    if len(ours) > 1:
        return match("unmatched", f"it names several: {', '.join(map(spelled_reference, ours))}"), None
    top_up, mark = found[ours[0]]
    mark = taken.get(top_up.reference, mark)
    if mark == line.mark:
        return match("known", None, top_up), None
    if (why := _hindrance(line, top_up, decimal, is_taken=mark is not None)) is not None:
        return match("unmatched", why, top_up), None
    return match("confirmed", None, top_up), top_up


def _hindrance(line: BankLine, top_up: TopUp, decimal: str | None, *, is_taken: bool) -> str | None:
    """Why a line does not confirm the top-up that it names; None when it does."""
    if line.currency != top_up.currency:
        return f"it is in {line.currency or 'no currency'}, the account in {top_up.currency}"
    try:
        amount_minor = to_minor(read_decimal(line.amount, decimal, top_up.currency), top_up.currency)
    except AmountError as error:
        return f"the amount {error}"
    except ValueError as error:
        return str(error)
    if amount_minor <= 0:
        return "it is no payment in"
    if is_taken or top_up.state == "confirmed":
        return "the top-up is confirmed already: it may have been paid twice"
    if top_up.state == "cancelled":
        return "the top-up was cancelled"
    if top_up.state == "expired":
        return f"the top-up expired on {top_up.expires_at:%Y-%m-%d}: `top-ups confirm` takes it all the same"
    if amount_minor != top_up.amount_minor:
        asked = label(top_up.amount_minor, top_up.currency)
        return f"{label(amount_minor, top_up.currency)} came where {asked} was asked for"
    return None


async def _confirm(database: Database, acting: Acting, line: BankLine, match: Match, top_up: TopUp) -> Match:
    """Confirms it, unless it has ended meanwhile."""
    try:
        async with database.transaction(OPERATOR) as connection:
            done = await confirm_top_up(connection, acting, top_up.reference, top_up.amount_minor, bank_line=line.mark)
    except OperatorError as error:
        return Match(line.line, "unmatched", match.reference, line.amount, line.currency, match.account, str(error))
    assert done.state == "confirmed"
    return match
