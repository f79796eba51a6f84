"""The home page: three figures, what needs attention, the newest orders, and the first steps of a new customer."""

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

import msgspec
from babel.dates import format_date
from babel.numbers import format_percent
from markupsafe import Markup
from msgspec.structs import replace
from starlette.responses import Response

from largesse.base import clock
from largesse.customers.roles import Right
from largesse.db.pool import Connection, all_of
from largesse.db.scope import for_customer
from largesse.db.statements import planned_at_once
from largesse.ledger.receivables import AmountDue, list_amounts_due
from largesse.ledger.statements import DAYS, read_history
from largesse.ledger.store import SeenAccount, list_seen_accounts
from largesse.reports.filters import Added, OrderFilter, add_up, read_corrected, together
from largesse.reports.listing import OrderPage, list_page
from largesse.reports.sums import OrderState, Sums
from largesse.reports.usage import FirstSteps, read_first_steps
from largesse.web.console.approvals import of_approvals
from largesse.web.console.attention import (
    AttentionItem,
    of_accounts,
    of_lost_gifts,
    of_orders,
    of_parcels,
    of_setup,
    of_top_ups,
)
from largesse.web.console.automations import of_automations
from largesse.web.console.budgets import SeenBudget, own_budgets
from largesse.web.console.charts import Figure, change_of, change_of_share, line
from largesse.web.console.context import RequestContext
from largesse.web.console.layout import is_zone_unknown
from largesse.web.console.order_words import headline, state_of_order
from largesse.web.console.periods import months_before, period_of
from largesse.web.console.reports import own_filter

_NEWEST = 8
_MOST_DRAWN = 12  # with more accounts, the page draws no line of the balance
_CLAIM_DAYS = 7  # most claims happen within this many days
_WINDOW_DAYS = 30
_SPENT = ("orders", "codes", "spent_minor", "refunded_minor")
_STANDING = ("orders", "codes", "claimed", "cancelled", "spent_minor", "claimed_minor", "refunded_minor")
_CLAIMS = ("codes", "within_hour", "within_day", "within_week")
_NOTHING = Sums()
_OTHER = {"production": "staging", "staging": "production"}


class Step(msgspec.Struct, frozen=True):
    """A step for a new customer. `environment` is the environment that the step needs; empty for any."""

    icon: str
    said: str
    more: str
    is_done: bool
    path: str
    environment: str = ""


class _Summed(NamedTuple):
    """Sums of orders, and the items for orders that need attention. Reading them takes as long as reading the rest."""

    unclaimed: list[Added]
    corrected: dict[str, int]  # what corrections refunded of claimed gifts of these orders, by currency
    items: list[AttentionItem]
    spent: list[Added]
    spent_before: list[Added]


class _Read(NamedTuple):
    """The rest of the data of the page."""

    accounts: list[SeenAccount]
    owed: list[AmountDue]
    history: dict[int, list[int]]
    items: list[AttentionItem]
    claims: list[Added]
    claims_before: list[Added]
    page: OrderPage
    budgets: list[SeenBudget]
    steps: FirstSteps | None


async def show(context: RequestContext) -> Response:
    """Shows the home page."""
    summed, (read, steps) = await all_of(_add_up(context), _read_rest(context))
    currency = _main_currency(summed, read)
    figures = [_balance(context, read, currency), _spent(context, summed, currency)]
    figures.append(_claimed(context, summed, read, currency))
    return context.page(
        "home.html",
        figures=[figure for figure in figures if figure],
        items=summed.items + read.items,
        steps=steps,
        orders=read.page.orders,
        budgets=read.budgets,
        headline=lambda order: headline(context, order),
        state_of=lambda order: state_of_order(context, order),
        may_send=context.person.may(Right.SEND),
        is_zone_unknown=is_zone_unknown(context.request, context.session),
    )


async def _add_up(context: RequestContext) -> _Summed:
    """Adds up the unclaimed gifts of all time, and the orders of this month and of the same days of the month before."""
    orders, today = own_filter(context), clock.now().date()
    unclaimed = replace(orders, states=(OrderState.WAITING, OrderState.BOUNCED))
    month = period_of("this-month", today)
    before = replace(orders, since=month.before_since, until=month.before_until)
    async with context.database.connection(context.person.scope) as connection, planned_at_once(connection):
        states = await add_up(connection, unclaimed, "state", only=_STANDING)
        bounced, waiting = (
            sum(one.sums.orders for one in states if one.key == state)
            for state in (OrderState.BOUNCED, OrderState.WAITING)
        )
        return _Summed(
            unclaimed=together(states),
            corrected=await read_corrected(connection, unclaimed),
            items=await of_orders(context, connection, orders, bounced, waiting),
            spent=await add_up(connection, replace(orders, since=month.since, until=month.until), only=_SPENT),
            spent_before=await add_up(connection, before, only=_SPENT),
        )


