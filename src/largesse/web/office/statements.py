"""Funding accounts of all customers, and the statement of each, a month at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime

from babel.dates import format_skeleton
from starlette.responses import Response

from largesse.base import clock
from largesse.base.i18n.templates import text
from largesse.base.money import to_decimal
from largesse.db.scope import OFFICE
from largesse.ledger.corrections_store import CorrectableAccount, find_correctable
from largesse.ledger.money_store import list_all_accounts
from largesse.ledger.statements import Statement, month_of, read_statement, statement_entries, statement_page
from largesse.staff.model import StaffRight
from largesse.web.kit.query import INT64
from largesse.web.office.context import OfficeContext

HERE = "/office/money/accounts"
_SHOWN = 50
_COLUMNS = ("date", "kind", "order", "reference", "amount", "balance", "currency", "counterpart")
ENTRY_NAMES: Mapping[str, str] = {
    "order": text("Order"),
    "refund": text("Refunded"),
    "top_up": text("Top-up"),
    "transfer": text("Transfer"),
    "settlement": text("Payment"),
    "correction": text("Correction"),
}


async def show(context: OfficeContext) -> Response:
    """Lists funding accounts: all, or those with the searched words in the name of the company or the account."""
    async with context.database.connection(OFFICE) as connection:
        accounts = await list_all_accounts(
            connection, context.query("q").strip(), context.parameters.number("after") or 0, _SHOWN + 1
        )
    more = accounts[_SHOWN - 1].id if len(accounts) > _SHOWN else None
    return context.page("accounts.html", query=context.query, accounts=accounts[:_SHOWN], more=more)


async def one(context: OfficeContext) -> Response:
    """Shows a month of an account, oldest entries first, a page at a time. Raises NotFound."""
    since, until = _month(context)
    after = context.parameters.number("after", INT64)
    async with context.database.snapshot(OFFICE) as connection:
        account = await find_correctable(connection, context.number("account"))
        statement = await read_statement(connection, account.customer_id, account.account_id, since, until)
        entries = await statement_page(connection, statement, after, _SHOWN + 1)
    return context.page(
        "account_statement.html",
        account=account,
        statement=statement,
        entries=entries[:_SHOWN],
        more=entries[_SHOWN - 1].id if len(entries) > _SHOWN else None,
        is_first=after is None,
        month=since,
        earlier=month_of(since, -1)[0],
        later=until if until <= clock.now() else None,
        kinds={kind: context.say(name) for kind, name in ENTRY_NAMES.items()},
        month_name=lambda at: str(format_skeleton("yMMMM", at, locale=context.language.locale)),
        may_change=context.person.may(StaffRight.MONEY),
    )


async def download(context: OfficeContext) -> Response:
    """Sends a whole month of an account as a CSV file. Raises NotFound."""
    since, until = _month(context)
    async with context.database.connection(OFFICE) as connection:
        account = await find_correctable(connection, context.number("account"))
        statement = await read_statement(connection, account.customer_id, account.account_id, since, until)
    name = f"{account.customer} {account.account or account.kind} {since:%Y-%m}.csv"
    return await context.csv(name, _COLUMNS, _rows(context, account, statement))


async def _rows(
    context: OfficeContext, account: CorrectableAccount, statement: Statement
) -> AsyncIterator[Sequence[object]]:
    async for entries in statement_entries(context.database, OFFICE, statement):
        for entry in entries:
            yield (
                entry.at.isoformat(timespec="seconds"),
                entry.kind,
                entry.order_reference,
                entry.external_reference,
                to_decimal(entry.amount_minor, account.currency),
                to_decimal(entry.balance_minor, account.currency),
                account.currency,
                entry.counterpart,
            )


def _month(context: OfficeContext) -> tuple[datetime, datetime]:
    """Returns the month in the address, in UTC; the current month if the address has none."""
    named = context.parameters.day("month")
    return month_of(datetime(named.year, named.month, 1, tzinfo=UTC) if named else clock.now())
