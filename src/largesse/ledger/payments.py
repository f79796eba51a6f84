"""Matches incoming bank transfers with top-ups, by their references.

A transfer with the amount and currency of its top-up confirms it, once. Every other line is listed with the reason, for an operator to
decide.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from largesse.base.amounts import is_shared_sign, is_sign
from largesse.base.errors import OperatorError
from largesse.base.money import AmountError, label, to_minor
from largesse.customers.actor import Actor
from largesse.customers.staff_roles import StaffRight
from largesse.ledger.bank_file import BankLine, is_no_payment, is_taken_back, read_decimal
from largesse.ledger.top_ups import TopUp, confirm_top_up, find_by_references, meant_references, spelled_reference

_AT_ONCE = 500


class Why(msgspec.Struct, frozen=True):
    """Why a line confirms no top-up: in English for commands, and `code` with its `values` for pages."""

    code: str
    said: str
    values: dict[str, Any] = {}

    def __str__(self) -> str:
        return self.said


_NO_PAYMENT = Why("no_payment", "it is no payment in")
_REVERSED = Why("reversed", "another line of the file takes the payment back")
_CREDIT_REVERSED = Why("credit_reversed", "the top-up is confirmed, and this may take its money back")


class Match(msgspec.Struct, frozen=True):
    """The outcome of a line: the top-up that it confirms or confirmed before, or `why` it confirms none."""

    line: int
    outcome: str  # confirmed, known (the same line confirmed it before) or unmatched
    reference: str | None
    amount: str  # the amount as the bank writes it
    currency: str
    account: str | None
    why: Why | None
    amount_minor: int | None = None  # the amount that was paid, if it is in the top-up's currency


async def match_payments(
    actor: Actor, lines: Sequence[BankLine], *, decimal: str | None = None, dry_run: bool = False
) -> AsyncIterator[list[Match]]:
    """Confirms the top-ups that the lines pay for, each in its own transaction, and yields the outcome of each line, 500 at a time.

    It can be repeated after an interruption, and skips lines that it has matched. With `dry_run` it writes nothing.
    """
    taken: dict[str, bytes] = {}  # taken by earlier lines of this file, which a dry run does not write
    reversed_ = {named for line in lines if is_taken_back(line.amount) for named in line.named}
    for at in range(0, len(lines), _AT_ONCE):
        some = lines[at : at + _AT_ONCE]
        async with actor.transaction(StaffRight.SEE_MONEY if dry_run else StaffRight.MONEY) as transaction:
            references = sorted(
                {one for line in some for named in line.named for one in (named, *meant_references(named))}
            )
            found = await find_by_references(transaction.connection, references)
        matches = []
        for line in some:
            match, top_up = _match(line, found, taken, decimal)
            if top_up is not None and top_up.reference in reversed_:
                match, top_up = replace(match, outcome="unmatched", why=_REVERSED), None
            if top_up is not None:
                taken[top_up.reference] = line.mark
                if not dry_run:
                    match = await _confirm(actor, line, match, top_up)
            matches.append(match)
        yield matches


def _match(
    line: BankLine, found: dict[str, tuple[TopUp, bytes | None]], taken: dict[str, bytes], decimal: str | None
) -> tuple[Match, TopUp | None]:
    """Returns the outcome of a line, and the top-up that it confirms, if any."""

    def match(outcome: str, why: Why | None, top_up: TopUp | None = None, amount_minor: int | None = None) -> Match:
        reference = None if top_up is None else top_up.reference
        account = None if top_up is None else f"{top_up.customer_name}: {top_up.account}"
        return Match(line.line, outcome, reference, line.amount, line.currency, account, why, amount_minor)

    ours = [one for one in line.named if one in found]
    if not line.named:
        return match("unmatched", Why("no_reference", "it names no reference")), None
    if is_no_payment(line.amount):
        top_up = found[ours[0]][0] if len(ours) == 1 else None
        is_credited = top_up is not None and top_up.state == "confirmed"
        return match(
            "unmatched", _CREDIT_REVERSED if is_credited and is_taken_back(line.amount) else _NO_PAYMENT, top_up
        ), None
    if not ours:
        spelled = spelled_reference(line.named[0])
        if meant := _meant(line, found, taken, decimal):
            top_up, amount_minor = meant
            if not amount_minor:
                return match("known", None, top_up), None
            said = f"{spelled} is mistyped: {spelled_reference(top_up.reference)} waits for this amount"
            return match("unmatched", Why("mistyped", said, {"reference": spelled}), top_up, amount_minor), None
        return match("unmatched", Why("unknown", f"there is no top-up {spelled}", {"reference": spelled})), None
    if len(ours) > 1:
        all_ = ", ".join(map(spelled_reference, ours))
        return match("unmatched", Why("several", f"it names several: {all_}", {"references": all_})), None
    top_up, mark = found[ours[0]]
    mark = taken.get(top_up.reference, mark)
    if mark == line.mark:
        return match("known", None, top_up), None
    amount_minor, why = _amount(line, top_up, decimal)
    why = why or _hindrance(amount_minor, top_up, is_taken=mark is not None)
    if why is not None:
        return match("unmatched", why, top_up, amount_minor or None), None
    return match("confirmed", None, top_up, amount_minor), top_up


def _meant(
    line: BankLine, found: dict[str, tuple[TopUp, bytes | None]], taken: dict[str, bytes], decimal: str | None
) -> tuple[TopUp, int] | None:
    """Returns the one top-up that a mistyped reference may mean, with the amount that it waits for; 0 if the line confirmed it before."""
    meant = {one for named in line.named for one in meant_references(named) if one in found}
    if len(meant) != 1:
        return None
    top_up, mark = found[meant.pop()]
    if mark == line.mark:
        return top_up, 0
    amount_minor, why = _amount(line, top_up, decimal)
    is_taken = taken.get(top_up.reference, mark) is not None
    return None if why or _hindrance(amount_minor, top_up, is_taken=is_taken) else (top_up, amount_minor)


def _amount(line: BankLine, top_up: TopUp, decimal: str | None) -> tuple[int, Why | None]:
    """Returns the paid amount in minor units of the top-up's currency; or 0, and why it is not known."""
    if is_shared_sign(line.currency):
        said = f"{line.currency} stands for several currencies: name the file's currency with --currency"
        return 0, Why("shared_sign", said, {"found": line.currency})
    if not is_sign(line.currency, top_up.currency):
        said = f"it is in {line.currency or 'no currency'}, the account in {top_up.currency}"
        return 0, Why("other_currency", said, {"found": line.currency, "currency": top_up.currency})
    try:
        amount_minor = to_minor(read_decimal(line.amount, decimal, top_up.currency), top_up.currency)
    except AmountError as error:
        return 0, Why("no_amount", f"the amount {error}")
    except ValueError as error:
        return 0, Why("no_amount", str(error))
    return (amount_minor, None) if amount_minor > 0 else (0, _NO_PAYMENT)


