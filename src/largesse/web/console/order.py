"""The page of one order: its recipients with the progress of each gift, its money and its timeline. Other pages of an order use its functions to find the order."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from urllib.parse import urlencode

import msgspec
from starlette.responses import Response

from largesse.base.email import email_key
from largesse.base.errors import InvalidRequest, NotFound, TooManyRequests
from largesse.base.i18n.languages import text
from largesse.base.zones import in_zone
from largesse.campaigns.store import find_by_order, list_cancellations
from largesse.customers.access import is_own
from largesse.customers.roles import Reach, Right
from largesse.db.pool import Connection, Row
from largesse.fulfilment.parcels import list_back
from largesse.ledger.corrections_store import list_refunds
from largesse.ledger.own_accounts import find_own_accounts
from largesse.ledger.payment_sources import OnInvoice, payment_source
from largesse.ledger.statements import StatementEntry, order_entries
from largesse.ledger.store import list_seen_accounts
from largesse.lines.store import read_claim_times
from largesse.mail.recipients import (
    Progress,
    Recipient,
    RecipientState,
    add_times,
    choose,
    progress_of,
    read_recipients,
)
from largesse.mail.resending import MAX_RESENDS_A_DAY
from largesse.notes.service import notes_of_order
from largesse.orders.claim_by_store import list_lapses, list_reminded, read_claim_by, read_reminder_days
from largesse.orders.history import MOST_ACTS, OrderAct, list_acts, list_cancelled
from largesse.orders.lookup import find_order
from largesse.orders.options import OPTIONS
from largesse.orders.order import is_of_campaign
from largesse.reports.filters import Position
from largesse.reports.listing import ListedOrder, read_listed
from largesse.web.console import order_words
from largesse.web.console.context import RequestContext
from largesse.web.console.form import LOCAL
from largesse.web.console.order_words import RETURN_REASONS, Claiming, Happening
from largesse.web.console.words import Names, StateNames
from largesse.web.kit.problems import spell_name
from largesse.webhooks.delivery_store import list_order_webhooks

AT_ONCE = 50  # recipients on a page
_MOST_REFUNDS = 100  # the page shows the entries of this many refunds, the newest
STEPS = {
    "opened": text("Opened"),
    "claimed": text("Claimed"),
    "chosen": text("Chosen"),
    "fulfilled": text("Fulfilled"),
    "expired": text("Expired"),
    "lapsed": text("Not claimed in time"),
    "cancelled": text("Cancelled"),
}
DELIVERIES = StateNames(
    {
        "pending": ("still", text("Pending")),
        "delivered": ("good", text("Delivered")),
        "dropped": ("bad", text("Refused")),
        "exhausted": ("bad", text("Given up")),
        "cancelled": ("still", text("Cancelled")),
    }
)
_SHOWN = {"wrapping_key", "from_name", "message"}  # options that the page shows elsewhere, or not at all
ENTRIES = Names({"order": text("Order"), "refund": text("Refund"), "correction": text("Correction")})
_COLUMNS = (
    *(text("Number"), text("Name"), text("E-mail address"), text("Codes"), text("Codes claimed")),
    *(text("Codes cancelled"), text("State"), text("Mailed at (UTC)"), text("Why it was not delivered")),
)


class RecipientRow(msgspec.Struct, frozen=True):
    """A recipient on the page, with the actions that the person may take."""

    recipient: Recipient
    steps: list[tuple[str, datetime]]
    may_resend: bool
    may_correct: bool
    may_copy: bool
    may_cancel: bool
    is_edited: bool  # the row shows the form that corrects the address
    notes: list[str]  # the recipient's thank-you notes
    back: list[tuple[datetime, str]]  # when parcels came back, and why


class _Read(msgspec.Struct, frozen=True):
    """The data of the page."""

    order: Row
    listed: ListedOrder
    recipients: list[Recipient]
    acts: list[OrderAct]
    has_more_acts: bool  # whether there are more than MOST_ACTS
    claims: tuple[datetime | None, datetime | None]
    entries: list[StatementEntry]
    has_more_refunds: bool  # whether there are more than _MOST_REFUNDS
    corrected_minor: int  # refunded by corrections
    claim_by: datetime | None
    lapses: list[tuple[datetime, int]]  # when codes lapsed, and how many
    reminder_days: list[int]
    reminded: list[tuple[datetime, int]]  # when reminders were sent, and how many
    campaign: tuple[int, str] | None  # the id and name of the campaign that gives away the order's gifts
    campaign_refunds: list[tuple[datetime, int]]  # when the end of the campaign cancelled gifts, and how many
    notes: dict[int, str]  # the thank-you notes, by line
    back: dict[int, tuple[datetime, str]]  # when parcels came back, and why, by line


async def show(context: RequestContext) -> Response:
    """Shows an order. Raises NotFound, also for an order that the person may not see."""
    person, view = context.person, view_of(context)
    async with context.database.connection(person.scope) as connection:
        read = await _read(context, connection)
        listed = choose(read.recipients, words=view.words, state=view.state, page=view.page, at_once=AT_ONCE)
        await add_times(connection, read.order, listed.recipients)
        sees_balances = await _sees_balances(context, connection, read.order)
        order = read.order
        webhooks = await list_order_webhooks(connection, context.principal, order["id"], order["created_at"])
    acts = may_act(context, order)
    rows = [_row(context, one, read, acts=acts, edited=view.edited) for one in listed.recipients]
    progress = progress_of(read.recipients)
    claiming = order_words.claiming_of(context, read.claim_by, read.lapses, order, read.listed)
    scheduled = read.listed.state == "scheduled" and order["scheduled_for"]
    return context.page(
        "order.html",
        order=order,
        one=read.listed,
        view=view,
        listed=listed,
        rows=rows,
        figures=_figures(context, order, read.recipients, progress),
        filters=order_words.RECIPIENT_FILTERS,
        recipient_states=order_words.RECIPIENT_STATES,
        called=lambda recipient: order_words.name_of(context, recipient),
        headline=lambda one: order_words.headline(context, one),
        state_of=lambda one: order_words.state_of_order(context, one),
        source=order_words.source_of(context, order["source"]),
        more_texts={spell_name(name): order[name] for name in OPTIONS if name not in _SHOWN and order[name]},
        timeline=_timeline(context, read, progress, claiming),
        claiming=claiming,
        campaign=read.campaign,
        sees_campaigns=person.may(Right.SEND),
        reminder_days=read.reminder_days,
        refunded_minor=order["total_minor"] // order["code_count"] * read.listed.cancelled + read.corrected_minor,
        unclaimed=sum(one.open_codes > 0 and one.has_left for one in read.recipients),
        entries=read.entries,
        sees_balances=sees_balances,
        webhooks=webhooks,
        may_act=acts,
        may_read_codes=acts
        and read.listed.is_batch
        and not is_of_campaign(read.order)
        and person.may(Right.READ_CODES),
        may_export=person.may(Right.MOVE_FUNDS),
        scheduled=scheduled,
        seen=scheduled and scheduled.isoformat(),
        scheduled_local=scheduled and in_zone(scheduled, context.zone).strftime(LOCAL),
        entry_words=ENTRIES,
        most_acts=MOST_ACTS if read.has_more_acts else None,
        most_refunds=_MOST_REFUNDS if read.has_more_refunds else None,
        deliveries=DELIVERIES,
        mailbox=_mailbox(context),
    )


def _timeline(context: RequestContext, read: _Read, progress: Progress, claiming: Claiming | None) -> list[Happening]:
    more = [
        *order_words.said_of(context, claiming),
        *order_words.reminders_of(context, read.reminded),
        *order_words.campaign_end_of(context, read.order, read.campaign_refunds),
    ]
    return order_words.timeline_of(context, read.order, read.listed, read.acts, progress, read.claims, more)


async def _read(context: RequestContext, connection: Connection) -> _Read:
    customer_id = context.person.customer_id
    order = await find(context, connection)
    [listed] = await read_listed(connection, customer_id, [Position(order["created_at"], order["id"])])
    acts = await list_acts(connection, customer_id, order["id"])
    key = (customer_id, order["id"])
    claim_by = await read_claim_by(connection, key)
    lapses = await list_lapses(connection, key) if claim_by else []
    refunds = await list_refunds(connection, customer_id, order["reference"])
    known = {*await list_cancelled(connection, *key), *(at for at, _ in lapses)}
    campaign, ended = None, []
    if is_of_campaign(order):
        campaign = await find_by_order(connection, customer_id, order["reference"])
        ended = [(at, gifts) for at, gifts in await list_cancellations(connection, key) if at not in known]
    moments = [order["created_at"], *sorted(known)[-_MOST_REFUNDS:], *(at for at, _ in [*ended, *refunds])]
    own = await find_own_accounts(connection, customer_id, order["environment"], order["currency"])
    payer_id = payment_source(order["account_id"]).payer_id(own["receivable"])
    return _Read(
        order=order,
        listed=listed,
        recipients=await read_recipients(connection, order),
        acts=acts[:MOST_ACTS],
        has_more_acts=len(acts) > MOST_ACTS,
        claims=await read_claim_times(connection, *key),
        claim_by=claim_by,
        lapses=lapses,
        reminder_days=await read_reminder_days(connection, key),
        reminded=await list_reminded(connection, key),
        campaign=campaign,
        campaign_refunds=ended,
        notes=await notes_of_order(connection, context.services.vault, *key),
        back=await list_back(connection, *key),
        entries=await order_entries(connection, customer_id, payer_id, order["id"], moments),
        has_more_refunds=len(known) > _MOST_REFUNDS,
        corrected_minor=sum(minor for _, minor in refunds),
    )


def _row(context: RequestContext, one: Recipient, read: _Read, *, acts: bool, edited: int | None) -> RecipientRow:
    steps = [(context.say(word), one.times[event]) for event, word in STEPS.items() if event in one.times]
    is_open = acts and one.open_codes > 0
    is_reached = is_open and one.email is not None and not one.is_erased
    may_correct = is_reached and not one.claimed
    is_wrong = "corrected" in context.form.errors and email_key(one.email or "") == email_key(context.form["email"])
    return RecipientRow(
        recipient=one,
        steps=steps,
        may_resend=is_reached and one.has_left,
        may_correct=may_correct,
        may_copy=is_open
        and one.state is not RecipientState.SCHEDULED
        and not is_of_campaign(read.order)
        and context.person.may(Right.READ_CODES),
        may_cancel=is_open,
        is_edited=may_correct and (is_wrong or one.number == edited),
        notes=[read.notes[number] for number in one.numbers if number in read.notes],
        back=[(at, RETURN_REASONS[why]) for at, why in (read.back[at] for at in one.numbers if at in read.back)],
    )


def _figures(
    context: RequestContext, order: Row, recipients: Sequence[Recipient], progress: Progress
) -> list[tuple[str, int, str]]:
    """Returns the figures at the top of the page: label, number, and its share of all or how many mails bounced."""
    codes = order["code_count"]
    figures = [
        (context.say("Opened"), progress.opened, _share(context, progress.opened, codes)),
        (context.say("Claimed"), progress.claimed, _share(context, progress.claimed, codes)),
        (context.say("Fulfilled"), progress.fulfilled, _share(context, progress.fulfilled, codes)),
    ]
    if order["delivery_mode"] != "send":
        return [(context.say("Codes"), codes, ""), *figures]
    note = _share(context, progress.mailed, len(recipients))
    if progress.refused:
        note = context.ngettext("%(count)s bounced", "%(count)s bounced", progress.refused)
    return [(context.say("Mailed"), progress.mailed, note), *figures]


def _share(context: RequestContext, part: int, whole: int) -> str:
    return context.language.percent(part / whole)


async def _sees_balances(context: RequestContext, connection: Connection, order: Row) -> bool:
    """Returns whether the person may see the balances of the paying account."""
    person, own = context.person, context.person.if_only_own(Right.SEE_FUNDS)
    if own is None or isinstance(payment_source(order["account_id"]), OnInvoice):
        return person.may(Right.SEE_FUNDS)
    seen = await list_seen_accounts(connection, context.customer, user_id=own)
    return order["account_id"] in {account.id for account in seen}


def _mailbox(context: RequestContext) -> str | None:
    """Returns the address of the test mailbox; None in live mode outside the demo."""
    settings, environment = context.services.settings, context.person.environment
    if environment == "staging" or context.services.captures:
        return f"{settings.public_url_of(environment)}/mailbox"
    return None


async def download(context: RequestContext) -> Response:
    """Sends the recipients of an order with the state of their gifts as a CSV file. Raises NotFound."""
    async with context.database.connection(context.person.scope) as connection:
        order = await find(context, connection)
    columns = [
        *(context.say(one) for one in _COLUMNS),
        *(f"{context.say(step)} (UTC)" for step in STEPS.values()),
        context.say("Thank-you notes"),
    ]
    return await context.csv(f"{order['reference']}-recipients.csv", columns, _lines(context, order))


async def _lines(context: RequestContext, order: Row) -> AsyncIterator[Sequence[object]]:
    async with context.database.connection(context.person.scope) as connection:
        recipients = await read_recipients(connection, order)
        await add_times(connection, order, recipients)
        notes = await notes_of_order(connection, context.services.vault, order["customer_id"], order["id"])
    for one in recipients:
        yield (
            one.number,
            one.name,
            None if one.is_erased else one.email,
            len(one.numbers),
            one.claimed,
            one.cancelled,
            context.say(order_words.RECIPIENT_STATES[one.state].word),
            context.instant(one.sent_at),
            one.reason,
            *(context.instant(one.times.get(event)) for event in STEPS),
            "\n\n".join(notes[number] for number in one.numbers if number in notes),
        )


class View(msgspec.Struct, frozen=True):
    """The recipients that the page lists: search, filter and page number, from the address."""

    words: str
    state: str
    page: int
    edited: int | None  # the first line of the recipient whose address is being corrected

    @property
    def query(self) -> str:
        """The parameters of the view, with the question mark; empty for the first page without a filter."""
        return self.query_with()

    def query_with(self, **changes: object) -> str:
        """Returns `query` with changed parameters; None removes one."""
        said = {"q": self.words, "state": self.state, "page": self.page if self.page > 1 else "", **changes}
        query = urlencode({name: value for name, value in said.items() if value})
        return f"?{query}" if query else ""


def view_of(context: RequestContext) -> View:
    """Returns the view in the page's address."""
    parameters = context.parameters
    edited = context.query("edit")
    return View(
        context.query("q").strip(),
        context.query("state"),
        parameters.number("page") or 1,
        int(edited) if edited.isascii() and edited.isdigit() and len(edited) < 10 else None,
    )


