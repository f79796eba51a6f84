"""What pages and files say about orders: the names of orders, recipients and their states, and the timeline of an order with its claim-by date."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec
from babel.dates import format_timedelta

from largesse.base import clock
from largesse.base.i18n.languages import text
from largesse.base.zones import in_zone
from largesse.db.pool import Row
from largesse.mail.recipients import Progress, Recipient, RecipientState
from largesse.orders.history import OrderAct
from largesse.reports.listing import ListedOrder
from largesse.reports.sums import OrderState
from largesse.web.console.context import RequestContext
from largesse.web.console.form import DAY

# The states by which a list can be filtered.
STATES = {
    OrderState.SCHEDULED: text("Scheduled"),
    OrderState.BOUNCED: text("Bounced"),
    OrderState.WAITING: text("Unclaimed"),
    OrderState.CLAIMED: text("Claimed"),
    OrderState.CANCELLED: text("Cancelled"),
}
# The sources that have a name. API callers may use others.
SOURCES = {
    "web": text("Web"),
    "api": text("API"),
    "automation": text("Automation"),
    "campaign": text("Campaign"),
    "import": text("Import"),
    "file": text("Import"),
}
# Why a parcel came back.
RETURN_REASONS = {
    "address": text("The address is wrong or unknown"),
    "absent": text("Nobody took it in or collected it"),
    "refused": text("The recipient refused it"),
    "damaged": text("It was damaged"),
    "other": text("Another reason"),
}


class Shown(NamedTuple):
    """A state on a page: its kind, which says whether somebody must act, and its name."""

    kind: str  # `still`, `good`, `waiting` (somebody should act) or `bad` (it failed)
    word: str


def state_of_order(context: RequestContext, order: ListedOrder) -> Shown:
    """Returns the state of an order: neutral unless somebody has to act."""
    if order.state == OrderState.CANCELLED:
        return Shown("still", context.say("Cancelled"))
    if order.state == OrderState.CLAIMED:
        return Shown("good", context.say("Claimed, rest cancelled") if order.cancelled else context.say("Claimed"))
    if order.state == OrderState.SCHEDULED:
        return Shown("still", context.say("Scheduled"))
    if order.state == OrderState.BOUNCED:
        if order.bounced >= order.recipients > 1:
            return Shown("bad", context.say("All mail bounced"))
        return Shown("waiting", context.ngettext("%(count)s bounced", "%(count)s bounced", order.bounced))
    if order.mail == "held":
        return Shown("waiting", context.say("Mail on hold"))
    if order.mail == "pending":
        return Shown("still", context.say("Sending"))
    if order.claimed:
        return Shown("still", context.say("Partly claimed"))
    return Shown("still", context.say("Sent"))


def headline(context: RequestContext, order: ListedOrder) -> str:
    """Returns the campaign or the recipients of an order as a text. For codes: the customer's reference, or the end of ours."""
    if order.campaign:
        return order.campaign
    if order.recipient is None or order.is_batch:
        return order.external_reference or f"…{order.reference[-6:]}"
    if not order.others:
        return order.recipient
    return context.ngettext(
        "%(name)s and %(count)s other", "%(name)s and %(count)s others", order.others, name=order.recipient
    )


def source_of(context: RequestContext, source: str) -> str:
    """Returns the name of a source."""
    return context.say(SOURCES.get(source, source))


# The states of a recipient's gift.
RECIPIENT_STATES = {
    RecipientState.CANCELLED: Shown("still", text("Cancelled")),
    RecipientState.EXPIRED: Shown("still", text("Expired")),
    RecipientState.CLAIMED: Shown("good", text("Claimed")),
    RecipientState.BOUNCED: Shown("waiting", text("Bounced")),
    RecipientState.FAILED: Shown("bad", text("Not delivered")),
    RecipientState.HELD: Shown("waiting", text("Mail on hold")),
    RecipientState.SCHEDULED: Shown("still", text("Scheduled")),
    RecipientState.SENDING: Shown("still", text("Sending")),
    RecipientState.PARTLY: Shown("still", text("Partly claimed")),
    RecipientState.OPENED: Shown("still", text("Opened, not claimed")),
    RecipientState.MAILED: Shown("still", text("Mailed")),
    RecipientState.ISSUED: Shown("still", text("Not opened")),
}
RECIPIENT_FILTERS = {
    "": text("All"),
    "unclaimed": text("Unclaimed"),
    "problems": text("Needs attention"),
    "opened": text("Opened, not claimed"),
    "claimed": text("Claimed"),
    "cancelled": text("Cancelled"),
}
# Why an operation on mail was refused: the detail of its error, and the text that pages show.
REFUSALS = {
    "`email` is not a recipient of this order.": text("Nobody at that address is a recipient of this order."),
    "`email` stands for a recipient whose data was erased.": text("The data of this recipient was erased."),
    "Somebody at that address is a recipient of this order already.": text(
        "Somebody at that address is a recipient of this order already."
    ),
    "This recipient has claimed the gift.": text("This recipient has claimed the gift."),
    "The mail to this recipient is just leaving. Try again in a minute.": text(
        "The mail to this recipient is just leaving. Try again in a minute."
    ),
    "The codes of this recipient were cancelled.": text("The gift of this recipient was cancelled."),
    "The order's mail has not left yet.": text("The mail of this order has not left yet."),
    "The mail to this recipient has not left yet.": text("The mail to this recipient has not left yet."),
    "The mail to this recipient was sent again meanwhile.": text(
        "The mail to this recipient was sent again after you opened the page. It was not sent a second time."
    ),
}


