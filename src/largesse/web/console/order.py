"""The page of one order: the progress of each gift, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from starlette.responses import Response

from largesse.base.email import email_key
from largesse.base.errors import InvalidRequest, NotFound, TooManyRequests
from largesse.base.i18n.templates import text
from largesse.customers.access import is_own
from largesse.customers.roles import Reach, Right
from largesse.db.pool import Connection, Row
from largesse.ledger.payment_sources import OnInvoice, payment_source
from largesse.ledger.posting import find_own_accounts
from largesse.ledger.statements import order_entries
from largesse.ledger.store import list_seen_accounts
from largesse.mail.order_mail import RecipientDelivery, list_order_deliveries
from largesse.mail.resending import RESENT_TO_ALL_AFTER_H, correct_address, count_unclaimed, resend, resend_unclaimed
from largesse.orders.acts import OrderAct, cancel_order, list_acts, read_receipt
from largesse.orders.lookup import find_order, read_refundable
from largesse.orders.options import OPTIONS
from largesse.reports.filters import Place
from largesse.reports.listing import read_listed
from largesse.web.console.context import RequestContext
from largesse.web.console.funding import sees_own_of
from largesse.web.console.orders import STATES
from largesse.web.kit.spelling import spell_name
from largesse.webhooks.delivery_log import list_order_webhooks

_RECIPIENTS_AT_ONCE = 100
# How mail is doing, as a kind of state and a word.
MAIL = {
    "scheduled": ("waiting", text("Scheduled")),
    "pending": ("waiting", text("Leaves soon")),
    "held": ("waiting", text("Held: no mail server is set")),
    "sent": ("good", text("Mailed")),
    "captured": ("good", text("In the test mailbox")),
    "bounced": ("bad", text("Mail refused")),
    "exhausted": ("bad", text("Mail given up")),
    "cancelled": ("still", text("Cancelled")),
    "manual": ("still", text("Handed over as a code")),
}
STEPS = (
    ("opened_at", text("Opened")),
    ("claimed_at", text("Claimed")),
    ("chosen_at", text("Chosen")),
    ("fulfilled_at", text("Fulfilled")),
    ("expired_at", text("Expired")),
    ("cancelled_at", text("Cancelled")),
)
ACTS = {
    "cancel": text("Unclaimed codes were cancelled"),
    "resend": text("Mail was sent again"),
    "read": text("Codes were read again"),
}
DELIVERIES = {
    "pending": ("waiting", text("On its way")),
    "delivered": ("good", text("Delivered")),
    "dropped": ("bad", text("Refused")),
    "exhausted": ("bad", text("Given up")),
    "cancelled": ("still", text("Cancelled")),
}
_SHOWN = {"wrapping_key", "from_name", "message"}  # options that the page has in words of its own, or not at all
ENTRIES = {"order": text("Order"), "refund": text("Refund")}


@dataclass(frozen=True, slots=True)
class TimelineStep:
    """How many of a recipient's codes have reached a state, and when the last did."""

    word: str
    count: int
    at: datetime


@dataclass(frozen=True, slots=True)
class Way:
    """A recipient with the progress of their gift, and what the person may do."""

    delivery: RecipientDelivery
    steps: list[TimelineStep]
    may_resend: bool
    may_correct: bool
    is_wrong: bool  # what was typed to correct it


async def show(context: RequestContext) -> Response:
    """Shows the order of a reference. Raises NotFound for an order that the person may not see."""
    return await _shown(context)


async def send_again(context: RequestContext) -> Response:
    """Sends one recipient's mail again. Raises NotFound."""
    email, reference = context.form["email"], _reference(context)
    try:
        async with context.writing() as connection:
            await resend(connection, context.principal, reference, email, address=context.origin.address)
            await context.record(connection, "order.resent", f"order {reference}")
    except (InvalidRequest, TooManyRequests) as problem:
        return context.see(f"/app/orders/{reference}", _said(context, problem))
    return context.see(f"/app/orders/{reference}", context.say("The mail to %(email)s leaves again.", email=email))


async def ask_sending_again(context: RequestContext) -> Response:
    """Asks whether to mail all who have claimed nothing again, with how many and when they were last mailed. Raises NotFound."""
    async with context.database.connection(context.person.scope) as connection:
        order = await _find(context, connection)
        if order["delivery_mode"] != "send":
            raise NotFound("There is no mail of an order of that reference.")
        unclaimed = await count_unclaimed(connection, context.principal, order["reference"])
    return context.page("resend_all.html", order=order, unclaimed=unclaimed, pause_h=RESENT_TO_ALL_AFTER_H)


