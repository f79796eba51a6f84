"""Gifts of all customers in the back office: how to find one, its steps from the order to the voucher, and the actions of support, which need a reason.

The searched text is posted and not logged, so that it is in no web address. A searched code is not shown again. The pages of a gift never read
a code, PIN, link or voucher number.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from starlette.responses import Response

from largesse.base.errors import InvalidRequest, NotFound, TooManyRequests
from largesse.base.i18n.languages import text
from largesse.base.throttle import Rate, Throttle
from largesse.customers.actor import Actor
from largesse.customers.customer_views import LONGEST_REASON, SHORTEST_REASON, read_reason
from largesse.customers.principal import Principal, staff_principal
from largesse.customers.staff_roles import StaffRight
from largesse.db.pool import Row
from largesse.db.scope import OFFICE
from largesse.drafts.mailboxes import read_mailboxes
from largesse.fulfilment.shipments import Shipped, read_shipment
from largesse.lines.states import LineKey
from largesse.mail.recipients import Recipient, add_times, read_recipients
from largesse.mail.service import correct_address, resend_mail
from largesse.orders.acts import cancel_recipient
from largesse.orders.ids import is_end_of_reference
from largesse.orders.lookup import find_order
from largesse.reports.across import LONGEST_SOUGHT, MOST_FOUND, By, FoundOrder, record_look, search_gifts
from largesse.web.console.order import STEPS
from largesse.web.console.order_words import RECIPIENT_STATES
from largesse.web.office.context import OfficeContext
from largesse.web.office.customers import ENVIRONMENT_NAMES, acting_for, environment_of, named

SEARCHES_A_MINUTE = 30  # for one member of staff, in each serving process
_searches: Throttle[int] = Throttle(Rate(SEARCHES_A_MINUTE, 60.0))
_BY = {
    By.ADDRESS: text("E-mail address"),
    By.REFERENCE: text("Order reference"),
    By.CODE: text("Code"),
    By.TRACKING: text("Tracking number"),
}
_PAGE = 50


class Step(NamedTuple):
    """A step of a gift, and its time."""

    said: str
    at: datetime


class Gift(NamedTuple):
    """A recipient's gift with its order and its parcel."""

    order: Row
    recipient: Recipient
    shipment: Shipped | None


async def ask(
    context: OfficeContext,
    *,
    status: int | None = None,
    found: Sequence[FoundOrder] | None = None,
    is_many: bool = False,
    is_end: bool = False,
) -> Response:
    """Shows the search. `is_end` means that the last six characters of a reference were searched for."""
    if context.form["by"] == By.CODE:  # the page never shows a searched code again
        errors = context.form.errors
        context.form = context.form.without(("sought",))
        context.form.errors = errors
    return context.page(
        "find.html",
        status=status,
        kinds=named(context, _BY),
        most=LONGEST_SOUGHT,
        environments=dict(named(context, ENVIRONMENT_NAMES)),
        found=found,
        is_many=is_many,
        is_end=is_end,
    )


async def search(context: OfficeContext) -> Response:
    """Shows the results of a search."""
    form = context.form
    by, sought = form.choice("by", tuple(By)), form.text("sought", LONGEST_SOUGHT)
    if form.errors:
        return await ask(context)
    if by == By.ADDRESS and len(listed := read_mailboxes(sought) or []) == 1:  # pasted with its name from a mail
        sought = listed[0][1]
    try:
        _searches.spend(context.person.person_id, "too many searches")
        found = await search_gifts(context.actor, context.services.vault, By(by), sought)
    except TooManyRequests as refused:
        wait_s = round(refused.retry_after_s or 1)
        form.error("sought", context.say("Too many searches. Try again in %(seconds)s seconds.", seconds=wait_s))
        return await ask(context, status=429)
    except InvalidRequest:
        form.error("sought", context.say("Type a code of 17 letters and digits, or the link of a gift."))
        return await ask(context)
    is_end = by == By.REFERENCE and is_end_of_reference(sought.strip().removeprefix("…").upper())
    return await ask(context, found=found, is_many=len(found) >= MOST_FOUND, is_end=is_end)


async def order(context: OfficeContext) -> Response:
    """Shows the recipients of an order, and records that. Raises NotFound."""
    page = max(context.parameters.number("page") or 1, 1)
    async with context.database.connection(OFFICE) as connection:
        found = await find_order(connection, _principal(context), _reference(context))
        recipients = await read_recipients(connection, found)
    await record_look(_actor(context), found["reference"], None)
    return context.page(
        "gift_order.html",
        order=found,
        recipients=recipients[(page - 1) * _PAGE : page * _PAGE],
        states=RECIPIENT_STATES,
        here_is=_order_path(context),
        environment=context.say(ENVIRONMENT_NAMES[environment_of(context)]),
        older=context.here(page=page + 1) if len(recipients) > page * _PAGE else None,
        newer=context.here(page=page - 1) if page > 1 else None,
    )


