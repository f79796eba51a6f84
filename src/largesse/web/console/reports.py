"""Reports: amounts spent and claimed, over time and by group of orders, and how soon gifts are claimed."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date

from babel.dates import format_skeleton
from babel.numbers import format_compact_currency, format_percent
from markupsafe import Markup
from msgspec.structs import replace
from starlette.responses import Response

from largesse.base import clock
from largesse.base.i18n.languages import text
from largesse.base.money import spaced, to_decimal
from largesse.catalogue.pictures import pictures_of
from largesse.customers.roles import Right
from largesse.db.pool import Connection
from largesse.db.statements import planned_at_once
from largesse.reports.filters import Added, GroupFilter, OrderFilter, add_up, together
from largesse.reports.listing import Choices, read_choices
from largesse.reports.sums import SUMS, Sums
from largesse.web.console.charts import Bar, Figure, bars, change_of, line
from largesse.web.console.context import RequestContext
from largesse.web.console.orders import NO_DAY, read_day
from largesse.web.console.periods import BEFORE_FIRST, FREE, MOST_DAYS, PERIODS, RECENT, Period, free_period, period_of

BY = {
    "gift": text("Gift"),
    "source": text("Source"),
    "account": text("Paid from"),
    "placed_by": text("Placed by"),
    "user": text("Person"),
    "service_account": text("Service account"),
}
AGES = {
    "within_hour": text("Up to an hour"),
    "within_day": text("1 to 24 hours"),
    "within_week": text("1 to 7 days"),
    "within_month": text("7 to 30 days"),
    "later": text("After 30 days"),
}
_NOTHING = Sums()
_SHOWN = ("orders", "spent_minor", "claimed", "refunded_minor")  # the sums read for groups and for the period before
_TOO_LONG = text("Choose at most %(most)s days.")
_FIGURES = (
    *(text("Orders"), text("Codes"), text("Spent"), text("Codes claimed"), text("Value claimed")),
    *(text("Codes cancelled"), text("Refunded"), text("Currency")),
)
_OF_CLAIMS = (text("Claimed"), text("Codes claimed"), text("Codes"), text("Currency"))


def own_filter(context: RequestContext, **more: date) -> OrderFilter:
    """Returns the filter of all orders that the person may see, in a period."""
    person = context.person
    own = person.if_only_own(Right.SEE_ORDERS)
    return OrderFilter(
        customer_id=person.customer_id,
        environment=person.environment,
        group=GroupFilter(user_id=own),
        since=more.get("since"),
        until=more.get("until"),
    )


async def show(context: RequestContext) -> Response:
    """Shows the figures of a period, compared with those of the period before."""
    period, by = _parameters(context)
    orders = own_filter(context, since=period.since, until=period.until)
    (before, over_time), (parts, pictures) = await context.database.at_once(
        context.person.scope,
        lambda connection: _totals(connection, orders, period),
        lambda connection: _pictured_parts(connection, context, orders, by),
    )
    totals = _by_currency(over_time)
    sums_before = {one.currency: one.sums for one in before}
    file = context.here().replace("/app/reports", "/app/reports.csv", 1)
    return context.page(
        "reports.html",
        may_send=context.person.may(Right.SEND),
        period=period,
        periods=PERIODS,
        by=by,
        bys=BY,
        ages=AGES,
        totals=totals,
        query=context.query,
        is_free=period.name == FREE or bool(context.form.errors),
        format_day=context.language.day,
        percent=lambda share: str(format_percent(share, locale=context.language.locale)),
        figures={
            one.currency: _figures(context, period, one, sums_before.get(one.currency, _NOTHING), over_time)
            for one in totals
        },
        charts={one.currency: _chart(context, period, one.currency, over_time) for one in totals},
        over_time=[(_day(context, period, one.key), one) for one in over_time],
        parts=parts,
        pictures=pictures,
        spent_of={one.currency: one.sums.net_minor for one in totals},
        file=f"{file}{'&' if '?' in file else '?'}of=" if context.person.may(Right.MOVE_FUNDS) else None,
    )


def _figures(
    context: RequestContext, period: Period, total: Added, before: Sums, over_time: Sequence[Added]
) -> list[Figure]:
    """Returns the figures of a currency, each with its change and a line over the period."""
    currency, now = total.currency, total.sums
    sums_of = {one.key: one.sums for one in over_time if one.currency == currency}
    steps = [sums_of.get(day, _NOTHING) for day in period.steps() if day <= period.until]
    language = context.language

    def figure(label: str, of: Callable[[Sums], int], said: Callable[[int], str]) -> Figure:
        values = [of(sums) for sums in steps]
        least, most = said(min(values)), said(max(values))
        words = context.say("Between %(least)s and %(most)s", least=least, most=most)
        drawn = line(label, words, values, is_stepped=False) if len(values) > 1 else Markup()
        change = change_of(context, of(now), of(before))
        return Figure(label, said(of(now)), change, context.say("before: %(was)s", was=said(of(before))), line=drawn)

    def money(minor: int) -> str:
        return language.amount(minor, currency)

    return [
        figure(context.say("Spent"), lambda sums: sums.net_minor, money),
        figure(context.say("Refunded"), lambda sums: sums.refunded_minor, money),
        figure(context.say("Orders"), lambda sums: sums.orders, language.number),
        figure(context.say("Gifts claimed"), lambda sums: sums.claimed, language.number),
    ]


async def _totals(connection: Connection, orders: OrderFilter, period: Period) -> tuple[list[Added], list[Added]]:
    """Returns the sums of the period before, and the sums of the period by day or month."""
    compared = replace(orders, since=period.before_since, until=period.before_until)
    async with planned_at_once(connection):
        before = await add_up(connection, compared, only=_SHOWN)
        return before, await _over_time(connection, orders, period)


async def _over_time(connection: Connection, orders: OrderFilter, period: Period) -> list[Added]:
    """Returns the sums by day or month, each with the currencies in the order of `_by_currency`."""
    over_time = await add_up(connection, orders, period.grain)
    currencies = [one.currency for one in _by_currency(over_time)]
    return sorted(over_time, key=lambda one: (one.key, currencies.index(one.currency)))


def _by_currency(added: Sequence[Added]) -> list[Added]:
    """Returns the sums of each currency, the one with the most orders first: in this order a report and its files show them."""
    return sorted(together(added), key=lambda one: -one.sums.orders)


async def download(context: RequestContext) -> Response:
    """Sends one table of a period as a CSV file. The parameter `of` names the table."""
    period, by = _parameters(context)
    orders = own_filter(context, since=period.since, until=period.until)
    name = "report.csv"
    columns: tuple[str, ...] = (BY[by], *_FIGURES)
    async with context.database.connection(context.person.scope) as connection:
        if context.query("of") == "time":
            name, columns = "over-time.csv", (text("Month") if period.grain == "month" else text("Day"), *_FIGURES)
            rows = [_row(one.key.isoformat(), one) for one in await _over_time(connection, orders, period)]
        elif context.query("of") == "claims":
            name, columns = "claims.csv", _OF_CLAIMS
            rows = [row for one in _by_currency(await add_up(connection, orders)) for row in _claims(context, one)]
        else:
            rows = [_row(name_, added) for name_, added in await _parts(connection, context, orders, by)]
    return await context.csv(name, [context.say(one) for one in columns], rows)


def _parameters(context: RequestContext) -> tuple[Period, str]:
    """Returns the period and the grouping. If a day is wrong, adds an error to the form and returns the last 30 days."""
    by, today = context.query("by"), clock.now().date()
    return _period(context, today), by if by in BY else "gift"


def _period(context: RequestContext, today: date) -> Period:
    # Typed days apply even if another period is chosen, unless the previous page had filled them in.
    typed = bool(context.query("since") or context.query("until")) and context.query("was") != FREE
    if context.query("period") != FREE and not typed:
        return period_of(context.query("period"), today)
    since, until = read_day(context, "since"), read_day(context, "until")
    for name, day in (("since", since), ("until", until)):
        if day is None:
            context.form.error(name, context.say(NO_DAY))
    try:
        if since is not None and until is not None:
            return free_period(since, until)
    except ValueError:
        said = BEFORE_FIRST if since and until and until < since else _TOO_LONG
        context.form.error("until", context.say(said, most=context.language.number(MOST_DAYS)))
    return period_of(RECENT, today)


async def _pictured_parts(
    connection: Connection, context: RequestContext, orders: OrderFilter, by: str
) -> tuple[list[tuple[str, Added]], dict[str, str]]:
    """Returns the groups, and the pictures of gifts by their keys."""
    parts = await _parts(connection, context, orders, by, only=_SHOWN)
    if by != "gift":
        return parts, {}
    keys = [str(one.key) for _, one in parts]
    ids = [int(key.removeprefix("product-")) for key in keys if key.startswith("product-")]
    return parts, {f"product-{one}": name for one, name in (await pictures_of(connection, ids)).items()}


async def _parts(
    connection: Connection, context: RequestContext, orders: OrderFilter, by: str, *, only: Sequence[str] = SUMS
) -> list[tuple[str, Added]]:
    """Returns the sums of each group with its name, highest spending first."""
    added = await add_up(connection, orders, by, only=only)
    choices = await read_choices(connection, (orders.customer_id, orders.environment), is_all=True)
    names = _names(choices, by)
    without = {
        "account": context.say("Invoice"),
        "user": context.say("API keys"),
        "service_account": context.say("People"),
    }
    parts = [(names.get(str(one.key)) or (without[by] if one.key == 0 else str(one.key)), one) for one in added]
    currencies = [one.currency for one in _by_currency(added)]
    return sorted(parts, key=lambda part: (currencies.index(part[1].currency), -part[1].sums.net_minor, part[0]))


def _names(choices: Choices, by: str) -> Mapping[str, str]:
    """Returns the names of the groups, by key."""
    if by in {"user", "service_account"}:
        kind = "person-" if by == "user" else "key-"
        return {key.removeprefix(kind): name for key, name in choices.placed_by if key.startswith(kind)}
    of = {"gift": choices.gifts, "account": choices.accounts, "placed_by": choices.placed_by}
    return dict(of.get(by, ()))


def _chart(context: RequestContext, period: Period, currency: str, over_time: Sequence[Added]) -> Markup:
    sums_of = {one.key: one.sums for one in over_time if one.currency == currency}
    points = []
    for day in period.steps():
        sums = sums_of.get(day, _NOTHING)
        when = _day(context, period, day)
        spent = context.language.amount(sums.net_minor, currency)
        claimed = context.language.amount(sums.claimed_minor, currency)
        said = context.say("%(when)s: spent %(spent)s, claimed %(claimed)s", when=when, spent=spent, claimed=claimed)
        points.append(Bar(when, (sums.net_minor, sums.claimed_minor), said))
    return bars(
        context.say("Spent and claimed in %(currency)s", currency=currency),
        "; ".join(point.said for point in points),
        points,
        lambda value: _short_amount(context, value, currency),
    )


def _short_amount(context: RequestContext, minor: int, currency: str) -> str:
    """Returns an amount for an axis, such as `£2.5K`."""
    amount = to_decimal(minor, currency)
    if amount % 1 and amount < 1000:  # £10.50, not £10.5
        return context.language.amount(minor, currency)
    return spaced(format_compact_currency(amount, currency, locale=context.language.locale, fraction_digits=2))


def _day(context: RequestContext, period: Period, day: date) -> str:
    """Returns a day or month in the reader's language."""
    if period.grain == "month":
        return str(format_skeleton("yMMM", day, locale=context.language.locale))
    return context.language.short_day(day, with_year=False)


def _row(name: str, added: Added) -> Sequence[object]:
    sums, currency = added.sums, added.currency
    return (
        name,
        sums.orders,
        sums.codes,
        to_decimal(sums.net_minor, currency),
        sums.claimed,
        to_decimal(sums.claimed_minor, currency),
        sums.cancelled,
        to_decimal(sums.refunded_minor, currency),
        currency,
    )


def _claims(context: RequestContext, added: Added) -> list[Sequence[object]]:
    """Returns a row for each claim time with its number of codes, and a row for all other codes: days have no cancellations of their own orders."""
    sums = added.sums
    counts = {said: getattr(sums, name) for name, said in AGES.items()}
    counts[text("Unclaimed or cancelled")] = max(0, sums.codes - sum(counts.values()))
    return [(context.say(said), count, sums.codes, added.currency) for said, count in counts.items()]