async def send_all_again(context: RequestContext) -> Response:
    """Sends the mail of all who have claimed nothing again. Raises NotFound."""
    reference = _reference(context)
    async with context.writing() as connection:
        count = await resend_unclaimed(connection, context.principal, reference, address=context.origin.address)
        if count:
            await context.record(connection, "order.resent", f"order {reference}", after={"recipients": count})
    said = context.say(
        "Nobody was mailed: to the same recipient, mail to all leaves every %(hours)s hours at most.",
        hours=RESENT_TO_ALL_AFTER_H,
    )
    if count:
        said = context.say("Mails that leave again: %(count)s.", count=count)
    return context.see(f"/app/orders/{reference}", said)


async def correct(context: RequestContext) -> Response:
    """Corrects a recipient's address and sends the mail there. Raises NotFound."""
    reference, old = _reference(context), context.form["email"]
    corrected = context.form.email("corrected")
    if context.form.errors:
        return await _shown(context)
    try:
        async with context.writing() as connection:
            chain, sender = context.services.chains.entries, context.origin.address
            await correct_address(connection, chain, context.principal, reference, old, corrected, address=sender)
            await context.record(connection, "order.readdressed", f"order {reference}")
    except (InvalidRequest, TooManyRequests) as problem:
        context.form.error("corrected", _said(context, problem))
        return await _shown(context)
    said = context.say("The address is corrected, and the mail goes to %(email)s.", email=corrected)
    return context.see(_place(context), said)


async def ask_cancelling(context: RequestContext) -> Response:
    """Asks whether to cancel the unclaimed codes, with the amount that is refunded. Raises NotFound."""
    async with context.database.connection(context.person.scope) as connection:
        order = await _find(context, connection)
        if not is_own(context.principal, order["service_account_id"], order["user_id"]):
            raise NotFound("There is no order of that reference.")
        unclaimed, account = await read_refundable(connection, order)
    back_minor = order["total_minor"] // order["code_count"] * unclaimed
    return context.page("cancel_order.html", order=order, unclaimed=unclaimed, back_minor=back_minor, account=account)


async def cancel(context: RequestContext) -> Response:
    """Cancels the unclaimed codes. Raises NotFound."""
    reference = _reference(context)
    done = await cancel_order(context.actor, context.principal, reference)
    said = context.say(
        "Codes cancelled: %(count)s. Returned: %(amount)s.",
        count=done.cancelled_count,
        amount=context.language.amount(done.refunded_minor, done.currency),
    )
    return context.see(f"/app/orders/{reference}", said)


async def ask_codes(context: RequestContext) -> Response:
    """Asks whether to show the codes of a batch again, after step-up. Raises NotFound, NotProved."""
    context.require_proof()
    async with context.database.connection(context.person.scope) as connection:
        order = await _find(context, connection)
    if order["delivery_mode"] != "manual" or not is_own(
        context.principal, order["service_account_id"], order["user_id"]
    ):
        raise NotFound("There is no batch of codes of that reference.")
    return context.page("ask_codes.html", order=order)


async def show_codes(context: RequestContext) -> Response:
    """Shows the codes of a batch again. The reading is recorded. Raises NotFound."""
    async with context.database.connection(context.person.scope) as connection:
        order = await _find(context, connection)
    if order["delivery_mode"] != "manual":
        raise NotFound("There is no batch of codes of that reference.")
    services = context.services
    public_url = services.settings.public_url_of(context.person.environment)
    receipt = await read_receipt(context.actor, context.principal, services.vault, public_url, order["reference"])
    return context.page("send/codes.html", receipt=receipt)


def _reference(context: RequestContext) -> str:
    return str(context.request.path_params["reference"])


def _place(context: RequestContext) -> str:
    """Returns the address of the order's page, from the same recipient on."""
    offset = _offset(context)
    return f"/app/orders/{_reference(context)}" + (f"?from={offset}" if offset else "")


def _offset(context: RequestContext) -> int:
    return context.parameters.number("from") or 0


def _said(context: RequestContext, problem: InvalidRequest | TooManyRequests) -> str:
    return context.say("That cannot be done now: %(why)s", why=problem.detail)


