"""`accounts`: list, create, rename, close and open funding accounts, and assign who may use them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import click

from largesse.base.errors import OperatorError
from largesse.base.settings import ENVIRONMENTS
from largesse.cli.running import Commands, acting_operator, command, current_database, operator_actor, read_name
from largesse.cli.tables import customer_option, format_options, in_major_units, show
from largesse.customers.actor import Actor, command_actor
from largesse.customers.customer_store import find_service_account
from largesse.customers.member_store import find_member
from largesse.db.pool import Connection, Row
from largesse.db.scope import OPERATOR
from largesse.ledger.accounts import (
    LONGEST_NAME,
    assign_account,
    close_account,
    create_account,
    open_account,
    rename_account,
)
from largesse.ledger.store import Holder, find_funding_account, list_accounts


@asynccontextmanager
async def operator_on_account(account: str) -> AsyncIterator[tuple[Actor, Row]]:
    """Yields the command as the actor of an operation on a funding account, and the account. Raises OperatorError."""
    async with acting_operator() as (database, acting):
        async with database.connection(OPERATOR) as connection:
            found = await find_funding_account(connection, account)
        yield command_actor(database, acting).on_behalf_of(found["customer_id"], found["environment"]), found


def _to_whom(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --service-account and --user, of which one is given."""
    service_account = click.option("--service-account", metavar="KEY", help="By its key in the seed file.")
    return service_account(
        click.option("--user", metavar="EMAIL", help="Somebody who belongs to the customer.")(function)
    )


@click.command("assign")
@click.argument("account")
@_to_whom
@command
async def assign(account: str, service_account: str | None, user: str | None) -> None:
    """Let a service account, or a person, use the funding account ACCOUNT, from the next request on.

    ACCOUNT is an id, a key of the seed file, or CUSTOMER/KEY. Administrators use every account, members those assigned to them.
    """
    await _assign(account, service_account, user, may_use=True)


@click.command("unassign")
@click.argument("account")
@_to_whom
@command
async def unassign(account: str, service_account: str | None, user: str | None) -> None:
    """Let a service account, or a person, no longer use the funding account ACCOUNT."""
    await _assign(account, service_account, user, may_use=False)


async def _assign(account: str, service_account: str | None, user: str | None, *, may_use: bool) -> None:
    if (service_account is None) is (user is None):
        raise OperatorError("say to whom: --service-account or --user")
    async with acting_operator() as (database, acting):
        async with database.connection(OPERATOR) as connection:
            found = await find_funding_account(connection, account)
            holder_id = await _find_holder(connection, found["customer"], service_account, user)
        holder = Holder.PERSON if service_account is None else Holder.SERVICE_ACCOUNT
        actor = command_actor(database, acting).on_behalf_of(found["customer_id"], found["environment"])
        await assign_account(actor, holder, holder_id, found["id"], may_use=may_use)
    click.echo(f"{service_account or user} {'may' if may_use else 'may not'} use {found['name']}.")


async def _find_holder(connection: Connection, customer: str, service_account: str | None, user: str | None) -> int:
    """Returns the id of a customer's service account or person. Raises OperatorError."""
    if user is not None:
        return (await find_member(connection, customer, user)).id
    assert service_account is not None, "one of the two is given"
    return (await find_service_account(connection, customer, service_account)).id


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
    """List, create, rename, close and open funding accounts, and assign who may use them."""


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
    help="The environment in which it pays.",
)
@command
async def accounts_create(customer: str, name: str, currency: str, environment: str) -> None:
    """Create a funding account called NAME for the customer CUSTOMER, empty and assigned to nobody."""
    name = read_name(name, LONGEST_NAME)
    async with operator_actor(customer, environment) as actor:
        account_id, key = await create_account(actor, currency=currency.strip().upper(), name=name)
    click.echo(f"{name} is {customer}/{key} (id {account_id}).")


@accounts.command("rename")
@click.argument("account")
@click.argument("name")
@command
async def accounts_rename(account: str, name: str) -> None:
    """Rename the funding account ACCOUNT. Its key stays."""
    name = read_name(name, LONGEST_NAME)
    async with operator_on_account(account) as (actor, found):
        await rename_account(actor, found["id"], name)
    click.echo(f"{found['customer']}/{found['key']} is called {name} now.")


@accounts.command("close")
@click.argument("account")
@command
async def accounts_close(account: str) -> None:
    """Close the empty funding account ACCOUNT. It can no longer pay for orders or be topped up."""
    async with operator_on_account(account) as (actor, found):
        await close_account(actor, found["id"])
    click.echo(f"{found['name']} is closed.")


@accounts.command("open")
@click.argument("account")
@command
async def accounts_open(account: str) -> None:
    """Open the closed funding account ACCOUNT again."""
    async with operator_on_account(account) as (actor, found):
        await open_account(actor, found["id"])
    click.echo(f"{found['name']} is open.")
