"""Names of orders and recipients, and of their states, for pages and files."""

from typing import NamedTuple

from largesse.base.i18n.languages import text
from largesse.mail.recipients import Recipient, RecipientState
from largesse.reports.listing import ListedOrder
from largesse.reports.sums import OrderState
from largesse.web.console.context import RequestContext

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
