"""`top-up` and `statement`: credit a funding account, and list its entries."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import click

from largesse.base import amounts
from largesse.base.errors import OperatorError
from largesse.base.money import label, to_decimal
from largesse.cli.accounts import operator_on_account
from largesse.cli.running import command, current_database
from largesse.cli.tables import format_options, listing
from largesse.db.scope import OPERATOR
from largesse.ledger.statements import StatementEntry, month_of, read_statement, statement_entries
from largesse.ledger.store import find_funding_account
from largesse.ledger.top_ups import credit_account

_MAX_REFERENCE = 128
_STATEMENT_COLUMNS = ("at", "kind", "order_reference", "external_reference", "amount", "balance", "counterpart")


def read_amount(text: str, currency: str) -> int:
    """Returns the minor units of an amount as typed in English, in major units. Raises OperatorError."""
    try:
        return amounts.read_amount(text, currency)
    except amounts.UnreadableAmount as error:
        raise OperatorError(f"AMOUNT: {error}") from None


def read_reference(text: str) -> str:
    """Returns the reference of a payment, without blanks around it. Raises OperatorError."""
    reference = text.strip()
    if not 0 < len(reference) <= _MAX_REFERENCE or not reference.isprintable():
        raise OperatorError(f"--reference must have 1 to {_MAX_REFERENCE} printable characters")
    return reference


@click.command(
    "top-up",
    context_settings={"ignore_unknown_options": True},  # an amount may begin with a minus
)
@click.argument("account")
@click.argument("amount")
@click.option("--reference", help="Names the top-up; repeating one with the same amount changes nothing.")
@command
async def top_up_account(account: str, amount: str, reference: str | None) -> None:
    """Credit the funding account ACCOUNT with AMOUNT, in major units of its currency.

    ACCOUNT is an id, a key of the seed file, or CUSTOMER/KEY.
    """
    name = None if reference is None else read_reference(reference)
    async with operator_on_account(account) as (actor, found):
        credit = await credit_account(actor, found, read_amount(amount, found["currency"]), name)
    click.echo(f"{found['name']} now holds {label(credit.balance_minor, found['currency'])}.")


@click.command()
@click.argument("account")
@click.option("--month", metavar="YYYY-MM", help="Only this month, in UTC; otherwise everything.")
@format_options
@command
async def statement(account: str, month: str | None, form: str | None) -> None:
    """Print every entry of the funding account ACCOUNT, oldest first, each with the balance after it.

    ACCOUNT is an id, a key of the seed file, or CUSTOMER/KEY.
    """
    since, until = (None, None) if month is None else _read_month(month)
    async with current_database() as database:
        async with database.connection(OPERATOR) as connection:
            found = await find_funding_account(connection, account)
            read = await read_statement(connection, found["customer_id"], found["id"], since, until)
        if form is None:
            click.echo(f"{found['name']} ({found['customer']}/{found['key']}), {month or 'all entries'}")
            click.echo(f"Opening balance {label(read.opening_minor, found['currency'])}")
        with listing(form, _STATEMENT_COLUMNS, empty="No entries.") as add:
            async for entries in statement_entries(database, OPERATOR, read):
                add(_statement_row(entry, found["currency"]) for entry in entries)
        if form is None:
            click.echo(f"Closing balance {label(read.closing_minor, found['currency'])}")


def _statement_row(entry: StatementEntry, currency: str) -> dict[str, Any]:
    return {
        **asdict(entry),
        "amount": to_decimal(entry.amount_minor, currency),
        "balance": to_decimal(entry.balance_minor, currency),
    }


def _read_month(text: str) -> tuple[datetime, datetime]:
    """Returns the first instant of a month, and of the next one. Raises OperatorError."""
    try:
        return month_of(datetime.strptime(text, "%Y-%m").replace(tzinfo=UTC))
    except ValueError:
        raise OperatorError("--month must look like 2026-11") from None