async def _read_rest(context: RequestContext) -> tuple[_Read, list[Step]]:
    """Reads the rest of the data, and the steps of a new customer."""
    async with context.database.connection(context.person.scope) as connection:
        read = await _read(context, connection)
    read.items.extend(await of_lost_gifts(context))
    return read, await _steps(context, read.steps)


async def _read(context: RequestContext, connection: Connection) -> _Read:
    customer = context.customer
    accounts = await _accounts(context, connection)
    drawn = [account.id for account in accounts]
    history = await read_history(connection, context.person.customer_id, drawn) if len(drawn) <= _MOST_DRAWN else {}
    owed = await list_amounts_due(connection, customer) if context.person.may(Right.SEE_OWED) and not accounts else []
    items = of_accounts(context, accounts) + await of_setup(context, connection)
    items += await of_top_ups(context, connection, accounts)
    items += await of_parcels(context, connection)
    items += await of_approvals(context, connection)
    items += await of_automations(context, connection)
    async with planned_at_once(connection):
        claims, claims_before = [await add_up(connection, window, only=_CLAIMS) for window in _windows(context)]
    return _Read(
        accounts=accounts,
        owed=owed,
        history=history,
        items=items,
        claims=claims,
        claims_before=claims_before,
        page=await list_page(connection, own_filter(context), _NEWEST),
        budgets=await own_budgets(context, connection),
        steps=await read_first_steps(connection, customer) if context.person.may(Right.SETTINGS) else None,
    )


def _windows(context: RequestContext) -> tuple[OrderFilter, OrderFilter]:
    """Returns filters for two periods of 30 days: the last whose orders are all at least a week old, and the one before.

    Leaves out scheduled orders, which nobody can have claimed.
    """
    left = tuple(state for state in OrderState if state is not OrderState.SCHEDULED)
    orders, until = replace(own_filter(context), states=left), clock.now().date() - timedelta(days=_CLAIM_DAYS)
    since = until - timedelta(days=_WINDOW_DAYS - 1)
    earlier = replace(orders, since=since - timedelta(days=_WINDOW_DAYS), until=since - timedelta(days=1))
    return replace(orders, since=since, until=until), earlier


async def _accounts(context: RequestContext, connection: Connection) -> list[SeenAccount]:
    """Returns the open accounts that the person may see."""
    if not context.person.may(Right.SEE_FUNDS):
        return []
    seen = await list_seen_accounts(connection, context.customer, user_id=context.person.if_only_own(Right.SEE_FUNDS))
    return [account for account in seen if not account.is_closed]


def _main_currency(summed: _Summed, read: _Read) -> str:
    """Returns the currency of the figures: the one with the most orders this month, otherwise the first account's."""
    ordered = sorted(summed.spent, key=lambda one: -one.sums.orders)
    currencies = [one.currency for one in ordered] + [one.currency for one in read.accounts]
    return next(iter(currencies + [one.currency for one in read.owed]), "")


def _of(added: Sequence[Added], currency: str) -> Sums:
    return next((one.sums for one in added if one.currency == currency), _NOTHING)


def _balance(context: RequestContext, read: _Read, currency: str) -> Figure | None:
    """Returns the sum of the balances in a currency, with its line and the balances in other currencies; or the amount due."""
    amount = context.language.amount
    owed = [amount(one.owed_minor, one.currency) for one in read.owed]
    if owed:
        return Figure(context.say("Amount due"), owed[0], note=", ".join(owed[1:]))
    accounts = [account for account in read.accounts if account.currency == currency]
    if not read.accounts:
        return None
    totals: dict[str, int] = {}
    for account in read.accounts:
        totals[account.currency] = totals.get(account.currency, 0) + account.balance_minor
    count = context.ngettext("%(count)s account", "%(count)s accounts", len(accounts))
    others = [amount(minor, other) for other, minor in totals.items() if other != currency]
    balance = totals.get(currency, 0)
    return Figure(
        context.say("Balance, %(currency)s, %(accounts)s", currency=currency, accounts=count),
        amount(balance, currency),
        note=context.say("Also %(amounts)s", amounts=", ".join(others)) if others else "",
        path="/app/funding",
        line=_line(context, [read.history.get(account.id, []) for account in accounts], balance, currency),
    )


