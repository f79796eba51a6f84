"""The funding accounts with their balances, the statement of each, and the amount that an invoiced customer owes by month."""

from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from babel.dates import format_skeleton
from starlette.responses import Response

from largesse.base import clock
from largesse.base.errors import NotFound
from largesse.base.i18n.languages import text
from largesse.base.money import to_decimal
from largesse.base.text import whole_number
from largesse.customers.roles import Right
from largesse.db.pool import Connection
from largesse.db.scope import Scope
from largesse.ledger import receivables, statements
from largesse.ledger.statements import Statement, StatementEntry
from largesse.ledger.store import SeenAccount, find_seen_account, list_seen_accounts
from largesse.ledger.top_ups import list_top_ups, spelled_reference
from largesse.ledger.verification import prove
from largesse.orders.marks import read_digests
from largesse.reports.filters import OrderFilter, add_up
from largesse.web.console.context import PageContext, RequestContext
from largesse.web.console.words import Names
from largesse.web.kit.query import INT64

_AT_ONCE = 100
_PRINTED = 2_000
_MONTHS_SHOWN = 24
_PAYMENTS_SHOWN = 50
_KINDS = Names(
    {
        "order": text("Order"),
        "refund": text("Refunded"),
        "top_up": text("Top-up"),
        "transfer": text("Transfer"),
        "settlement": text("Payment"),
        "correction": text("Correction"),
    }
)
_COLUMNS = (
    *(text("Date (UTC)"), text("Kind"), text("Order"), text("Reference"), text("Amount"), text("Balance")),
    *(text("Currency"), text("Other account")),
)
_COLUMNS_OWED = (
    *(text("Month"), text("Due before"), text("Charged"), text("Paid"), text("Due after"), text("Currency")),
)


async def show(context: RequestContext) -> Response:
    """Shows the accounts as cards, and the top-ups that wait for a transfer. Raises NotFound if the person sees no account `account`."""
    person = context.person
    since, _ = statements.month_of(clock.now())
    async with context.database.connection(person.scope) as connection:
        own = person.if_only_own(Right.SEE_FUNDS)
        accounts = await list_seen_accounts(connection, context.customer, user_id=own)
        named = context.parameters.number("account")
        # A mail about another customer leads to an account that is not here.
        if named is not None and named not in {one.id for one in accounts}:
            raise NotFound("There is no such account.")
        added = await add_up(
            connection,
            OrderFilter(customer_id=person.customer_id, environment=person.environment, since=since.date()),
            by="account",
            only=("spent_minor", "refunded_minor"),
        )
        top_ups = await list_top_ups(connection, context.customer, waiting=True)
        owed = await receivables.list_amounts_due(connection, context.customer) if person.may(Right.SEE_OWED) else []
    seen = {account.id for account in accounts}
    is_invoiced = person.funding != "balance"  # such a company has no accounts, or some from before
    return context.page(
        "funding.html",
        accounts=accounts,
        owed=owed,
        spent={one.key: one.sums.net_minor for one in added},
        top_ups=[(one, spelled_reference(one.reference)) for one in top_ups if one.account_id in seen],
        may_pay_in=person.may(Right.MOVE_FUNDS),
        may_transfer=person.may(Right.TRANSFER),
        may_manage=person.may(Right.SETTINGS) and not is_invoiced,
        is_invoiced=is_invoiced,
    )


async def show_statement(context: RequestContext) -> Response:
    """Shows a month of an account, oldest entries first, a page at a time. Raises NotFound."""
    account, statement, entries = await _read(context, context.parameters.number("after", INT64), _AT_ONCE)
    return context.page(
        "statement.html", account=account, statement=statement, **shown_month(context, entries, _AT_ONCE)
    )


async def print_statement(context: RequestContext) -> Response:
    """Shows a month of an account as a page to print. Raises NotFound."""
    account, statement, entries = await _read(context, None, _PRINTED)

    def what(entry: StatementEntry) -> str:
        shown = (entry.order_reference, entry.counterpart, entry.external_reference)
        return " ".join((context.say(_KINDS[entry.kind]), *(one for one in shown if one)))

    is_cut = len(entries) > _PRINTED
    kinds = [] if is_cut else [kind for kind in _KINDS if any(one.kind == kind for one in entries)]
    sums = [(_KINDS[kind], sum(one.amount_minor for one in entries if one.kind == kind)) for kind in kinds]
    return context.page(
        "statement_print.html",
        account=account,
        statement=statement,
        entries=entries[:_PRINTED],
        is_cut=is_cut,
        sums=[(context.say(name), amount_minor) for name, amount_minor in sums],
        month=month_in_address(context)[0],
        month_name=_month_name(context),
        what=what,
    )


async def verify(context: RequestContext) -> Response:
    """Verifies an account's hash chain, a limited number of entries at a time, and shows the result. Raises NotFound."""
    person = context.person
    async with context.database.snapshot(person.scope) as connection:
        account = await _account(context, connection)
        proof = await prove(
            connection,
            context.services.chains.entries,
            person.customer_id,
            account.id,
            context.parameters.number("after", INT64),
            digests_of=read_digests,
        )
    return context.page("proof.html", account=account, proof=proof)