def name_of(context: RequestContext, recipient: Recipient) -> str:
    """Returns the name of a recipient, otherwise their address; for a code of a batch, its number."""
    if recipient.is_erased:
        return context.say("Erased recipient")
    return recipient.name or recipient.email or context.say("Code %(number)s", number=recipient.number)


class Happening(NamedTuple):
    """Something that happened to an order, or will: an icon, a sentence, and when."""

    icon: str
    said: str
    at: datetime


def timeline_of(
    context: RequestContext,
    order: Row,
    listed: ListedOrder,
    acts: Sequence[OrderAct],
    progress: Progress,
    claims: tuple[datetime | None, datetime | None],
    more: Sequence[Happening],
) -> list[Happening]:
    """Returns the timeline. `claims` are the times of the first and the last claim. `more` are further entries."""
    found = [*_planned(context, order), *_mail(context, progress), *_claims(context, order, progress, claims)]
    found += [*(happening_of(context, act) for act in acts), *more]
    by = listed.placed_by or context.say("Somebody")
    found.append(Happening("shopping-bag", context.say("%(by)s placed the order", by=by), order["created_at"]))
    return sorted(found, key=lambda one: one.at, reverse=True)


def _planned(context: RequestContext, order: Row) -> Iterator[Happening]:
    at = order["scheduled_for"]
    if at is not None and at > clock.now() and order["delivery_mode"] == "send":
        yield Happening("calendar-clock", context.say("The mail leaves"), at)


def _mail(context: RequestContext, progress: Progress) -> Iterator[Happening]:
    if progress.last_mail_at is None:
        return
    said = context.ngettext("%(count)s mail left", "%(count)s mails left", progress.mailed)
    if progress.refused:
        bounced = context.ngettext("%(count)s bounced", "%(count)s bounced", progress.refused)
        said = f"{said}, {bounced}"
    yield Happening("mail", said, progress.last_mail_at)


def _claims(
    context: RequestContext, order: Row, progress: Progress, claims: tuple[datetime | None, datetime | None]
) -> Iterator[Happening]:
    first, last = claims
    if first is None or last is None:
        return
    said = context.ngettext("%(count)s gift claimed", "%(count)s gifts claimed", progress.claimed)
    passed = first - (order["scheduled_for"] or order["created_at"])
    if passed.total_seconds() > 0:
        after = format_timedelta(passed, locale=context.language.locale)
        said = context.say("%(claims)s, the first after %(after)s", claims=said, after=after)
    yield Happening("circle-check", said, last)


def happening_of(context: RequestContext, act: OrderAct) -> Happening:
    """Returns what somebody did with an order, as a sentence."""
    by, to = act.by or context.say("Somebody"), act.recipient
    if act.act == "cancel":
        return Happening("ban", _cancelled(context, act, by), act.at)
    if act.act == "correct":
        said = context.say("%(by)s corrected the address of a recipient", by=by)
        if to:
            said = context.say("%(by)s corrected the address of %(to)s", by=by, to=to)
        if to and act.was_email and act.email:
            said = context.say(
                "%(by)s corrected the address of %(to)s from %(was)s to %(email)s",
                by=by,
                to=to,
                was=act.was_email,
                email=act.email,
            )
        return Happening("pencil", said, act.at)
    if act.act == "extend":
        was, at = (context.time(one) for one in (act.was_due_at or act.at, act.due_at or act.at))
        said = context.say("%(by)s moved the claim-by date from %(was)s to %(at)s", by=by, was=was, at=at)
        return Happening("calendar-clock", said, act.at)
    if act.act == "schedule":
        return Happening("calendar-clock", _rescheduled(context, act, by), act.at)
    if act.act == "read":
        said = context.say("%(by)s read the codes again", by=by)
        if to:
            said = context.say("%(by)s copied the claim link of %(to)s", by=by, to=to)
        return Happening("key-round", said, act.at)
    if act.times == 1:
        said = context.say("%(by)s sent the mail to %(to)s again", by=by, to=to or context.say("a recipient"))
        return Happening("send", said, act.at)
    said = context.ngettext("%(by)s sent %(count)s mail again", "%(by)s sent %(count)s mails again", act.times, by=by)
    return Happening("send", said, act.at)


