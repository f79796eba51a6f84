"""Actions on an order: send mail again, correct an address, cancel, change the schedule or the claim-by date, show or print codes."""

from collections.abc import Sequence
from datetime import UTC, datetime

from markupsafe import Markup
from starlette.responses import Response

from largesse.base import clock
from largesse.base.cooperative import Steps, finish_soon
from largesse.base.errors import InvalidRequest, NotFound, TooManyRequests
from largesse.branding.model import Brand
from largesse.customers.access import is_own
from largesse.db.pool import Row
from largesse.lines.codes import IssuedCode
from largesse.lines.store import find_recipient_lines
from largesse.mail.recipients import Recipient, read_recipients
from largesse.mail.resending import MAX_CHOSEN, RESENT_TO_ALL_AFTER_H, count_unclaimed, resend_chosen
from largesse.mail.service import correct_address, resend_mail, resend_unclaimed
from largesse.orders import schedule
from largesse.orders.acts import cancel_order, cancel_recipient, read_receipt, read_recipient_codes
from largesse.orders.follow_ups import MAX_CLAIM_BY_DAYS
from largesse.orders.lookup import read_refundable
from largesse.web.console.context import RequestContext
from largesse.web.console.order import back, find, find_own, reference_of, refusal, show, view_of
from largesse.web.console.order_words import name_of
from largesse.web.console.send.preview import brand_of
from largesse.web.kit.pages import qr_code
from largesse.web.kit.query import Whole


async def send_again(context: RequestContext) -> Response:
    """Sends one recipient's mail again. Raises NotFound."""
    [(number, seen)] = list(_chosen(context).items())[:1] or [(0, None)]
    recipient, _ = await _recipient(context, number)
    try:
        await resend_mail(context.actor, reference_of(context), recipient.email or "", seen)
    except (InvalidRequest, TooManyRequests) as problem:
        return back(context, refusal(context, problem), number=recipient.number)
    said = context.say("The mail to %(to)s is sent again.", to=recipient.email)
    return back(context, said, number=recipient.number)


async def send_chosen_again(context: RequestContext) -> Response:
    """Sends mail again to the selected recipients. Raises NotFound."""
    numbers = _chosen(context)
    if not 0 < len(numbers) <= MAX_CHOSEN:
        said = context.say("Choose the recipients to mail again first, at most %(most)s.", most=MAX_CHOSEN)
        return back(context, said)
    done = await resend_chosen(context.actor, reference_of(context), numbers)
    said = context.ngettext("%(count)s mail leaves again.", "%(count)s mails leave again.", done.count)
    if done.left_out:
        out = context.ngettext(
            "%(count)s recipient was left out: claimed, cancelled, mailed too often or meanwhile, or the last mail has not left yet.",
            "%(count)s recipients were left out: claimed, cancelled, mailed too often or meanwhile, or the last mail has not left yet.",
            done.left_out,
        )
        said = f"{said} {out}" if done.count else out
    return back(context, said, number=min(numbers))


def _chosen(context: RequestContext) -> dict[int, int | None]:
    """Returns the numbers of the lines in the form, each with how often its mail had been sent again when the page was shown."""
    chosen = {}
    for typed in context.form.all("number"):
        number, _, seen = typed.partition("-")
        if (line := Whole().read(number)) is not None:
            chosen[line] = Whole().read(seen)
    return chosen


async def ask_sending_again(context: RequestContext) -> Response:
    """Asks whether to mail all recipients without a claim again. Shows how many there are and the last mail. Raises NotFound."""
    async with context.database.connection(context.person.scope) as connection:
        order = await find(context, connection)
        if order["delivery_mode"] != "send":
            raise NotFound("There is no mail of an order with that reference.")
        unclaimed = await count_unclaimed(connection, context.principal, order["reference"])
    return context.page("resend_all.html", order=order, unclaimed=unclaimed, pause_h=RESENT_TO_ALL_AFTER_H)


async def send_all_again(context: RequestContext) -> Response:
    """Sends mail again to all recipients without a claim. Raises NotFound."""
    count = await resend_unclaimed(context.actor, reference_of(context))
    said = context.say(
        "Nobody was mailed: to the same recipient, mail to all leaves every %(hours)s hours at most.",
        hours=RESENT_TO_ALL_AFTER_H,
    )
    if count:
        said = context.ngettext("%(count)s mail leaves again.", "%(count)s mails leave again.", count)
    return back(context, said)


