"""Bank transfers that have come in, matched by their references with the top-ups they pay for.

A transfer confirms a top-up once, if it has its amount and currency. Every other line is left alone and listed with the reason, for an
operator to decide.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace

from largesse.base.errors import OperatorError
from largesse.base.money import AmountError, label, to_minor
from largesse.customers.actor import Actor
from largesse.ledger.bank_file import BankLine, read_decimal
from largesse.ledger.top_ups import confirm_top_up
from largesse.ledger.top_ups_store import TopUp, find_by_references
from largesse.ledger.transfer_references import spelled_reference, transfer_references_in

_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Match:
    """The outcome of a line: the top-up that it confirms or confirmed before, or `why` it confirms none."""

    line: int
    outcome: str  # confirmed, known (the same line confirmed it before) or unmatched
    reference: str | None
    amount: str  # as the bank writes it
    currency: str
    account: str | None
    why: str | None


async def match_payments(
    actor: Actor, lines: Sequence[BankLine], *, decimal: str | None = None, dry_run: bool = False
) -> AsyncIterator[list[Match]]:
    """Confirms the top-ups that the lines pay for, each in its own transaction, and yields the outcome of each line, 500 at a time.

    It can be run again after an interruption: a line that was taken before is known. With `dry_run` nothing is written.
    """
    taken: dict[str, bytes] = {}  # by earlier lines of this file, which a dry run does not write
    for at in range(0, len(lines), _AT_ONCE):
        some = lines[at : at + _AT_ONCE]
        named = {line.line: transfer_references_in(line.text) for line in some}
        async with actor.transaction() as transaction:
            references = sorted({one for all_ in named.values() for one in all_})
            found = await find_by_references(transaction.connection, references)
        matches = []
        for line in some:
            match, top_up = _match(line, named[line.line], found, taken, decimal)
            if top_up is not None:
                taken[top_up.reference] = line.mark
                if not dry_run:
                    match = await _confirm(actor, line, match, top_up)
            matches.append(match)
        yield matches


def _match(
    line: BankLine,
    references: Sequence[str],
    found: dict[str, tuple[TopUp, bytes | None]],
    taken: dict[str, bytes],
    decimal: str | None,
) -> tuple[Match, TopUp | None]:
    """Returns the outcome of a line, and the top-up that it confirms, if any."""

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
    """Returns why a line does not confirm the top-up that it names; None if it does."""
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


async def _confirm(actor: Actor, line: BankLine, match: Match, top_up: TopUp) -> Match:
    """Confirms a top-up unless it has ended meanwhile."""
    try:
        await confirm_top_up(actor, top_up.reference, top_up.amount_minor, bank_line=line.mark)
    except OperatorError as error:
        return replace(match, outcome="unmatched", why=str(error))
    return match