def reference_of(context: RequestContext) -> str:
    """Returns the order's reference in the path."""
    return str(context.request.path_params["reference"])


def back(context: RequestContext, said: str | None = None, *, number: int | None = None) -> Response:
    """Redirects to the view where an action started, at the recipient with the first line `number`, and shows what happened."""
    anchor = f"#r{number}" if number else ""
    return context.see(f"/app/orders/{reference_of(context)}{view_of(context).query}{anchor}", said)


def refusal(context: RequestContext, problem: InvalidRequest | TooManyRequests) -> str:
    """Returns why an operation was refused, in the language of the page."""
    if isinstance(problem, TooManyRequests):
        return context.say("A recipient is mailed again at most %(most)s times a day.", most=MAX_RESENDS_A_DAY)
    return context.say(order_words.REFUSALS.get(problem.detail, problem.detail))


async def find(context: RequestContext, connection: Connection) -> Row:
    """Returns the order if the person may see it. Raises NotFound."""
    order = await find_order(connection, context.principal, reference_of(context))
    if context.person.reach(Right.SEE_ORDERS) is Reach.OWN and order["user_id"] != context.person.user_id:
        raise NotFound("There is no order with that reference.")
    return order


async def find_own(context: RequestContext, connection: Connection) -> Row:
    """Returns the order if the person may change it. Raises NotFound."""
    order = await find(context, connection)
    if not may_act(context, order):
        raise NotFound("There is no order with that reference.")
    return order


def may_act(context: RequestContext, order: Row) -> bool:
    """Returns whether the person may change the order."""
    return context.person.may(Right.SEND) and is_own(context.principal, order["service_account_id"], order["user_id"])