def _cancelled(context: RequestContext, act: OrderAct, by: str) -> str:
    if act.recipient:
        return context.ngettext(
            "%(by)s cancelled %(count)s gift: %(to)s",
            "%(by)s cancelled %(count)s gifts: %(to)s",
            act.codes or 1,
            by=by,
            to=act.recipient,
        )
    if act.codes is None:
        return context.say("%(by)s cancelled the unclaimed gifts", by=by)
    return context.ngettext("%(by)s cancelled %(count)s gift", "%(by)s cancelled %(count)s gifts", act.codes, by=by)


def _rescheduled(context: RequestContext, act: OrderAct, by: str) -> str:
    if act.due_at is None or act.was_due_at is None or act.due_at <= act.at:
        return context.say("%(by)s sent the scheduled order at once", by=by)
    was, at = (context.time(one) for one in (act.was_due_at, act.due_at))
    return context.say("%(by)s moved the order from %(was)s to %(at)s", by=by, was=was, at=at)


class Claiming(msgspec.Struct, frozen=True):
    """The claim-by date of an order. `lapses` are the times at which unclaimed codes were cancelled, how many, and the amount refunded."""

    at: datetime
    seen: str
    day: str  # the date as the form field shows it
    is_open: bool  # the date is in the future, and there are unclaimed codes
    lapses: list[tuple[datetime, int, str]]


def claiming_of(
    context: RequestContext,
    at: datetime | None,
    lapses: Sequence[tuple[datetime, int]],
    order: Row,
    listed: ListedOrder,
) -> Claiming | None:
    """Returns the claim-by date of an order; None for an order without one."""
    if at is None:
        return None
    code_minor = order["total_minor"] // order["code_count"]
    returned = [(when, codes, context.language.amount(code_minor * codes, order["currency"])) for when, codes in lapses]
    day = in_zone(at, context.zone).strftime(DAY)
    return Claiming(at, at.isoformat(), day, listed.is_open and at > clock.now(), returned)


def said_of(context: RequestContext, claiming: Claiming | None) -> list[Happening]:
    """Returns the timeline's entries about the date."""
    if claiming is None:
        return []
    said = [
        Happening(
            "undo-2",
            context.ngettext(
                "%(count)s gift was not claimed in time: %(amount)s came back",
                "%(count)s gifts were not claimed in time: %(amount)s came back",
                codes,
                amount=amount,
            ),
            at,
        )
        for at, codes, amount in claiming.lapses
    ]
    if claiming.is_open:
        said.append(
            Happening(
                "undo-2", context.say("What nobody has claimed is cancelled, and the money comes back"), claiming.at
            )
        )
    return said


def reminders_of(context: RequestContext, reminded: Sequence[tuple[datetime, int]]) -> list[Happening]:
    """Returns the timeline's entries about reminders, one for each kind: when the first was sent, and how many were."""
    return [
        Happening("bell", context.ngettext("%(count)s reminder left", "%(count)s reminders left", mails), at)
        for at, mails in reminded
    ]


def campaign_end_of(context: RequestContext, order: Row, refunds: Sequence[tuple[datetime, int]]) -> list[Happening]:
    """Returns one entry about the gifts of a campaign that nobody took, even if they were refunded in several steps."""
    gifts = sum(count for _, count in refunds)
    if not gifts:
        return []
    said = context.ngettext(
        "%(count)s gift was left at the end of the campaign: %(amount)s came back",
        "%(count)s gifts were left at the end of the campaign: %(amount)s came back",
        gifts,
        amount=context.language.amount(order["total_minor"] // order["code_count"] * gifts, order["currency"]),
    )
    return [Happening("undo-2", said, refunds[-1][0])]
