"""`accounts`: list, create, rename, close and open funding accounts, and assign who may use them. `statement`: list their entries."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import click
from msgspec.structs import asdict

from largesse.base.errors import OperatorError
from largesse.base.money import label, to_decimal
from largesse.cli.running import (
    Command,
    Commands,
    acting_operator,
    current_database,
    operator_actor,
    read_name,
    reading,
)
from largesse.cli.tables import customer_option, environment_option, format_options, in_major_units, listing, show
from largesse.customers.actor import Actor
from largesse.customers.customer_store import find_service_account
from largesse.customers.members import find_member
from largesse.db.pool import Row
from largesse.db.scope import OPERATOR
from largesse.ledger.accounts import (
    LONGEST_NAME,
    assign_account,
    close_account,
    create_account,
    open_account,
    rename_account,
)
from largesse.ledger.statements import StatementEntry, month_of, read_statement, statement_entries
from largesse.ledger.store import Holder, find_funding_account, list_accounts

_COLUMNS = (
    "id", "customer", "key", "name", "environment", "is_master", "open_to_all", "service_accounts", "people", "balance",
    "currency", "is_closed",
)  # fmt: skip
_STATEMENT_COLUMNS = ("at", "kind", "order_reference", "external_reference", "amount", "balance", "counterpart")


@asynccontextmanager
async def operator_on_account(account: str) -> AsyncIterator[tuple[Actor, Row]]:
    """Yields the actor for an operation of this command on a funding account, and the account. Raises OperatorError if there is none."""
    async with acting_operator() as (database, actor):
        found = await database.read(OPERATOR, find_funding_account, account)
        yield actor.on_behalf_of(found["customer_id"], found["environment"]), found


@click.group(cls=Commands)
def accounts() -> None:
    """List, create, rename, close and open funding accounts, and assign who may use them."""


_service_account = click.option("--service-account", metavar="KEY", help="By its key in the seed file.")
_user = click.option("--user", metavar="EMAIL", help="Somebody who belongs to the customer.")


@accounts.command("assign")
@click.argument("account")
@_service_account
@_user
async def accounts_assign(account: str, service_account: str | None, user: str | None) -> None:
    """Let a service account, or a person, use the funding account ACCOUNT, from the next request on.

    ACCOUNT is an id, a key of the seed file, or CUSTOMER/KEY. Administrators use every account, members those assigned to them.
    """
    await _assign(account, service_account, user, may_use=True)


@accounts.command("unassign")
@click.argument("account")
@_service_account
@_user
async def accounts_unassign(account: str, service_account: str | None, user: str | None) -> None:
    """Let a service account, or a person, no longer use the funding account ACCOUNT."""
    await _assign(account, service_account, user, may_use=False)


async def _assign(account: str, service_account: str | None, user: str | None, *, may_use: bool) -> None:
    if (service_account is None) is (user is None):
        raise OperatorError("give --service-account or --user")
    async with acting_operator() as (database, operator):
        async with database.connection(OPERATOR) as connection:
            found = await find_funding_account(connection, account)
            if user is not None:
                holder, holder_id = Holder.PERSON, (await find_member(connection, found["customer"], user)).id
            else:
                holder = Holder.SERVICE_ACCOUNT
                holder_id = (await find_service_account(connection, found["customer"], service_account or "")).id
        actor = operator.on_behalf_of(found["customer_id"], found["environment"])
        await assign_account(actor, holder, holder_id, found["id"], may_use=may_use)
    click.echo(f"{service_account or user} {'may' if may_use else 'may not'} use {found['name']}.")


@accounts.command("list")
@customer_option("its accounts")
@format_options
async def accounts_list(customer: str | None, form: str | None) -> None:
    """List the funding accounts with their balances, and the service accounts that may draw from each."""
    async with reading(customer) as connection:
        records = await list_accounts(connection, [customer] if customer else None)
    rows = (in_major_units(record, "balance") for record in records)
    show(form, _COLUMNS, rows, empty="There are no funding accounts.")


@accounts.command("create")
@click.argument("customer")
@click.argument("name")
@click.option("--currency", required=True, help="ISO 4217 code of its currency.")
@environment_option("The environment in which it pays.")
async def accounts_create(customer: str, name: str, currency: str, environment: str) -> None:
    """Create a funding account called NAME for the customer CUSTOMER, empty and assigned to nobody."""
    name = read_name(name, LONGEST_NAME)
    async with operator_actor(customer, environment) as actor:
        account_id, key = await create_account(actor, currency=currency.strip().upper(), name=name)
    click.echo(f"{name} is {customer}/{key} (id {account_id}).")


@accounts.command("rename")
@click.argument("account")
@click.argument("name")
async def accounts_rename(account: str, name: str) -> None:
    """Rename the funding account ACCOUNT. Its key stays."""
    name = read_name(name, LONGEST_NAME)
    async with operator_on_account(account) as (actor, found):
        await rename_account(actor, found["id"], name)
    click.echo(f"{found['customer']}/{found['key']} is called {name} now.")


@accounts.command("close")
@click.argument("account")
async def accounts_close(account: str) -> None:
    """Close the empty funding account ACCOUNT. It can no longer pay for orders or be topped up."""
    async with operator_on_account(account) as (actor, found):
        await close_account(actor, found["id"])
    click.echo(f"{found['name']} is closed.")


@accounts.command("open")
@click.argument("account")
async def accounts_open(account: str) -> None:
    """Open the closed funding account ACCOUNT again."""
    async with operator_on_account(account) as (actor, found):
        await open_account(actor, found["id"])
    click.echo(f"{found['name']} is open.")


@click.command(cls=Command)
@click.argument("account")
@click.option("--month", metavar="YYYY-MM", help="Only this month, in UTC; otherwise everything.")
@format_options
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
        month = datetime.strptime(text, "%Y-%m").replace(tzinfo=UTC)
        return month_of(month, -1)[1], month_of(month)[1]  # the month before must also be in the calendar
    except ValueError:
        raise OperatorError("--month must look like 2026-11") from None