async def _read(
    context: RequestContext, after: int | None, most: int
) -> tuple[SeenAccount, Statement, list[StatementEntry]]:
    """Returns a month of the account in the address with its first `most` entries, and one more if there are more."""
    async with context.database.snapshot(context.person.scope) as connection:
        account, statement = await _statement(context, connection)
        entries = await statements.statement_page(connection, statement, after, most + 1)
    return account, statement, entries


async def _statement(context: RequestContext, connection: Connection) -> tuple[SeenAccount, Statement]:
    """Returns the account and the month in the address. Raises NotFound."""
    person, account = context.person, await _account(context, connection)
    own, (since, until) = person.if_only_own(Right.SEE_ORDERS), month_in_address(context)
    found = await statements.read_statement(connection, person.customer_id, account.id, since, until, orders_of=own)
    return account, found


def shown_month(context: PageContext, entries: list[StatementEntry], most: int) -> dict[str, Any]:
    """Returns what a page shows of a month of an account: at most `most` entries, and the months before and after."""
    since, until = month_in_address(context)
    return {
        "entries": entries[:most],
        "more": entries[most - 1].id if len(entries) > most else None,
        "is_first": context.parameters.number("after", INT64) is None,
        "month": since,
        "earlier": statements.month_of(since, -1)[0],
        "later": until if until <= clock.now() else None,
        "kinds": {kind: context.say(name) for kind, name in _KINDS.items()},
        "month_name": _month_name(context),
    }


def _month_name(context: PageContext) -> Callable[[datetime], str]:
    return lambda at: str(format_skeleton("yMMMM", at, locale=context.language.locale))


async def statement_csv(context: RequestContext) -> Response:
    """Sends a whole month of an account as a CSV file. Raises NotFound."""
    async with context.database.connection(context.person.scope) as connection:
        account, statement = await _statement(context, connection)
    return await send_statement(context, account.name, context.person.scope, statement, account.currency)


async def send_statement(
    context: PageContext, name: str, scope: Scope, statement: Statement, currency: str
) -> Response:
    """Sends a month of an account as a CSV file."""
    rows = _rows(context, statements.statement_entries(context.database, scope, statement), currency)
    return await context.csv(
        f"{name} {month_in_address(context)[0]:%Y-%m}.csv", [context.say(one) for one in _COLUMNS], rows
    )


async def _rows(
    context: PageContext, entries: AsyncIterator[list[StatementEntry]], currency: str
) -> AsyncIterator[Sequence[object]]:
    async for some in entries:
        for entry in some:
            yield (
                context.instant(entry.at),
                context.say(_KINDS[entry.kind]),
                entry.order_reference,
                whole_number(entry.external_reference),
                to_decimal(entry.amount_minor, currency),
                to_decimal(entry.balance_minor, currency),
                currency,
                entry.counterpart,
            )


async def _account(context: RequestContext, connection: Connection) -> SeenAccount:
    return await find_seen_account(
        connection, context.customer, context.number("account"), user_id=context.person.if_only_own(Right.SEE_FUNDS)
    )


def month_in_address(context: PageContext) -> tuple[datetime, datetime]:
    """Returns the month in the address, in UTC; the current month if the address has none."""
    named = context.parameters.day("month")
    return statements.month_of(datetime(named.year, named.month, 1, tzinfo=UTC) if named else clock.now())


async def show_owed(context: RequestContext) -> Response:
    """Shows the last two years."""
    owed = []
    async with context.database.snapshot(context.person.scope) as connection:
        for one in await receivables.list_amounts_due(connection, context.customer):
            months = await receivables.read_months(connection, context.person.customer_id, one, _MONTHS_SHOWN)
            payments = await receivables.list_payments(connection, context.person.customer_id, one)
            owed.append((one, months, payments[:_PAYMENTS_SHOWN]))
    return context.page(
        "owed.html",
        owed=owed,
        month_name=_month_name(context),
        last_day=lambda since: (statements.month_of(since)[1] - timedelta(days=1)).date(),
    )


async def download_owed(context: RequestContext) -> Response:
    """Sends all months as a CSV file."""
    rows: list[Sequence[object]] = []
    async with context.database.snapshot(context.person.scope) as connection:
        for one in await receivables.list_amounts_due(connection, context.customer):
            months = await receivables.read_months(connection, context.person.customer_id, one, receivables.MOST_MONTHS)
            rows += [_row_owed(one, month) for month in months]
    return await context.csv("owed.csv", [context.say(one) for one in _COLUMNS_OWED], rows)


def _row_owed(owed: receivables.AmountDue, month: receivables.AmountDueMonth) -> Sequence[object]:
    amounts = (month.opening_minor, month.charged_minor, month.paid_minor, month.closing_minor)
    return (f"{month.since:%Y-%m}", *(to_decimal(amount, owed.currency) for amount in amounts), owed.currency)