async def correct(context: RequestContext) -> Response:
    """Corrects a recipient's address and sends the mail to it. Raises NotFound."""
    reference, old = reference_of(context), context.form["email"]
    corrected = context.form.email("corrected", is_new=True)
    if context.form.errors:
        return await show(context)
    try:
        await correct_address(context.actor, reference, old, corrected)
    except (InvalidRequest, TooManyRequests) as problem:
        context.form.error("corrected", refusal(context, problem))
        shown = await show(context)
        is_beside = b'id="corrected-error"' in bytes(shown.body)
        return shown if is_beside else back(context, context.form.errors["corrected"])
    said = context.say("The address is corrected, and the mail goes to %(email)s.", email=corrected)
    return back(context, said, number=context.form.number("number"))


async def ask_cancelling(context: RequestContext) -> Response:
    """Asks whether to cancel the unclaimed codes, and shows the refund. Raises NotFound."""
    async with context.database.connection(context.person.scope) as connection:
        order = await find_own(context, connection)
        unclaimed, account = await read_refundable(connection, order)
    return _ask_cancelling(context, order, unclaimed, account, recipient=None)


async def ask_cancelling_one(context: RequestContext) -> Response:
    """Asks whether to cancel the unclaimed codes of one recipient, and shows the refund. Raises NotFound."""
    recipient, order = await _recipient(context, context.number("number"))
    _, account = await context.read(read_refundable, order)
    return _ask_cancelling(context, order, recipient.open_codes, account, recipient=recipient)


def _ask_cancelling(
    context: RequestContext, order: Row, unclaimed: int, account: str | None, *, recipient: Recipient | None
) -> Response:
    return context.page(
        "cancel_order.html",
        order=order,
        unclaimed=unclaimed,
        back_minor=order["total_minor"] // order["code_count"] * unclaimed,
        account=account,
        recipient=recipient and name_of(context, recipient),
        number=recipient and recipient.number,
        view=view_of(context),
    )


async def cancel(context: RequestContext) -> Response:
    """Cancels the unclaimed codes. Raises NotFound."""
    done = await cancel_order(context.actor, context.principal, reference_of(context))
    said = context.say(
        "Codes cancelled: %(count)s. Refunded: %(amount)s.",
        count=done.voided_count,
        amount=context.language.amount(done.returned_minor, done.currency),
    )
    return back(context, said)


async def cancel_one(context: RequestContext) -> Response:
    """Cancels the unclaimed codes of one recipient. Raises NotFound."""
    number = context.number("number")
    recipient, _ = await _recipient(context, number)
    done = await cancel_recipient(context.actor, reference_of(context), number)
    said = context.say("Nothing was cancelled, as the gift was claimed: %(to)s.", to=name_of(context, recipient))
    if done.voided_count:
        said = context.say(
            "Cancelled: %(to)s. Refunded: %(amount)s.",
            to=name_of(context, recipient),
            amount=context.language.amount(done.returned_minor, done.currency),
        )
    return back(context, said, number=recipient.number)


async def change_schedule(context: RequestContext) -> Response:
    """Moves a scheduled order to another time, or to now. Raises NotFound."""
    form, at, seen = context.form, None, _seen(context)
    if form["when"] != "now" and (at := _new_time(context)) is None:
        return await show(context)
    try:
        due_at = await schedule.reschedule(context.actor, reference_of(context), seen=seen, at=at)
    except schedule.HasLeft:
        return back(context, context.say("The order has left already, or was cancelled: its time cannot be changed."))
    except schedule.ChangedMeanwhile as changed:
        said = context.say(
            "Somebody else has just changed the time: the order leaves on %(at)s. Nothing else was changed.",
            at=context.time(changed.due_at),
        )
        return back(context, said)
    except schedule.TooEarly:
        form.error("at", context.say("This time has passed. Choose a later one."))
        return await show(context)
    except schedule.AfterClaimBy:
        said = context.say(
            "Recipients would have less than a day until the claim-by date. Move that first, or choose an earlier time."
        )
        form.error("at", said)
        return await show(context)
    if at is None:
        return back(context, context.say("The mail leaves now."))
    return back(context, context.say("The order leaves on %(at)s.", at=context.time(due_at)))


def _new_time(context: RequestContext) -> datetime | None:
    """Returns the time in the form; None, with an error in the form, if it is wrong."""
    at = context.form.time("at", context.times_in)
    if at is None:
        context.form.error("at", context.say("Choose a day and a time."))
    elif at <= clock.now():
        context.form.error("at", context.say("This time has passed. Choose a later one."))
        return None
    return at


def _seen(context: RequestContext) -> datetime:
    """Returns the date that the page showed before the form changes it. Raises NotFound."""
    try:
        return datetime.fromisoformat(context.form["seen"]).astimezone(UTC)
    except (ValueError, OverflowError):
        raise NotFound("There is no such date.") from None