async def _find(context: RequestContext, connection: Connection) -> Row:
    """Returns the order if the person may see it. Raises NotFound."""
    order = await find_order(connection, context.principal, _reference(context))
    if context.person.reach(Right.SEE_ORDERS) is Reach.OWN and order["user_id"] != context.person.user_id:
        raise NotFound("There is no order of that reference.")
    return order


async def _shown(context: RequestContext) -> Response:
    person, offset = context.person, _offset(context)
    async with context.database.connection(person.scope) as connection:
        order = await _find(context, connection)
        listed = await read_listed(connection, person.customer_id, [Place(order["created_at"], order["id"])])
        deliveries = await list_order_deliveries(
            connection, context.principal, order["reference"], offset=offset, limit=_RECIPIENTS_AT_ONCE
        )
        acts = await list_acts(connection, person.customer_id, order["id"])
        entries = await order_entries(
            connection, person.customer_id, await _payer(connection, order), order["id"], _moments(order, acts)
        )
        sees_balances = await _sees_balances(context, connection, order)
        webhooks = await list_order_webhooks(connection, context.principal, order["id"], order["created_at"])
    may_act = person.may(Right.SEND) and is_own(context.principal, order["service_account_id"], order["user_id"])
    ways = [_way(context, delivery, may_act=may_act) for delivery in deliveries]
    if context.form.errors and not any(way.is_wrong for way in ways):
        return context.see(_place(context), context.form.errors["corrected"])
    count = order["recipient_count"] or order["code_count"]
    return context.page(
        "order.html",
        status=422 if context.form.errors else 200,
        order=order,
        more_texts={spell_name(name): order[name] for name in OPTIONS if name not in _SHOWN and order[name]},
        listed=listed[0] if listed else None,
        ways=ways,
        offset=offset,
        older=offset + _RECIPIENTS_AT_ONCE if offset + _RECIPIENTS_AT_ONCE < count else None,
        newer=max(offset - _RECIPIENTS_AT_ONCE, 0) if offset else None,
        acts=acts,
        entries=entries,
        sees_balances=sees_balances,
        webhooks=webhooks,
        may_act=may_act,
        may_read_codes=may_act and order["delivery_mode"] == "manual" and person.may(Right.READ_CODES),
        states=STATES,
        mail=MAIL,
        act_words=ACTS,
        entry_words=ENTRIES,
        deliveries=DELIVERIES,
        mailbox=_mailbox(context),
    )


async def _sees_balances(context: RequestContext, connection: Connection, order: Row) -> bool:
    """Returns whether the person may see what the paying account held."""
    person, own = context.person, sees_own_of(context)
    if own is None or isinstance(payment_source(order["account_id"]), OnInvoice):
        return person.may(Right.SEE_FUNDS)
    seen = await list_seen_accounts(connection, person.customer_id, person.environment, user_id=own)
    return order["account_id"] in {account.id for account in seen}


def _mailbox(context: RequestContext) -> str | None:
    """Returns the address of the test mailbox; None in live mode outside the demo."""
    settings, environment = context.services.settings, context.person.environment
    if environment == "staging" or context.services.captures:
        return f"{settings.public_url_of(environment)}/mailbox"
    return None


async def _payer(connection: Connection, order: Row) -> int:
    own = await find_own_accounts(connection, order["customer_id"], order["environment"], order["currency"])
    return payment_source(order["account_id"]).payer_id(own["receivable"])


def _moments(order: Row, acts: Sequence[OrderAct]) -> list[datetime]:
    """Returns when the order changed a balance."""
    return [order["created_at"], *(act.at for act in acts if act.act == "cancel")]


def _way(context: RequestContext, delivery: RecipientDelivery, *, may_act: bool) -> Way:
    steps = []
    for name, word in STEPS:
        times = [at for line in delivery.lines if (at := getattr(line, name)) is not None]
        if times:
            steps.append(TimelineStep(context.say(word), len(times), max(times)))
    is_open = any(line.claimed_at is None and line.cancelled_at is None for line in delivery.lines)
    has_claimed = any(line.claimed_at is not None for line in delivery.lines)
    has_left = delivery.state in {"sent", "captured", "bounced", "exhausted"}
    is_mailed = may_act and delivery.email is not None and is_open
    may_correct = is_mailed and not has_claimed
    is_typed = email_key(delivery.email or "") == email_key(context.form["email"])
    is_wrong = may_correct and is_typed and "corrected" in context.form.errors
    return Way(delivery, steps, is_mailed and has_left, may_correct, is_wrong)
