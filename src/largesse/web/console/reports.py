"""Reports: what was spent and claimed, over time and by what orders have in common, and how soon gifts are claimed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date

from babel.dates import format_date, format_skeleton
from markupsafe import Markup
from starlette.responses import Response

from largesse.base import clock
from largesse.base.i18n import text
from largesse.base.money import to_decimal
from largesse.database import Connection
from largesse.people import Reach, Right
from largesse.reports import Added, Choices, GroupFilter, OrderFilter, Sums, add_up, read_choices
from largesse.web.console.charts import Bar, bars
from largesse.web.console.periods import PERIODS, Period, period_of
from largesse.web.console.visit import Visit

BY = {
    "gift": text("Gift"),
    "source": text("Source"),
    "account": text("Paid from"),
    "placed_by": text("Placed by"),
}
AGES = {
    "within_hour": text("Within an hour"),
    "within_day": text("Within a day"),
    "within_week": text("Within a week"),
    "within_month": text("Within 30 days"),
    "later": text("Later"),
}
_NOTHING = Sums()
_COLUMNS = (
    "by",
    "orders",
    "codes",
    "spent",
    "codes claimed",
    "value claimed",
    "codes cancelled",
    "returned",
    "currency",
)


def own_filter(visit: Visit, **more: date) -> OrderFilter:
    """All orders that the person may see, of a time."""
    person = visit.person
    own = person.user_id if person.reach(Right.SEE_ORDERS) is Reach.OWN else None
    return OrderFilter(
        customer_id=person.customer_id,
        environment=person.environment,
        group=GroupFilter(user_id=own),
        since=more.get("since"),
        until=more.get("until"),
    )


async def show(visit: Visit) -> Response:
    """The figures of a period, beside those of the one before."""
    period, by = _asked(visit)
    wanted = own_filter(visit, since=period.since, until=period.until)
    async with visit.database.connection(visit.person.scope) as connection:
        totals = await add_up(connection, wanted)
        before = await add_up(
            connection, replace(wanted, since=period.before_since, until=period.before_until)
        )
        over_time = await add_up(connection, wanted, period.grain)
        parts = await _parts(connection, visit, wanted, by)
    return visit.page(
        "reports.html",
        period=period,
        periods=PERIODS,
        by=by,
        bys=BY,
        ages=AGES,
        totals=totals,
        before={one.currency: one.sums for one in before},
        nothing=_NOTHING,
        charts={one.currency: _chart(visit, period, one.currency, over_time) for one in totals},
        over_time=[(_day(visit, period, one.key), one) for one in over_time],
        parts=parts,
        csv=visit.here().replace("/app/reports", "/app/reports.csv", 1)
        if visit.person.may(Right.MOVE_FUNDS)
        else None,
    )


async def download(visit: Visit) -> Response:
    """The figures of a period, by what was asked for, as CSV."""
    period, by = _asked(visit)
    async with visit.database.connection(visit.person.scope) as connection:
        parts = await _parts(connection, visit, own_filter(visit, since=period.since, until=period.until), by)
    return await visit.csv("report.csv", _COLUMNS, [_row(name, added) for name, added in parts])


def _asked(visit: Visit) -> tuple[Period, str]:
    by = visit.query("by")
    return period_of(visit.query("period"), clock.now().date()), by if by in BY else "gift"


async def _parts(
    connection: Connection, visit: Visit, wanted: OrderFilter, by: str
) -> list[tuple[str, Added]]:
    """The sums by what orders have in common, with its name; what most was spent on comes first."""
    added = await add_up(connection, wanted, by)
    choices = await read_choices(connection, wanted.customer_id, wanted.environment)
    names = _names(choices, by)
    invoice = visit.say("Invoice")
    parts = [(names.get(str(one.key)) or (invoice if one.key == 0 else str(one.key)), one) for one in added]
    return sorted(parts, key=lambda part: (part[1].currency, -part[1].sums.spent_minor, part[0]))


def _names(choices: Choices, by: str) -> Mapping[str, str]:
    of = {"gift": choices.gifts, "account": choices.accounts, "placed_by": choices.placed_by}
    return dict(of.get(by, ()))


def _chart(visit: Visit, period: Period, currency: str, over_time: Sequence[Added]) -> Markup:
    told = {one.key: one.sums for one in over_time if one.currency == currency}
    points = []
    for day in period.steps():
        sums = told.get(day, _NOTHING)
        when = _day(visit, period, day)
        spent = visit.language.amount(sums.spent_minor, currency)
        claimed = visit.language.amount(sums.claimed_minor, currency)
        said = visit.say(
            "%(when)s: spent %(spent)s, claimed %(claimed)s", when=when, spent=spent, claimed=claimed
        )
        points.append(Bar(when, (sums.spent_minor, sums.claimed_minor), said))
    return bars(
        visit.say("Spent and claimed in %(currency)s", currency=currency),
        "; ".join(point.said for point in points),
        points,
    )


def _day(visit: Visit, period: Period, day: date) -> str:
    """A day or month for its readers."""
    locale = visit.language.locale
    if period.grain == "month":
        return str(format_skeleton("yMMM", day, locale=locale))
    return str(format_date(day, "d MMM", locale=locale))


def _row(name: str, added: Added) -> Sequence[object]:
    sums, currency = added.sums, added.currency
    return (
        name,
        sums.orders,
        sums.codes,
        to_decimal(sums.spent_minor, currency),
        sums.claimed,
        to_decimal(sums.claimed_minor, currency),
        sums.cancelled,
        to_decimal(sums.refunded_minor, currency),
        currency,
    )
