"""When it goes out, and who pays."""

from __future__ import annotations

from datetime import UTC, datetime

from starlette.responses import Response

from largesse.base.i18n import text
from largesse.base.text import unfit_key
from largesse.funding import list_funding_accounts, names_account
from largesse.orders import MAX_REFERENCE
from largesse.web.console.send.opening import Open, change, chosen, open_draft, step
from largesse.web.console.visit import Visit

_LOCAL = "%Y-%m-%dT%H:%M"  # as browsers post `datetime-local`
_NO_TIME = text("Choose a day and a time.")
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
    if opened.content.code_quantity is None and form["when"] == "later":
        send_at = _instant(visit, opened.caller.now)
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


def _instant(visit: Visit, now: datetime) -> datetime | None:
    """The time that was chosen; what is wrong with it is noted in the form."""
    try:
        at = datetime.strptime(visit.form["at"], _LOCAL).replace(tzinfo=visit.zone).astimezone(UTC)
    except (ValueError, OverflowError):
        visit.form.error("at", visit.say(_NO_TIME))
        return None
    if at <= now:
        visit.form.error("at", visit.say(_PAST))
    return at


async def _show(visit: Visit, opened: Open, *, status: int = 200) -> Response:
    principal = opened.caller.principal
    said = await chosen(visit, opened)
    checked = await visit.services.drafts.recipients(principal, opened.draft)
    count = opened.content.code_quantity or checked.code_count
    async with visit.database.connection(principal.scope) as connection:
        accounts = await list_funding_accounts(connection, principal)
    fitting = [one for one in accounts if said is None or one.currency == said.gift.currency]
    total_minor = said.gift.unit_cost_minor * count if said else 0
    at = opened.content.send_at
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
        at=at.astimezone(visit.zone).strftime(_LOCAL) if at else "",
        now=opened.caller.now.astimezone(visit.zone).strftime(_LOCAL),
        most_reference=MAX_REFERENCE,
    )
