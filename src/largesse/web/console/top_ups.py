"""Top-ups: asked for with an amount, paid by a transfer with a reference, cancelled while they wait."""

from __future__ import annotations

from starlette.responses import Response

from largesse.base.errors import InvalidRequest
from largesse.base.i18n.templates import text
from largesse.customers.roles import Right
from largesse.ledger.accounts import SeenAccount, find_seen_account, list_seen_accounts
from largesse.ledger.top_ups import (
    MAX_WAITING,
    TopUp,
    cancel_top_up,
    find_top_up,
    list_top_ups,
    request_top_up,
    spelled_reference,
)
from largesse.web.console.context import Visit, typed_amount
from largesse.web.console.funding import sees_own_of

STATES = {
    "waiting": ("waiting", text("Waits for the transfer")),
    "expired": ("bad", text("Expired")),
    "confirmed": ("good", text("Credited")),
    "cancelled": ("still", text("Cancelled")),
}
_TOO_MANY = text("%(most)s top-ups wait already. Cancel one that will not be paid first.")
_CREDITED = text("The money has come: this top-up is credited and cannot be cancelled.")


async def ask(visit: Visit) -> Response:
    """The form that asks for one."""
    return await _asked(visit)


async def request(visit: Visit) -> Response:
    """Asks for one, and goes to how it is paid."""
    form, person = visit.form, visit.person
    accounts = await _open_accounts(visit)
    account = next(
        (one for one in accounts if str(one.id) == form.choice("account", [str(o.id) for o in accounts])),
        None,
    )
    amount_minor = 0 if account is None else typed_amount(visit, "amount", account.currency)
    if form.errors or account is None:
        return await _asked(visit, status=422)
    try:
        async with visit.writing() as connection:
            made = await request_top_up(
                connection,
                visit.acting,
                customer_id=person.customer_id,
                environment=person.environment,
                account_id=account.id,
                amount_minor=amount_minor,
                requested_by=person.user_id,
            )
    except InvalidRequest:
        form.error("amount", visit.say(_TOO_MANY, most=MAX_WAITING))
        return await _asked(visit, status=422)
    return visit.see(f"/app/funding/top-ups/{made.reference}")


async def show(visit: Visit) -> Response:
    """How it is paid, as a page to print, and what has become of it. Raises NotFound."""
    found = await _found(visit)
    kind, word = STATES[found.state]
    return visit.page(
        "top_up.html",
        top_up=found,
        spelled=spelled_reference(found.reference),
        kind=kind,
        word=visit.say(word),
        details=visit.services.settings.transfer_details,
        may_pay_in=visit.person.may(Right.MOVE_FUNDS),
    )


async def list_all(visit: Visit) -> Response:
    """All of the customer's, the newest first."""
    person = visit.person
    async with visit.database.connection(person.scope) as connection:
        found = await list_top_ups(connection, person.customer_id, person.environment)
    seen = {account.id for account in await _accounts(visit)}
    rows = [
        (one, spelled_reference(one.reference), *_shown_state(visit, one))
        for one in found
        if one.account_id in seen
    ]
    return visit.page("top_ups.html", rows=rows)


async def cancel(visit: Visit) -> Response:
    """Cancels one that waits. Raises NotFound."""
    found = await _found(visit)
    person = visit.person
    try:
        async with visit.writing() as connection:
            await cancel_top_up(
                connection, visit.acting, person.customer_id, person.environment, found.reference
            )
    except InvalidRequest:
        return visit.see(f"/app/funding/top-ups/{found.reference}", visit.say(_CREDITED))
    return visit.see("/app/funding", visit.say("The top-up was cancelled. Do not pay it any more."))


def _shown_state(visit: Visit, top_up: TopUp) -> tuple[str, str]:
    kind, word = STATES[top_up.state]
    return kind, visit.say(word)


async def _accounts(visit: Visit) -> list[SeenAccount]:
    person = visit.person
    async with visit.database.connection(person.scope) as connection:
        return await list_seen_accounts(
            connection, person.customer_id, person.environment, user_id=sees_own_of(visit)
        )


async def _open_accounts(visit: Visit) -> list[SeenAccount]:
    return [account for account in await _accounts(visit) if not account.is_closed]


async def _found(visit: Visit) -> TopUp:
    """The one that the address names, where the person may see its account. Raises NotFound."""
    person = visit.person
    async with visit.database.connection(person.scope) as connection:
        found = await find_top_up(
            connection, person.customer_id, person.environment, visit.request.path_params["reference"]
        )
        await find_seen_account(
            connection,
            person.customer_id,
            person.environment,
            found.account_id,
            user_id=sees_own_of(visit),
        )
    return found


async def _asked(visit: Visit, *, status: int = 200) -> Response:
    accounts = await _open_accounts(visit)
    choices = [(str(one.id), f"{one.name} ({one.currency})") for one in accounts]
    return visit.page("ask_top_up.html", status=status, choices=choices, chosen=visit.query("account"))