def _line(context: RequestContext, histories: Sequence[Sequence[int]], balance: int, currency: str) -> Markup:
    """Draws the recent sum of some accounts' balances as a line with a description. Empty if the balances were always zero."""
    values = [*(sum(day) for day in zip(*histories, strict=True)), balance]
    if not any(values[:-1]):
        return Markup()
    least, most = (context.language.amount(minor, currency) for minor in (min(values), max(values)))
    said = context.say("Between %(least)s and %(most)s in the last %(days)s days", days=DAYS, least=least, most=most)
    return line(context.say("Balance, %(currency)s", currency=currency), said, values)


def _spent(context: RequestContext, summed: _Summed, currency: str) -> Figure | None:
    """Returns the amount spent this month, compared with the same days of the month before."""
    if not currency:
        return None
    now, before = _of(summed.spent, currency), _of(summed.spent_before, currency)
    month = format_date(months_before(clock.now().date().replace(day=1), 1), "LLLL", locale=context.language.locale)
    orders = context.ngettext("%(count)s order", "%(count)s orders", now.orders)
    gifts = context.ngettext("%(count)s gift", "%(count)s gifts", now.codes)
    others = [
        context.language.amount(one.sums.net_minor, one.currency) for one in summed.spent if one.currency != currency
    ]
    return Figure(
        context.say("Spent this month"),
        context.language.amount(now.net_minor, currency),
        change_of(context, now.net_minor, before.net_minor),
        context.say("against %(month)s to date", month=month),
        ", ".join((orders, gifts, *(context.say("also %(amount)s", amount=other) for other in others))),
    )


def _claimed(context: RequestContext, summed: _Summed, read: _Read, currency: str) -> Figure | None:
    """Returns the share of gifts that were claimed within a week, compared with the 30 days before."""
    now, before = _share(read.claims), _share(read.claims_before)
    left = _of(summed.unclaimed, currency)
    count = left.codes - left.claimed - left.cancelled
    worth_minor = left.net_minor - left.claimed_minor + summed.corrected.get(currency, 0)
    worth = context.language.amount(worth_minor, currency or "GBP")
    return Figure(
        context.say("Claimed within %(days)s days", days=_CLAIM_DAYS),
        "\N{EN DASH}" if now is None else str(format_percent(now, locale=context.language.locale)),
        None if now is None or before is None else change_of_share(context, now, before),
        context.say("against the 30 days before"),
        context.ngettext(
            "%(count)s gift unclaimed, %(worth)s", "%(count)s gifts unclaimed, %(worth)s", count, worth=worth
        )
        if count > 0
        else context.say("Known once gifts are a week old")
        if now is None
        else "",
    )


def _share(claims: Sequence[Added]) -> float | None:
    """Returns the share of codes that were claimed within a week; None without codes."""
    codes = sum(one.sums.codes for one in claims)
    return (
        sum(one.sums.within_hour + one.sums.within_day + one.sums.within_week for one in claims) / codes
        if codes
        else None
    )


async def _steps(context: RequestContext, here: FirstSteps | None) -> list[Step]:
    """Returns the four steps for a new customer; empty once all are done, or if the customer is not new."""
    person = context.person
    if here is None or not here.is_new:
        return []
    other = _OTHER[person.environment]
    async with context.database.connection(for_customer(person.customer_id, other)) as connection:
        there = await read_first_steps(connection, (person.customer_id, other))
    live, test = (here, there) if person.environment == "production" else (there, here)
    steps = [
        Step(
            "flask-conical",
            context.say("Send a gift in test mode"),
            context.say("Nothing is sent or charged. You see each page as your recipients will."),
            test.has_order,
            "/app/send",
            "staging",
        ),
        Step(
            "wallet",
            context.say("Add money"),
            context.say("Request a top-up and pay it by bank transfer."),
            live.has_money or person.funding == "invoiced",
            "/app/funding/top-ups/new",
            "production",
        ),
        Step(
            "user-plus",
            context.say("Invite a colleague"),
            context.say("Somebody who can take over, or who looks after the money."),
            here.has_colleague,
            "/app/people#invite",
        ),
        Step(
            "gift",
            context.say("Send your first gift"),
            context.say("To one person or to a whole list."),
            live.has_order,
            "/app/send",
            "production",
        ),
    ]
    return [] if all(step.is_done for step in steps) else steps
