"""`accounts`: the funding accounts, and making, naming, closing and opening them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import click

from largesse.audit.acting import Acting
from largesse.base.errors import Problem, StartError
from largesse.base.settings import ENVIRONMENTS
from largesse.cli.assigning import assign, unassign
from largesse.cli.names import read_name
from largesse.cli.running import Commands, acting_operator, command, current_database
from largesse.cli.tables import customer_option, format_options, in_major_units, show
from largesse.database.pool import Connection
from largesse.database.scope import OPERATOR
from largesse.funding.accounts import find_funding_account, list_accounts
from largesse.funding.managing import (
    LONGEST_NAME,
    add_account,
    close_account,
    open_account,
    rename_account,
)
from largesse.identity.customers import find_customer

_COLUMNS = (
    "id",
    "customer",
    "key",
    "name",
    "environment",
    "is_master",
    "open_to_all",
    "service_accounts",
    "people",
    "balance",
    "currency",
    "is_closed",
)


@click.group(cls=Commands)
def accounts() -> None:
    """See the funding accounts and what they hold; make, rename, close and open them, and say who may use them."""


accounts.add_command(assign)
accounts.add_command(unassign)


@accounts.command("list")
@customer_option("its accounts")
@format_options
@command
async def accounts_list(customer: str | None, form: str | None) -> None:
    """List the funding accounts with their balances, and the service accounts that may draw from each."""
    async with current_database() as database, database.connection(OPERATOR) as connection:
        records = await list_accounts(connection, customer)
    rows = (in_major_units(record, "balance") for record in records)
    show(form, _COLUMNS, rows, empty="There are no funding accounts.")


@accounts.command("create")
@click.argument("customer")
@click.argument("name")
@click.option("--currency", required=True, help="ISO 4217 code of its currency.")
@click.option(
    "--environment",
    default="production",
    show_default=True,
    type=click.Choice(ENVIRONMENTS),
    help="Where it pays.",
)
@command
async def accounts_create(customer: str, name: str, currency: str, environment: str) -> None:
    """Make the customer CUSTOMER a funding account called NAME, which begins empty and with nobody assigned to it."""
    name = read_name(name, LONGEST_NAME)
    async with _acting() as (connection, acting):
        account_id = await add_account(
            connection,
            acting,
            customer_id=await find_customer(connection, customer),
            environment=environment,
            currency=currency.strip().upper(),
            name=name,
        )
        made = await find_funding_account(connection, str(account_id))
    click.echo(f"{name} is {made['customer']}/{made['key']} (id {account_id}).")


@accounts.command("rename")
@click.argument("account")
@click.argument("name")
@command
async def accounts_rename(account: str, name: str) -> None:
    """Give the funding account ACCOUNT another name; its key stays."""
    name = read_name(name, LONGEST_NAME)
    async with _acting() as (connection, acting):
        found = await find_funding_account(connection, account)
        await rename_account(connection, acting, name=name, **_named(found))
    click.echo(f"{found['customer']}/{found['key']} is called {name} now.")


@accounts.command("close")
@click.argument("account")
@command
async def accounts_close(account: str) -> None:
    """Close the funding account ACCOUNT, which must hold nothing: no order is paid from it and no top-up paid into it."""
    async with _acting() as (connection, acting):
        found = await find_funding_account(connection, account)
        await close_account(connection, acting, **_named(found))
    click.echo(f"{found['name']} is closed.")


@accounts.command("open")
@click.argument("account")
@command
async def accounts_open(account: str) -> None:
    """Open the closed funding account ACCOUNT again."""
    async with _acting() as (connection, acting):
        found = await find_funding_account(connection, account)
        await open_account(connection, acting, **_named(found))
    click.echo(f"{found['name']} is open.")


@asynccontextmanager
async def _acting() -> AsyncIterator[tuple[Connection, Acting]]:
    """A transaction of the operator, whose refusals are one line."""
    try:
        async with acting_operator() as (database, acting), database.transaction(OPERATOR) as connection:
            yield connection, acting
    except Problem as problem:
        raise StartError(problem.detail) from None


def _named(found: Any) -> dict[str, Any]:
    return {
        "customer_id": found["customer_id"],
        "environment": found["environment"],
        "account_id": found["id"],
    }
