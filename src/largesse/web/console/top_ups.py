"""Top-ups. People request one with an amount, pay it by a transfer with its reference, or cancel it while it waits."""

from starlette.responses import Response

from largesse.base.errors import InvalidRequest
from largesse.base.i18n.languages import text
from largesse.customers.roles import Right
from largesse.ledger.store import SeenAccount, find_seen_account, list_seen_accounts
from largesse.ledger.top_ups import (
    MAX_WAITING,
    TopUp,
    cancel_top_up,
    find_top_up,
    list_top_ups,
    request_top_up,
    spelled_reference,
)
from largesse.web.console.context import RequestContext, typed_amount
from largesse.web.console.words import StateNames

STATES = StateNames(
    {
        "waiting": ("waiting", text("Waiting for the transfer")),
        "expired": ("bad", text("Expired")),
        "confirmed": ("good", text("Credited")),
        "cancelled": ("still", text("Cancelled")),
    }
)
_TOO_MANY = text("%(most)s top-ups are already waiting for a transfer. Cancel one of them first.")
_CREDITED = text("The money has arrived. This top-up is credited and cannot be cancelled.")


async def ask(context: RequestContext) -> Response:
    """Shows the form that requests a top-up."""
    accounts = await _open_accounts(context)
    choices = [(str(one.id), f"{one.name} ({one.currency})") for one in accounts]
    return context.page(
        "ask_top_up.html",
        choices=choices,
        chosen=context.query("account"),
        amount_typed=context.query("amount"),
        is_invoiced=context.person.funding != "balance",
        may_manage=context.person.may(Right.SETTINGS),
    )


async def request(context: RequestContext) -> Response:
    """Requests a top-up, and shows how to pay it."""
    form = context.form
    accounts = await _open_accounts(context)
    account = next(
        (one for one in accounts if str(one.id) == form.choice("account", [str(o.id) for o in accounts])), None
    )
    amount_minor = 0 if account is None else typed_amount(context, "amount", account.currency)
    if form.errors or account is None:
        return await ask(context)
    try:
        top_up = await request_top_up(context.actor, account.id, amount_minor)
    except InvalidRequest:
        form.error("amount", context.say(_TOO_MANY, most=MAX_WAITING))
        return await ask(context)
    return context.see(f"/app/funding/top-ups/{top_up.reference}")


async def show(context: RequestContext) -> Response:
    """Shows how to pay a top-up, as a page to print, and its state. Raises NotFound."""
    found = await _find(context)
    kind, word = _shown_state(context, found)
    return context.page(
        "top_up.html",
        top_up=found,
        spelled=spelled_reference(found.reference),
        kind=kind,
        word=word,
        details=context.services.settings.transfer_details,
        may_pay_in=context.person.may(Right.MOVE_FUNDS),
    )


async def list_all(context: RequestContext) -> Response:
    """Lists the customer's top-ups, newest first."""
    found = await context.read(list_top_ups, context.customer)
    seen = {account.id for account in await _accounts(context)}
    rows = [
        (one, spelled_reference(one.reference), *_shown_state(context, one)) for one in found if one.account_id in seen
    ]
    return context.page("top_ups.html", rows=rows, may_pay_in=context.person.may(Right.MOVE_FUNDS))


async def cancel(context: RequestContext) -> Response:
    """Cancels a waiting top-up. Raises NotFound."""
    top_up = await _find(context)
    try:
        await cancel_top_up(context.actor, top_up.reference)
    except InvalidRequest:
        return context.see(f"/app/funding/top-ups/{top_up.reference}", context.say(_CREDITED))
    return context.see("/app/funding", context.say("The top-up was cancelled. Do not pay it."))


def _shown_state(context: RequestContext, top_up: TopUp) -> tuple[str, str]:
    kind, word = STATES[top_up.state]
    return kind, context.say(word)


async def _accounts(context: RequestContext) -> list[SeenAccount]:
    own = context.person.if_only_own(Right.SEE_FUNDS)
    return await context.read(list_seen_accounts, context.customer, user_id=own)


async def _open_accounts(context: RequestContext) -> list[SeenAccount]:
    return [account for account in await _accounts(context) if not account.is_closed]


async def _find(context: RequestContext) -> TopUp:
    """Returns the top-up of the path. Raises NotFound, also if the person may not see its account."""
    person = context.person
    async with context.database.connection(person.scope) as connection:
        found = await find_top_up(connection, context.customer, context.request.path_params["reference"])
        own = person.if_only_own(Right.SEE_FUNDS)
        await find_seen_account(connection, context.customer, found.account_id, user_id=own)
    return found
