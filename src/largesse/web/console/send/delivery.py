"""When it goes out, and who pays."""

from __future__ import annotations

from datetime import UTC, datetime

from starlette.responses import Response

from largesse.base.i18n.templates import text
from largesse.base.text import unfit_key
from largesse.ledger.payment_sources import names_account
from largesse.ledger.store import list_funding_accounts
from largesse.orders.request import MAX_REFERENCE
from largesse.web.console.context import RequestContext
from largesse.web.console.send.opening import Open, change, chosen, open_draft, step

_LOCAL = "%Y-%m-%dT%H:%M"  # as browsers post `datetime-local`
_NO_TIME = text("Choose a day and a time.")
_AT_ONCE = text("A time is filled in. Leave “At a time” chosen, or choose “At once” and empty the time.")
_PAST = text("This time is over. Choose a later one.")
_NO_ACCOUNT = text("Choose the account that pays.")
_UNFIT = text("This holds characters that may not be in it. Type it again.")


async def show(context: RequestContext) -> Response:
    """The form."""
    return await _show(context, await open_draft(context))


async def take(context: RequestContext) -> Response:
    """Takes when, from which account, and the customer's own reference."""
    opened, form = await open_draft(context), context.form
    principal = opened.caller.principal
    send_at = None
    if opened.content.code_quantity is None:
        send_at = _send_at(context, opened)
    account_id = None
    if names_account(principal.funding):
        async with context.database.connection(principal.scope) as connection:
            accounts = await list_funding_accounts(connection, principal)
        offered = {str(account.id): account.id for account in accounts}
        account_id = offered.get(form["account"])
        if form["account"] not in offered:
            form.error("account", context.say(_NO_ACCOUNT))
    reference = form["reference"].strip()
    if len(reference) > MAX_REFERENCE:
        form.text("reference", MAX_REFERENCE, required=False)
    elif unfit_key(reference):
        form.error("reference", context.say(_UNFIT))
    if form.errors:
        return await _show(context, opened, status=422)
    await change(context, opened, send_at=send_at, account_id=account_id, external_reference=reference or None)
    return context.see(f"{opened.path}/review")


def _send_at(context: RequestContext, opened: Open) -> datetime | None:
    """Returns when the mail is to leave, None for at once; what is wrong with it is noted in the form.

    A time that was filled in is never dropped: beside "At once" it is asked about, unless it is over or is the one that was saved before.
    """
    form, now = context.form, opened.caller.now
    try:
        at = datetime.strptime(form["at"], _LOCAL).replace(tzinfo=context.zone).astimezone(UTC)
    except (ValueError, OverflowError):
        at = None
    if form["when"] == "later":
        if at is None:
            form.error("at", context.say(_NO_TIME))
        elif at <= now:
            form.error("at", context.say(_PAST))
        return at
    is_over = at is not None and at <= now
    if form["at"] and not is_over and form["at"] != _local(context, opened.content.send_at):
        form.error("at", context.say(_AT_ONCE))
    return None


def _local(context: RequestContext, at: datetime | None) -> str:
    """An instant as the field has it, in the person's zone."""
    return at.astimezone(context.zone).strftime(_LOCAL) if at else ""


async def _show(context: RequestContext, opened: Open, *, status: int = 200) -> Response:
    principal = opened.caller.principal
    said = await chosen(context, opened)
    checked = await context.services.drafts.recipients(principal, opened.draft)
    count = opened.content.code_quantity or checked.code_count
    async with context.database.connection(principal.scope) as connection:
        accounts = await list_funding_accounts(connection, principal)
    fitting = [one for one in accounts if said is None or one.currency == said.gift.currency]
    total_minor = said.gift.unit_cost_minor * count if said else 0
    return await step(
        context,
        opened,
        "delivery",
        status=status,
        chosen=said,
        names_account=names_account(principal.funding),
        accounts=fitting,
        total_minor=total_minor,
        count=count,
        is_batch=opened.content.code_quantity is not None,
        zone=str(context.zone),
        at=_local(context, opened.content.send_at),
        most_reference=MAX_REFERENCE,
    )
