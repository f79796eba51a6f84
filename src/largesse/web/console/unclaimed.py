"""An administrator's page for unclaimed gifts: the default claim-by date and reminders of orders that set none."""

from typing import Annotated

import msgspec
from starlette.responses import Response

from largesse.base.i18n.languages import text
from largesse.customers.customer_store import find_follow_up
from largesse.orders.follow_ups import MAX_CLAIM_BY_DAYS, FollowUpDefaults, read_defaults
from largesse.orders.schedule import RemindersTooLate, set_defaults
from largesse.web.console.context import RequestContext
from largesse.web.console.form import Checked, Text
from largesse.web.console.send.delivery import reminders_in

TITLE = text("Unclaimed gifts")
_DAYS = text("Type a whole number from 1 to %(most)s, or leave it empty.")
_LATE = text("The last reminder would leave after the claim-by date. Choose fewer days, or a later date.")
_HERE = "/app/unclaimed"


class DefaultsForm(msgspec.Struct):
    """The form of the page."""

    claim_by_days: Annotated[str, Text(6, required=False)]
    reminder_days: Annotated[str, Text(20, required=False)]
    of_api: Annotated[bool, Checked()]


async def show(context: RequestContext) -> Response:
    """Shows the settings."""
    return context.page("unclaimed.html", now=_shown(await _defaults(context)))


async def save(context: RequestContext) -> Response:
    """Saves the settings. They apply to orders placed from now on."""
    form, seen = context.form, await _defaults(context)
    form.keep_others(_shown(seen))
    read = form.read(DefaultsForm)
    days = form.number("claim_by_days") if read.claim_by_days else None
    if read.claim_by_days and not 0 < (days or 0) <= MAX_CLAIM_BY_DAYS:
        form.error("claim_by_days", context.say(_DAYS, most=context.language.number(MAX_CLAIM_BY_DAYS)))
    reminders = reminders_in(context)
    if form.errors:
        return await show(context)
    of_api = read.of_api and bool(days or reminders)
    try:
        defaults = FollowUpDefaults(claim_by_days=days, of_api=of_api, reminder_days=reminders)
        await set_defaults(context.actor, defaults, seen)
    except RemindersTooLate:
        form.error("reminder_days", context.say(_LATE))
        return await show(context)
    return context.see(_HERE, context.say("Saved. It applies to orders placed from now on."))


async def _defaults(context: RequestContext) -> FollowUpDefaults:
    return read_defaults(await context.read(find_follow_up, context.person.customer_id))


def _shown(defaults: FollowUpDefaults) -> dict[str, str]:
    """Returns what the fields show."""
    return {
        "claim_by_days": str(defaults.claim_by_days or ""),
        "reminder_days": ", ".join(map(str, defaults.reminder_days or ())),
        "of_api": "yes" if defaults.of_api else "",
    }
