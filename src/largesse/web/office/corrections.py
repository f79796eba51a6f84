"""Corrections by two people: one proposes it on the page of an account, and another approves or declines it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any

import msgspec
from starlette.responses import Response

from largesse.base.errors import InsufficientBalance
from largesse.base.i18n.languages import text
from largesse.customers.actor import Actor
from largesse.customers.staff_roles import STAFF_RIGHTS, StaffRight
from largesse.db.scope import OFFICE
from largesse.ledger import corrections
from largesse.ledger.corrections_store import find_correctable, find_correction, list_corrections, list_waiting
from largesse.staff.service import ListedStaff, list_staff
from largesse.web.console.context import typed_amount
from largesse.web.console.form import Choice, Text
from largesse.web.office.context import OfficeContext

HERE = "/office/money/corrections"
_SHOWN = 50
KIND_NAMES: Mapping[str, str] = {
    "credit": text("Credit: money that arrived is missing"),
    "debit": text("Debit: money was credited that did not arrive"),
    "refund": text("Refund: the price of an order is paid back"),
}
SHORT_KINDS: Mapping[str, str] = {"credit": text("Credit"), "debit": text("Debit"), "refund": text("Refund")}
STATES: Mapping[str, tuple[str, str]] = {
    "waiting": ("waiting", text("Waits for a second person")),
    "approved": ("good", text("Approved")),
    "declined": ("bad", text("Declined")),
    "withdrawn": ("still", text("Withdrawn")),
    "expired": ("still", text("Expired")),
}
_CLOSED = text("The account is closed. Open it again first.")
_PROPOSER_LEFT = text("Who proposed this correction may no longer correct balances. Decline it, and propose it again.")


async def show(context: OfficeContext) -> Response:
    """Lists the corrections that wait for a second person, and the newest ones."""
    async with context.database.connection(OFFICE) as connection:
        waiting = await list_waiting(connection, _SHOWN)
        found = await list_corrections(connection, context.parameters.number("before"), _SHOWN + 1)
        words = _words(context, await list_staff(connection))
    more = found[_SHOWN - 1].id if len(found) > _SHOWN else None
    return context.page("corrections.html", waiting=waiting, corrections=found[:_SHOWN], more=more, **words)


async def ask(context: OfficeContext) -> Response:
    """Shows the form for a correction of an account. Raises NotFound."""
    account = await context.read(find_correctable, context.number("account"))
    return context.page(
        "correction_form.html",
        account=account,
        kinds=[(one, context.say(KIND_NAMES[one])) for one in corrections.KINDS],
    )


class CorrectionForm(msgspec.Struct):
    """The typed fields of a correction."""

    kind: Annotated[str, Choice(corrections.KINDS)]
    amount: Annotated[str, Text(40)]
    order: Annotated[str, Text(40, required=False)]
    reason: Annotated[str, Text(corrections.LONGEST_REASON, lines=True)]


async def propose(context: OfficeContext) -> Response:
    """Proposes a correction. Raises NotFound."""
    form, account_id = context.form.read(CorrectionForm), context.number("account")
    account = await context.read(find_correctable, account_id)
    amount_minor = 0 if "amount" in context.form.errors else typed_amount(context, "amount", account.currency)
    if form.kind == "refund" and not form.order:
        context.form.error("order", context.say("Type the reference of the order that is refunded."))
    if form.kind != "refund" and form.order:
        context.form.error("order", context.say("Only a refund names an order."))
    if context.form.errors:
        return await ask(context)
    new = corrections.NewCorrection(account_id, form.kind, amount_minor, form.reason, form.order.upper() or None)
    try:
        proposed = await corrections.propose_correction(context.actor, new)
    except corrections.NoSuchOrder:
        context.form.error("order", context.say("The customer has no order with that reference."))
    except corrections.PaidElsewhere:
        context.form.error("order", context.say("This order was paid from another account. Correct that one."))
    except corrections.MoreThanOrder as refusal:
        left = context.language.amount(refusal.left_minor, account.currency)
        said = context.say(
            "At most %(left)s of the order can be refunded. Cancel gifts that nobody has claimed instead.", left=left
        )
        context.form.error("amount", said)
    except corrections.AccountClosed:
        context.form.error("kind", context.say(_CLOSED))
    except corrections.TooManyWaiting:
        most = context.language.number(corrections.MAX_WAITING)
        context.form.error("kind", context.say("%(most)s corrections wait already. Decide some first.", most=most))
    else:
        said = context.say("Proposed. Somebody else has to approve it within 14 days.")
        return context.see(f"{HERE}/{proposed.id}", said)
    return await ask(context)


async def one(context: OfficeContext, wrong: str = "", status: int | None = None) -> Response:
    """Shows a correction. Raises NotFound."""
    async with context.database.connection(OFFICE) as connection:
        correction = await find_correction(connection, context.number("correction"))
        account = await find_correctable(connection, correction.account_id)
        staff = await list_staff(connection)
    may_change = context.person.may(StaffRight.MONEY) and correction.state == "waiting"
    is_own = correction.proposed_by == context.person.person_id
    correcting = {one.id for one in staff if one.is_active and one.role in STAFF_RIGHTS[StaffRight.MONEY]}
    has_left = correction.state == "waiting" and correction.proposed_by not in correcting
    after_minor = account.balance_minor + correction.change_minor
    return context.page(
        "correction.html",
        status=status,
        correction=correction,
        account=account,
        wrong=wrong,
        proposer_left=context.say(_PROPOSER_LEFT) if has_left else "",
        is_above_balance=correction.state == "waiting" and account.kind == "funding" and after_minor < 0,
        may_decide=may_change and not is_own,
        may_withdraw=may_change and is_own,
        **_words(context, staff),
    )


async def approve(context: OfficeContext) -> Response:
    """Approves somebody else's correction, and posts it. Raises NotFound."""
    return await _decide(context, corrections.approve_correction, context.say("Approved and posted."))


async def decline(context: OfficeContext) -> Response:
    """Declines somebody else's correction. Raises NotFound."""
    return await _decide(context, corrections.decline_correction, context.say("Declined. Nothing was posted."))


async def withdraw(context: OfficeContext) -> Response:
    """Withdraws the person's own correction. Raises NotFound."""
    return await _decide(context, corrections.withdraw_correction, context.say("Withdrawn."))


async def _decide(context: OfficeContext, decide: Callable[[Actor, int], Awaitable[object]], said: str) -> Response:
    correction_id = context.number("correction")
    try:
        await decide(context.actor, correction_id)
    except corrections.OwnCorrection:
        wrong = context.say("You proposed this correction. Somebody else has to decide.")
    except corrections.ProposerLeft:
        wrong = context.say(_PROPOSER_LEFT)
    except corrections.CorrectionEnded:
        wrong = context.say("This correction was decided or expired meanwhile.")
    except InsufficientBalance:
        wrong = context.say("The account does not hold that much. Nothing was posted.")
    except corrections.AccountClosed:
        wrong = context.say(_CLOSED)
    except corrections.MoreThanOrder:
        wrong = context.say("Less of the order is left to refund by now. Decline it, and propose another amount.")
    else:
        return context.see(f"{HERE}/{correction_id}", said)
    return await one(context, wrong, 409)


def _words(context: OfficeContext, staff: Sequence[ListedStaff]) -> dict[str, Any]:
    return {
        "names": {one.id: one.name for one in staff},
        "kinds": {kind: context.say(word) for kind, word in SHORT_KINDS.items()},
        "states": {state: (kind, context.say(word)) for state, (kind, word) in STATES.items()},
    }
