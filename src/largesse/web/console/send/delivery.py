"""When it goes out, and who pays."""

from __future__ import annotations

from datetime import UTC, datetime

from starlette.responses import Response

from largesse.base.i18n.templates import text
from largesse.base.text import unfit_key
from largesse.ledger.accounts import list_funding_accounts
from largesse.ledger.payment_sources import names_account
from largesse.orders.request import MAX_REFERENCE
from largesse.web.console.context import Visit
from largesse.web.console.send.opening import Open, change, chosen, open_draft, step

_LOCAL = "%Y-%m-%dT%H:%M"  # as browsers post `datetime-local`
_NO_TIME = text("Choose a day and a time.")
_AT_ONCE = text("A time is filled in. Leave “At a time” chosen, or choose “At once” and empty the time.")
_PAST = text("This time is over. Choose a later one.")
_NO_ACCOUNT = text("Choose the account that pays.")
_UNFIT = text("This holds characters that may not be in it. Type it again.")


async def show(visit: Visit) -> Response:
    """The form."""
    return await _show(visit, await open_draft(visit))


async def take(visit: Visit) -> Response:
    """Takes when, from which account, and the customer's own reference."""
    opened, form = await open_draft(visit), visit.form
    principal = opened.caller.principal
    send_at = None
    if opened.content.code_quantity is None:
        send_at = _send_at(visit, opened)
    account_id = None
    if names_account(principal.funding):
        async with visit.database.connection(principal.scope) as connection:
            accounts = await list_funding_accounts(connection, principal)
        offered = {str(account.id): account.id for account in accounts}
        account_id = offered.get(form["account"])
        if form["account"] not in offered:
            form.error("account", visit.say(_NO_ACCOUNT))
    reference = form["reference"].strip()
    if len(reference) > MAX_REFERENCE:
        form.text("reference", MAX_REFERENCE, required=False)
    elif unfit_key(reference):
        form.error("reference", visit.say(_UNFIT))
    if form.errors:
        return await _show(visit, opened, status=422)
    await change(visit, opened, send_at=send_at, account_id=account_id, external_reference=reference or None)
    return visit.see(f"{opened.path}/review")


def _send_at(visit: Visit, opened: Open) -> datetime | None:
    """Returns when the mail is to leave, None for at once; what is wrong with it is noted in the form.

    A time that was filled in is never dropped: beside "At once" it is asked about, unless it is over or is the one that was saved before.
    """
    form, now = visit.form, opened.caller.now
    try:
        at = datetime.strptime(form["at"], _LOCAL).replace(tzinfo=visit.zone).astimezone(UTC)
    except (ValueError, OverflowError):
        at = None
    if form["when"] == "later":
        if at is None:
            form.error("at", visit.say(_NO_TIME))
        elif at <= now:
            form.error("at", visit.say(_PAST))
        return at
    is_over = at is not None and at <= now
    if form["at"] and not is_over and form["at"] != _local(visit, opened.content.send_at):
        form.error("at", visit.say(_AT_ONCE))
    return None


def _local(visit: Visit, at: datetime | None) -> str:
    """An instant as the field has it, in the person's zone."""
    return at.astimezone(visit.zone).strftime(_LOCAL) if at else ""


async def _show(visit: Visit, opened: Open, *, status: int = 200) -> Response:
    principal = opened.caller.principal
    said = await chosen(visit, opened)
    checked = await visit.services.drafts.recipients(principal, opened.draft)
    count = opened.content.code_quantity or checked.code_count
    async with visit.database.connection(principal.scope) as connection:
        accounts = await list_funding_accounts(connection, principal)
    fitting = [one for one in accounts if said is None or one.currency == said.gift.currency]
    total_minor = said.gift.unit_cost_minor * count if said else 0
    return await step(
        visit,
        opened,
        "delivery",
        status=status,
        chosen=said,
        names_account=names_account(principal.funding),
        accounts=fitting,
        total_minor=total_minor,
        count=count,
        is_batch=opened.content.code_quantity is not None,
        zone=str(visit.zone),
        at=_local(visit, opened.content.send_at),
        most_reference=MAX_REFERENCE,
    )