async def move_claim_by(context: RequestContext) -> Response:
    """Moves the claim-by date to the end of a later day. Raises NotFound."""
    form, seen = context.form, _seen(context)
    at = form.end_of_day("claim_by", context.times_in)
    if at is None:
        form.error("claim_by", context.say("Choose a day."))
        return await show(context)
    try:
        await schedule.move_date(context.actor, reference_of(context), seen=seen, at=at)
    except schedule.HasPassed:
        return back(context, context.say("The claim-by date has passed: it cannot be changed any more."))
    except schedule.ChangedMeanwhile as changed:
        said = context.say(
            "Somebody else has just changed the claim-by date to %(at)s. Nothing else was changed.",
            at=context.time(changed.due_at),
        )
        return back(context, said)
    except schedule.NotLater:
        form.error("claim_by", context.say("Choose a later day: recipients know the date they were given."))
    except schedule.TooLate:
        most = context.language.number(MAX_CLAIM_BY_DAYS)
        form.error("claim_by", context.say("Choose a day at most %(most)s days after the gifts leave.", most=most))
    if form.errors:
        return await show(context)
    return back(context, context.say("The gifts can be claimed until %(at)s.", at=context.time(at)))


async def show_link(context: RequestContext) -> Response:
    """Shows a recipient's claim link and PIN, after step-up, and records that. Raises NotFound, NotProved."""
    recipient, order = await _recipient(context, context.number("number"))
    services = context.services
    public_url = services.settings.public_url_of(context.person.environment)
    codes = await read_recipient_codes(context.actor, services.vault, public_url, order["reference"], recipient.number)
    if not codes:
        said = context.say("There is no link to copy: the gift was claimed or cancelled, or has not left yet.")
        return back(context, said, number=recipient.number)
    return context.page(
        "claim_links.html", order=order, codes=codes, recipient=name_of(context, recipient), view=view_of(context)
    )


async def ask_codes(context: RequestContext) -> Response:
    """Asks whether to show the codes of a batch again, after step-up. Raises NotFound, NotProved."""
    context.require_proof()
    async with context.database.connection(context.person.scope) as connection:
        order = await find(context, connection)
    if order["delivery_mode"] != "manual" or not is_own(
        context.principal, order["service_account_id"], order["user_id"]
    ):
        raise NotFound("There is no batch of codes with that reference.")
    said = context.say(
        "The codes and PINs of order %(reference)s are shown, and it is recorded that you read them.",
        reference=order["external_reference"] or order["reference"],
    )
    no = f"/app/orders/{order['reference']}"
    return context.page(
        "question.html", said=said, yes=(f"{no}/codes", context.say("Show the codes")), no=no, button=""
    )


async def show_codes(context: RequestContext) -> Response:
    """Shows the codes of a batch again, and records that. Raises NotFound."""
    async with context.database.connection(context.person.scope) as connection:
        order = await find(context, connection)
    if order["delivery_mode"] != "manual":
        raise NotFound("There is no batch of codes with that reference.")
    services = context.services
    public_url = services.settings.public_url_of(context.person.environment)
    receipt = await read_receipt(context.actor, context.principal, services.vault, public_url, order["reference"])
    return await code_sheet(context, order["from_name"], receipt.codes, await brand_of(context))


async def _recipient(context: RequestContext, number: int) -> tuple[Recipient, Row]:
    """Returns the recipient of line `number`, and the order, if the person may change it. Raises NotFound."""
    async with context.database.connection(context.person.scope) as connection:
        order = await find_own(context, connection)
        numbers = await find_recipient_lines(connection, order["customer_id"], order["id"], number)
        recipients = await read_recipients(connection, order)
    return next(one for one in recipients if one.numbers[0] == numbers[0]), order


MOST_QR_CODES = 100  # a longer sheet has no QR codes, because it would be megabytes large


async def code_sheet(
    context: RequestContext, sender: str | None, codes: Sequence[IssuedCode], brand: Brand
) -> Response:
    """Returns a page that prints codes, as slips for their recipients. Draws the QR codes in steps, so that other requests do not wait for them."""
    drawn = await finish_soon(_drawn(codes)) if len(codes) <= MOST_QR_CODES else [Markup()] * len(codes)
    slips = list(zip(codes, drawn, strict=True))
    return context.page("send/codes.html", brand=brand, sender=sender, slips=slips, most_qr_codes=MOST_QR_CODES)


def _drawn(codes: Sequence[IssuedCode]) -> Steps[list[Markup]]:
    drawn = []
    for one in codes:
        # The PIN is in the fragment, which browsers do not send to servers.
        drawn.append(qr_code(f"{one.redemption_url}#pin={one.pin}", mask=3))
        yield
    return drawn