def _hindrance(amount_minor: int, top_up: TopUp, *, is_taken: bool) -> Why | None:
    """Returns why a paid amount does not confirm its top-up; None if it does."""
    if is_taken or top_up.state == "confirmed":
        return Why("confirmed", "the top-up is confirmed already: it may have been paid twice")
    if top_up.state == "cancelled":
        return Why("cancelled", "the top-up was cancelled")
    if top_up.state == "expired":
        said = f"the top-up expired on {top_up.expires_at:%Y-%m-%d}: `top-ups confirm` takes it all the same"
        return Why("expired", said, {"at": top_up.expires_at})
    if amount_minor != top_up.amount_minor:
        came, asked = label(amount_minor, top_up.currency), label(top_up.amount_minor, top_up.currency)
        values = {"came_minor": amount_minor, "asked_minor": top_up.amount_minor, "currency": top_up.currency}
        return Why("other_amount", f"{came} came where {asked} was asked for", values)
    return None


async def _confirm(actor: Actor, line: BankLine, match: Match, top_up: TopUp) -> Match:
    """Confirms a top-up unless it has ended meanwhile."""
    try:
        await confirm_top_up(actor, top_up.reference, top_up.amount_minor, bank_line=line.mark)
    except OperatorError as error:
        return replace(match, outcome="unmatched", why=Why("ended", str(error)))
    return match
