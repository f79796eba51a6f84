"""The delivery step of a send: the time, the paying account, the claim-by date and the reminders. Also the page of the defaults that unclaimed gifts have."""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated

import msgspec
from starlette.responses import Response

from largesse.base.i18n.languages import text
from largesse.base.text import unfit_key
from largesse.base.zones import after, in_zone
from largesse.customers.customer_store import find_follow_up
from largesse.customers.roles import Right
from largesse.ledger.payment_sources import names_account
from largesse.ledger.store import FundingAccount, list_funding_accounts
from largesse.orders.follow_ups import (
    LEAST_TO_CLAIM,
    MAX_CLAIM_BY_DAYS,
    MAX_REMINDER_DAYS,
    MAX_REMINDERS,
    FollowUpDefaults,
    read_defaults,
)
from largesse.orders.request import MAX_REFERENCE
from largesse.orders.schedule import RemindersTooLate, set_defaults
from largesse.web.console.context import RequestContext
from largesse.web.console.form import DAY, LOCAL, Checked, Text
from largesse.web.console.send.opening import Open, change, chosen, open_draft, step

_CLAIM_SOON = text("Recipients would have less than a day. Choose a later day.")
_CLAIM_LATE = text("Choose a day at most %(most)s days after the gifts leave.")
_REMINDERS = text("Type at most %(most)s numbers from 1 to %(days)s, each greater than the one before, such as 3, 10.")
_REMINDER_LATE = text("The last reminder would leave after the claim-by date. Choose fewer days, or a later date.")


async def show(context: RequestContext) -> Response:
    """Shows the form."""
    return await _show(context, await open_draft(context))


async def take(context: RequestContext) -> Response:
    """Saves the time, the account, the customer's reference, the claim-by date and the reminders."""
    opened, form = await open_draft(context), context.form
    principal = opened.caller.principal
    accounts = await context.read(list_funding_accounts, principal) if names_account(principal.funding) else []
    if opened.content.has_claim_by:  # until this step is saved, its fields show defaults, which change by themselves
        form.keep_others(_shown(context, opened), {str(one.id): one.name for one in accounts})
    send_at = None
    if opened.content.code_quantity is None:
        send_at = _send_at(context, opened)
    account_id = None
    if names_account(principal.funding):
        offered = {str(account.id): account.id for account in accounts}
        account_id = offered.get(form["account"])
        if form["account"] not in offered:
            form.error("account", context.say("Choose the account that pays."))
    reference = form["reference"].strip()
    if len(reference) > MAX_REFERENCE:
        form.text("reference", MAX_REFERENCE, required=False)
    elif unfit_key(reference):
        form.error("reference", context.say("This has characters that are not allowed. Type it again."))
    claim_by = _claim_day(context, opened, send_at or opened.caller.now)
    reminder_days = reminders_in(context)
    if form.errors:
        return await _show(context, opened)
    if claim_by is not None and reminder_days:
        sent_at = send_at or opened.caller.now
        if after(sent_at, timedelta(days=reminder_days[-1])) >= claim_by:
            form.error("reminder_days", context.say(_REMINDER_LATE))
            return await _show(context, opened)
    await change(
        context,
        opened,
        send_at=send_at,
        claim_by=claim_by,
        has_claim_by=True,
        reminder_days=reminder_days,
        account_id=account_id,
        external_reference=reference or None,
    )
    return context.see(f"{opened.path}/review")


def _send_at(context: RequestContext, opened: Open) -> datetime | None:
    """Returns the time to send the mail; None for now. Adds errors to the form.

    With "Now" chosen, a filled-in time is an error and not ignored, unless it has passed or was saved before.
    """
    form, now = context.form, opened.caller.now
    at = form.time("at", context.times_in)
    if form["when"] == "later":
        if at is None:
            form.error("at", context.say("Choose a day and a time."))
        elif at <= now:
            form.error("at", context.say("This time has passed. Choose a later one."))
        return at
    is_over = at is not None and at <= now
    if form["at"] and not is_over and form["at"] != _local(context, opened.content.send_at):
        said = context.say("A time is filled in. Leave “Later” chosen, or choose “Now” and empty the time.")
        form.errors["at"] = said  # even if it cannot be read
    return None


def _claim_day(context: RequestContext, opened: Open, sent_at: datetime) -> datetime | None:
    """Returns the end of the day in the field `claim_by`, in the form's zone; None for an empty field. Adds errors to the form."""
    form = context.form
    if not form["claim_by"].strip():
        return None
    at = form.end_of_day("claim_by", context.times_in)
    if at is None:
        form.error("claim_by", context.say("Choose a day, or leave it empty."))
    elif at <= sent_at:
        form.error("claim_by", context.say("The gifts leave after this day. Choose a later one."))
    elif opened.content.code_quantity is None and at - sent_at < LEAST_TO_CLAIM:
        form.error("claim_by", context.say(_CLAIM_SOON))
    elif at - sent_at > timedelta(days=MAX_CLAIM_BY_DAYS):
        form.error("claim_by", context.say(_CLAIM_LATE, most=context.language.number(MAX_CLAIM_BY_DAYS)))
    return at


