"""The amount that an invoiced customer owes, by month and currency, with the payments."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta

from babel.dates import format_skeleton
from starlette.responses import Response

from largesse.base.money import to_decimal
from largesse.ledger.receivables import (
    MOST_MONTHS,
    AmountDue,
    AmountDueMonth,
    list_amounts_due,
    list_payments,
    read_months,
)
from largesse.ledger.statements import month_of
from largesse.web.console.context import RequestContext

_MONTHS_SHOWN = 24
_PAYMENTS_SHOWN = 50
_COLUMNS = ("month", "owed before", "charged", "paid", "owed then", "currency")


async def show(context: RequestContext) -> Response:
    """Shows the last two years."""
    person = context.person
    owed = []
    async with context.database.snapshot(person.scope) as connection:
        for one in await list_amounts_due(connection, person.customer_id, person.environment):
            months = await read_months(connection, person.customer_id, one, _MONTHS_SHOWN)
            payments = await list_payments(connection, person.customer_id, one)
            owed.append((one, months, payments[:_PAYMENTS_SHOWN]))
    return context.page(
        "owed.html",
        owed=owed,
        month_name=lambda at: format_skeleton("yMMMM", at, locale=context.language.locale),
        last_day=_last_day,
    )


async def download(context: RequestContext) -> Response:
    """Sends all months as a CSV file."""
    person = context.person
    rows: list[Sequence[object]] = []
    async with context.database.snapshot(person.scope) as connection:
        for one in await list_amounts_due(connection, person.customer_id, person.environment):
            months = await read_months(connection, person.customer_id, one, MOST_MONTHS)
            rows += [_row(one, month) for month in months]
    return await context.csv("owed.csv", _COLUMNS, rows)


def _row(owed: AmountDue, month: AmountDueMonth) -> Sequence[object]:
    amounts = (month.opening_minor, month.charged_minor, month.paid_minor, month.closing_minor)
    return (f"{month.since:%Y-%m}", *(to_decimal(amount, owed.currency) for amount in amounts), owed.currency)


def _last_day(since: datetime) -> date:
    return (month_of(since)[1] - timedelta(days=1)).date()
