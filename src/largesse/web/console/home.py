"""The home page: what needs attention, this month compared with the last, and the newest orders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import NamedTuple

from markupsafe import Markup
from starlette.responses import Response

from largesse.base import clock
from largesse.customers.roles import Right
from largesse.db.pool import Connection
from largesse.ledger.statements import DAYS, read_history
from largesse.ledger.store import SeenAccount, list_seen_accounts
from largesse.ledger.top_ups_store import list_top_ups
from largesse.reports.filters import Added, OrderFilter, add_up
from largesse.reports.listing import OrderPage, list_page
from largesse.reports.sums import OrderState
from largesse.reports.usage import count_setup_problems
from largesse.web.console.charts import line
from largesse.web.console.context import RequestContext
from largesse.web.console.funding import sees_own_of
from largesse.web.console.orders import STATES
from largesse.web.console.periods import Period, period_of
from largesse.web.console.reports import own_filter

_NEWEST = 8
_UNCLAIMED_DAYS = 30
_UNUSED_DAYS = 90
_DRAWN = 4  # accounts with a line chart
_SHOWN = ("orders", "spent_minor", "claimed", "refunded_minor")  # sums of a month


@dataclass(frozen=True, slots=True)
class AttentionItem:
    """Something that needs attention, and the page for it."""

    said: str
    path: str


class _Read(NamedTuple):
    """The data of the page."""

    accounts: list[SeenAccount]
    matters: list[AttentionItem]
    history: dict[int, list[int]]
    now: list[Added]
    before: list[Added]
    page: OrderPage


async def show(context: RequestContext) -> Response:
    """Shows the home page."""
    person = context.person
    month = period_of("this-month", clock.now().date())
    orders = own_filter(context, since=month.since, until=month.until)
    # The sums of all orders take about as long as all other reads.
    of_orders, read = await context.database.at_once(
        person.scope,
        lambda connection: _matters_of_orders(context, connection),
        lambda connection: _read(context, connection, orders, month),
    )
    return context.page(
        "home.html",
        matters=of_orders + read.matters,
        now=read.now,
        before={one.currency: one.sums for one in read.before},
        orders=read.page.orders,
        accounts=read.accounts,
        lines={
            account.id: _line(context, account, read.history[account.id])
            for account in read.accounts[:_DRAWN]
            if any(read.history[account.id])
        },
        states=STATES,
        may_send=person.may(Right.SEND),
    )


async def _read(context: RequestContext, connection: Connection, orders: OrderFilter, month: Period) -> _Read:
    """Reads what the page shows, except for orders that need attention."""
    person = context.person
    accounts = await _accounts(context, connection)
    matters = await _matters(context, connection, accounts)
    matters += await _waiting(context, connection, accounts)
    drawn = [account.id for account in accounts[:_DRAWN]]
    history = await read_history(connection, person.customer_id, drawn)
    now = await add_up(connection, orders, only=_SHOWN)
    last = replace(orders, since=month.before_since, until=month.before_until)
    before = await add_up(connection, last, only=_SHOWN)
    page = await list_page(connection, own_filter(context), _NEWEST)
    return _Read(accounts, matters, history, now, before, page)


def _line(context: RequestContext, account: SeenAccount, history: Sequence[int]) -> Markup:
    """Returns the recent balance of an account as a line, with its description."""
    values = [*history, account.balance_minor]
    least, most = (context.language.amount(minor, account.currency) for minor in (min(values), max(values)))
    said = context.say("In the last %(days)s days between %(least)s and %(most)s", days=DAYS, least=least, most=most)
    return line(account.name, said, values)


async def _accounts(context: RequestContext, connection: Connection) -> list[SeenAccount]:
    """Returns the open accounts that the person may see."""
    person = context.person
    if not person.may(Right.SEE_FUNDS):
        return []
    seen = await list_seen_accounts(connection, person.customer_id, person.environment, user_id=sees_own_of(context))
    return [account for account in seen if not account.is_closed]


async def _matters_of_orders(context: RequestContext, connection: Connection) -> list[AttentionItem]:
    """Returns what needs attention among all orders."""
    matters = []
    orders = own_filter(context)
    refused = await add_up(connection, replace(orders, states=(OrderState.BOUNCED,)), only=("orders",))
    if count := sum(one.sums.orders for one in refused):
        said = context.say("Orders with mail that was refused: %(count)s", count=count)
        matters.append(AttentionItem(said, "/app/orders?state=bounced"))
    until = clock.now().date() - timedelta(days=_UNCLAIMED_DAYS)
    waiting = replace(orders, states=(OrderState.WAITING,), until=until)
    late = await add_up(connection, waiting, only=("orders",))
    if count := sum(one.sums.orders for one in late):
        said = context.say("Orders unclaimed for %(days)s days: %(count)s", days=_UNCLAIMED_DAYS, count=count)
        matters.append(AttentionItem(said, f"/app/orders?state=waiting&until={until}"))
    return matters


async def _matters(
    context: RequestContext, connection: Connection, accounts: Sequence[SeenAccount]
) -> list[AttentionItem]:
    """Returns what needs attention in accounts, webhooks and API keys."""
    matters, person = [], context.person
    if count := sum(one.is_low for one in accounts):
        said = context.say("Accounts with a low balance: %(count)s", count=count)
        matters.append(AttentionItem(said, "/app/funding"))
    if person.may(Right.SETTINGS):
        failing, unused = await count_setup_problems(
            connection, person.customer_id, person.environment, unused_days=_UNUSED_DAYS
        )
        if failing:
            said = context.say("Webhooks that fail: %(count)s", count=failing)
            matters.append(AttentionItem(said, "/app/webhooks"))
        if unused:
            said = context.say("API keys unused for %(days)s days: %(count)s", days=_UNUSED_DAYS, count=unused)
            matters.append(AttentionItem(said, "/app/keys"))
    return matters


async def _waiting(
    context: RequestContext, connection: Connection, accounts: Sequence[SeenAccount]
) -> list[AttentionItem]:
    """Returns the item for top-ups of these accounts that wait for their transfer."""
    person, seen = context.person, {account.id for account in accounts}
    if not seen or not person.may(Right.MOVE_FUNDS):
        return []
    waiting = await list_top_ups(connection, person.customer_id, person.environment, waiting=True)
    count = sum(top_up.account_id in seen for top_up in waiting)
    said = context.say("Top-ups waiting for a transfer: %(count)s", count=count)
    return [AttentionItem(said, "/app/funding/top-ups")] if count else []