def reminders_in(context: RequestContext) -> tuple[int, ...]:
    """Returns the days in the field `reminder_days`; none for an empty field. Adds an error to the form if it is wrong."""
    typed = re.split(r"[\s,;]+", context.form["reminder_days"].strip(" ,;"))
    if typed == [""]:
        return ()
    days = [int(one) for one in typed if one.isascii() and one.isdigit() and len(one) < 4]
    fits = len(days) == len(typed) <= MAX_REMINDERS and all(0 < one <= MAX_REMINDER_DAYS for one in days)
    if not fits or sorted(set(days)) != days:
        said = context.say(_REMINDERS, most=MAX_REMINDERS, days=MAX_REMINDER_DAYS)
        context.form.error("reminder_days", said)
        return ()
    return tuple(days)


def _local(context: RequestContext, at: datetime | None, form: str = LOCAL) -> str:
    """Returns an instant or its day as the form field shows it, in the form's zone."""
    return in_zone(at, context.times_in).strftime(form) if at else ""


def _shown(context: RequestContext, opened: Open) -> dict[str, str]:
    """Returns what the fields show. The account is empty until one is chosen."""
    content = opened.content
    return {
        "when": "later" if content.send_at else "now",
        "at": _local(context, content.send_at),
        "account": str(content.account_id or ""),
        "reference": content.external_reference or "",
        "claim_by": _local(context, opened.draft.claim_by(opened.caller, context.times_in), DAY),
        "reminder_days": ", ".join(map(str, opened.draft.reminder_days(opened.caller))),
    }


def _likely_account(accounts: Sequence[FundingAccount], total_minor: int) -> str:
    """Returns the id of the preselected account: the only one, or the first with enough balance; empty if there is none."""
    return next((str(one.id) for one in accounts if one.balance_minor >= total_minor or len(accounts) == 1), "")


async def _show(context: RequestContext, opened: Open) -> Response:
    principal = opened.caller.principal
    said = await chosen(context, opened)
    checked = await context.services.drafts.rows.checked(principal, opened.draft)
    count = opened.content.code_quantity or checked.code_count
    accounts = await context.read(list_funding_accounts, principal)
    fitting = [one for one in accounts if said is None or one.currency == said.gift.currency]
    total_minor = said.gift.unit_cost_minor * count if said else 0
    now = _shown(context, opened)
    shown_account = now["account"] or _likely_account(fitting, total_minor)
    return await step(
        context,
        opened,
        "delivery",
        chosen=said,
        names_account=names_account(principal.funding),
        accounts=fitting,
        account_id=context.form["account"] or shown_account,
        may_top_up=context.person.may(Right.MOVE_FUNDS),
        total_minor=total_minor,
        recipients=checked.recipient_count,
        count=count,
        is_batch=opened.content.code_quantity is not None,
        zone=str(context.times_in),
        now=now | {"account": shown_account},
        has_default=not opened.content.has_claim_by and opened.draft.claim_by(opened.caller) is not None,
        most_reference=MAX_REFERENCE,
    )


UNCLAIMED, UNCLAIMED_TITLE = "/app/unclaimed", text("Unclaimed gifts")
_DAYS = text("Type a whole number from 1 to %(most)s, or leave it empty.")


class DefaultsForm(msgspec.Struct):
    """The claim-by date and the reminders of orders that set none."""

    claim_by_days: Annotated[str, Text(6, required=False)]
    reminder_days: Annotated[str, Text(20, required=False)]
    of_api: Annotated[bool, Checked()]


async def show_defaults(context: RequestContext) -> Response:
    """Shows the claim-by date and the reminders of orders that set none."""
    return context.page("unclaimed.html", now=_defaults_shown(await _defaults(context)))


async def save_defaults(context: RequestContext) -> Response:
    """Saves the settings. They apply to orders placed from now on."""
    form, seen = context.form, await _defaults(context)
    form.keep_others(_defaults_shown(seen))
    read = form.read(DefaultsForm)
    days = form.number("claim_by_days") if read.claim_by_days else None
    if read.claim_by_days and not 0 < (days or 0) <= MAX_CLAIM_BY_DAYS:
        form.error("claim_by_days", context.say(_DAYS, most=context.language.number(MAX_CLAIM_BY_DAYS)))
    reminders = reminders_in(context)
    if form.errors:
        return await show_defaults(context)
    of_api = read.of_api and bool(days or reminders)
    try:
        defaults = FollowUpDefaults(claim_by_days=days, of_api=of_api, reminder_days=reminders)
        await set_defaults(context.actor, defaults, seen)
    except RemindersTooLate:
        form.error("reminder_days", context.say(_REMINDER_LATE))
        return await show_defaults(context)
    return context.see(UNCLAIMED, context.say("Saved. It applies to orders placed from now on."))


async def _defaults(context: RequestContext) -> FollowUpDefaults:
    return read_defaults(await context.read(find_follow_up, context.person.customer_id))


def _defaults_shown(defaults: FollowUpDefaults) -> dict[str, str]:
    """Returns what the fields show."""
    return {
        "claim_by_days": str(defaults.claim_by_days or ""),
        "reminder_days": ", ".join(map(str, defaults.reminder_days or ())),
        "of_api": "yes" if defaults.of_api else "",
    }