async def show(context: OfficeContext) -> Response:
    """Shows a gift and its steps, and records that. Raises NotFound."""
    gift = await _gift(context)
    recipient = gift.recipient
    await record_look(_actor(context), gift.order["reference"], recipient.number)
    may_act = context.person.may(StaffRight.DELIVERIES)
    is_open = bool(recipient.open_codes) and not recipient.is_erased
    has_mail = recipient.mail is not None and recipient.email is not None
    return context.page(
        "gift.html",
        order=gift.order,
        recipient=recipient,
        state=RECIPIENT_STATES[recipient.state],
        steps=_steps(context, gift),
        shipment=gift.shipment,
        can_correct=may_act and is_open and has_mail and not recipient.claimed,
        can_resend=may_act and is_open and has_mail and recipient.has_left,
        can_cancel=may_act and bool(recipient.open_codes),
        environment=context.say(ENVIRONMENT_NAMES[environment_of(context)]),
        here_is=_here(context),
        order_path=_order_path(context),
        least=SHORTEST_REASON,
        most=LONGEST_REASON,
    )


async def correct(context: OfficeContext) -> Response:
    """Corrects the recipient's address, and sends the mail to it. Raises NotFound."""
    form = context.form
    corrected = form.email("corrected", is_new=True)
    if (actor := _with_reason(context)) is None or form.errors:
        return await show(context)
    gift = await _gift(context)
    try:
        await correct_address(actor, gift.order["reference"], gift.recipient.email or "", corrected)
    except (InvalidRequest, TooManyRequests) as problem:
        form.error("corrected", _refusal(context, problem))
        return await show(context)
    return context.see(_here(context), context.say("The address is corrected, and the mail goes there."))


async def resend(context: OfficeContext) -> Response:
    """Sends the recipient's mail again. Raises NotFound."""
    if (actor := _with_reason(context, "resend_reason")) is None:
        return await show(context)
    gift = await _gift(context)
    try:
        await resend_mail(actor, gift.order["reference"], gift.recipient.email or "")
    except (InvalidRequest, TooManyRequests) as problem:
        context.form.error("resend_reason", _refusal(context, problem))
        return await show(context)
    return context.see(_here(context), context.say("The mail leaves again."))


async def cancel(context: OfficeContext) -> Response:
    """Cancels and refunds the recipient's unclaimed codes. Raises NotFound."""
    if (actor := _with_reason(context, "cancel_reason")) is None:
        return await show(context)
    done = await cancel_recipient(actor, _reference(context), context.number("number"))
    said = context.say("Nothing was cancelled: the gift was claimed, or cancelled before.")
    if done.voided_count:
        refunded = context.language.amount(done.returned_minor, done.currency)
        said = context.say("The gift is cancelled. Refunded: %(amount)s.", amount=refunded)
    return context.see(_here(context), said)


def _steps(context: OfficeContext, gift: Gift) -> list[Step]:
    """Returns the steps of a gift, oldest first."""
    steps = [Step(context.say("Ordered"), gift.order["created_at"])]
    if gift.recipient.sent_at is not None:
        steps.append(Step(context.say("Mailed"), gift.recipient.sent_at))
    steps += [
        Step(context.say(said), gift.recipient.times[event])
        for event, said in STEPS.items()
        if event in gift.recipient.times
    ]
    if gift.shipment is not None and gift.shipment.shipped_at is not None:
        steps.append(Step(context.say("Parcel shipped"), gift.shipment.shipped_at))
    return sorted(steps, key=lambda step: step.at)


async def _gift(context: OfficeContext) -> Gift:
    """Returns the gift of the path. Raises NotFound."""
    number = context.number("number")
    async with context.database.connection(OFFICE) as connection:
        found = await find_order(connection, _principal(context), _reference(context))
        recipient = next((one for one in await read_recipients(connection, found) if number in one.numbers), None)
        if recipient is None:
            raise NotFound("The order has no such line.")
        await add_times(connection, found, [recipient])
        shipment = await read_shipment(connection, LineKey(context.number("customer"), found["id"], number))
        return Gift(found, recipient, shipment)


def _with_reason(context: OfficeContext, field: str = "reason") -> Actor | None:
    """Returns the member of staff as an actor with the reason in the form; None, with an error in the form, if it is too short or too long."""
    try:
        return acting_for(context, environment_of(context), read_reason(context.form[field]))
    except InvalidRequest:
        said = context.say(
            "Give a reason of %(least)s to %(most)s characters.", least=SHORTEST_REASON, most=LONGEST_REASON
        )
        context.form.error(field, said)
        return None


def _refusal(context: OfficeContext, problem: InvalidRequest | TooManyRequests) -> str:
    if isinstance(problem, TooManyRequests):
        return context.say("This recipient's mail was sent again too often. Try again tomorrow.")
    return context.say(
        "This cannot be done now: the gift was claimed or cancelled, somebody else has that address, or the mail is just leaving."
    )


def _actor(context: OfficeContext) -> Actor:
    return acting_for(context, environment_of(context))


def _principal(context: OfficeContext) -> Principal:
    return staff_principal(context.number("customer"), environment_of(context))


def _reference(context: OfficeContext) -> str:
    reference: str = context.request.path_params["reference"]
    return reference


def _order_path(context: OfficeContext) -> str:
    return f"/office/gifts/{context.number('customer')}/{environment_of(context)}/{_reference(context)}"


def _here(context: OfficeContext) -> str:
    return f"{_order_path(context)}/{context.number('number')}"
