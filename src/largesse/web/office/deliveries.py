"""Deliveries that need attention, in the back office: mail that was not delivered, and failing webhooks."""

from datetime import timedelta
from uuid import UUID

from starlette.responses import Response

from largesse.base import clock
from largesse.base.errors import TooManyRequests
from largesse.base.i18n.languages import text
from largesse.customers.customer_store import read_customer
from largesse.customers.staff_roles import StaffRight
from largesse.db.scope import OFFICE
from largesse.mail.recipients import RecipientState
from largesse.mail.requeue import MOST_REQUEUED, NEWEST, STATES, RequeueFilter, count_given_up, list_given_up, requeue
from largesse.web.console.order_words import RECIPIENT_STATES, Shown
from largesse.web.office.context import OfficeContext
from largesse.web.office.customers import ENVIRONMENT_NAMES, acting_for, environment_of, named
from largesse.webhooks.delivery_store import FIRST, list_failing
from largesse.webhooks.service import redeliver_failed

HERE = "/office/deliveries"
_PAGE = 50
_AGES = {
    "1": text("The last day"),
    "7": text("The last 7 days"),
    "30": text("The last 30 days"),
    "365": text("The last year"),
}
_DEFAULT_AGE = "30"
STATE_NAMES = {
    "bounced": RECIPIENT_STATES[RecipientState.BOUNCED],
    "exhausted": RECIPIENT_STATES[RecipientState.FAILED],
    "held": RECIPIENT_STATES[RecipientState.HELD],
    "pending": Shown("waiting", text("Tried again later")),
}


async def show(context: OfficeContext) -> Response:
    """Shows the mail that bounced, was given up, is held, or waits for its next try, newest first."""
    wanted = _filter(context)
    async with context.database.connection(OFFICE) as connection:
        customer = None if wanted.customer_id is None else await read_customer(connection, wanted.customer_id)
        found = await list_given_up(connection, wanted, past=context.past or NEWEST, limit=_PAGE + 1)
    messages = found[:_PAGE]
    last = messages[-1] if len(found) > _PAGE else None
    return context.page(
        "deliveries.html",
        messages=messages,
        customer=customer,
        query=context.query,
        state_names=STATE_NAMES,
        states=[(state, context.say(STATE_NAMES[state][1])) for state in STATES],
        ages=named(context, _AGES),
        age=_age(context),
        older=last and context.here_past(last.given_up_at, last.id),
        newest=context.here(before=None, after=None) if context.query("before") else None,
        ask_path=context.here(before=None, after=None).replace("/deliveries", "/deliveries/requeue", 1),
        may_requeue=context.person.may(StaffRight.DELIVERIES),
    )


async def ask(context: OfficeContext) -> Response:
    """Asks whether to resend the mail that matches the filter, and shows how much there is."""
    wanted = _filter(context)
    customer = None if wanted.customer_id is None else await context.read(read_customer, wanted.customer_id)
    count = await count_given_up(context.actor, wanted, most=MOST_REQUEUED)
    return context.page(
        "requeue.html",
        count=count,
        most=MOST_REQUEUED,
        customer=customer,
        reason=wanted.reason,
        states=[context.say(STATE_NAMES[state][1]) for state in wanted.states],
        age=context.say(_AGES[_age(context)]),
        back=context.here().removeprefix(context.base).replace("/requeue", "", 1),
    )


async def send_again(context: OfficeContext) -> Response:
    """Resends the mail that matches the filter, at most MOST_REQUEUED messages."""
    wanted = _filter(context)
    made = await requeue(context.actor, wanted, most=MOST_REQUEUED)
    said = context.ngettext("%(count)s mail leaves again.", "%(count)s mails leave again.", made)
    return context.see(HERE, said)


async def webhooks(context: OfficeContext) -> Response:
    """Shows the failing webhooks of all customers or of one."""
    customer_id = context.parameters.number("from")
    async with context.database.connection(OFFICE) as connection:
        customer = None if customer_id is None else await read_customer(connection, customer_id)
        past = FIRST if context.query("before") == "" else _past_webhook(context)
        found = await list_failing(connection, customer_id, past=past, limit=_PAGE + 1)
    failing = found[:_PAGE]
    last = failing[-1] if len(found) > _PAGE else None
    return context.page(
        "failing_webhooks.html",
        failing=failing,
        customer=customer,
        environments=dict(named(context, ENVIRONMENT_NAMES)),
        older=last and context.here(before=last.customer_id, request=str(last.id)),
        may_requeue=context.person.may(StaffRight.DELIVERIES),
    )


async def deliver_again(context: OfficeContext) -> Response:
    """Retries the deliveries of a webhook that failed permanently. Raises NotFound."""
    actor = acting_for(context, environment_of(context))
    here = f"{HERE}/webhooks?from={actor.customer_id}"
    try:
        count = await redeliver_failed(actor, context.services.delivery_throttle, context.uuid("subscription"))
    except TooManyRequests:
        return context.see(here, context.say("Too many deliveries were asked for again. Try again in a minute."))
    said = context.ngettext("%(count)s event is delivered again.", "%(count)s events are delivered again.", count)
    return context.see(here, said)


def _filter(context: OfficeContext) -> RequeueFilter:
    """Returns the filter in the page's address."""
    state = context.query("state")
    return RequeueFilter(
        clock.now() - timedelta(days=int(_age(context))),
        context.query("q").strip() or None,
        context.parameters.number("from"),
        (state,) if state in STATES else STATES,
    )


def _age(context: OfficeContext) -> str:
    age = context.query("period")
    return age if age in _AGES else _DEFAULT_AGE


def _past_webhook(context: OfficeContext) -> tuple[int, UUID]:
    try:
        return context.parameters.number("before") or 0, UUID(context.query("request"))
    except ValueError:
        return FIRST
