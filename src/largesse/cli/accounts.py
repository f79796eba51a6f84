"""`accounts assign` and `unassign`: who may use a funding account that is not open to all.

`accounts`: the funding accounts, and making, naming, closing and opening them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import click

from largesse.audit.service import Acting
from largesse.base.errors import OperatorError, Problem
from largesse.base.settings import ENVIRONMENTS
from largesse.cli.running import Commands, acting_operator, command, current_database, read_name
from largesse.cli.tables import customer_option, format_options, in_major_units, show
from largesse.customers.customer_store import find_customer, list_service_accounts
from largesse.customers.members import list_colleagues
from largesse.db.pool import Connection
from largesse.db.scope import OPERATOR
from largesse.ledger.access import Assigned, Holder, assign_accounts, list_assignable
from largesse.ledger.accounts import find_funding_account, list_accounts
from largesse.ledger.group_accounts import LONGEST_NAME, add_account, close_account, open_account, rename_account


def _to_whom(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --service-account and --user, of which one is given."""
    service_account = click.option("--service-account", metavar="KEY", help="By its key in the world file.")
    return service_account(
        click.option("--user", metavar="EMAIL", help="Somebody who belongs to the customer.")(function)
    )


@click.command("assign")
@click.argument("account")
@_to_whom
@command
async def assign(account: str, service_account: str | None, user: str | None) -> None:
    """Let a service account, or a person, use the funding account ACCOUNT, from the next request on.

    ACCOUNT is an id, a key of the world file, or CUSTOMER/KEY. Administrators use every account, members those assigned to them.
    """
    await _change(account, service_account, user, is_given=True)


@click.command("unassign")
@click.argument("account")
@_to_whom
@command
async def unassign(account: str, service_account: str | None, user: str | None) -> None:
    """Let a service account, or a person, no longer use the funding account ACCOUNT."""
    await _change(account, service_account, user, is_given=False)


async def _change(account: str, service_account: str | None, user: str | None, *, is_given: bool) -> None:
    if (service_account is None) is (user is None):
        raise OperatorError("say to whom: --service-account or --user")
    async with acting_operator() as (database, acting), database.transaction(OPERATOR) as connection:
        found = await find_funding_account(connection, account)
        holder = Holder.PERSON if service_account is None else Holder.SERVICE_ACCOUNT
        holder_id, subject = await _find(connection, found["customer"], service_account, user)
        of_holder = (holder, found["customer_id"], found["environment"], holder_id)
        accounts = await list_assignable(connection, *of_holder)
        one = next((account for account in accounts if account.id == found["id"]), None)
        if one is None:
            raise OperatorError(f"{found['name']} is closed")
        if one.open_to_all:
            raise OperatorError(f"{found['name']} is open to everybody at {found['customer']}")
        held = {one.id for one in accounts if one.is_assigned}
        wanted = held | {found["id"]} if is_given else held - {found["id"]}
        done = Assigned([], [])
        if wanted != held:
            done = await assign_accounts(connection, *of_holder, wanted)
        if done.before != done.after:
            await acting.record(
                connection,
                "account.assigned",
                subject,
                customer_id=found["customer_id"],
                environment=found["environment"],
                before={"accounts": done.before},
                after={"accounts": done.after},
            )
    click.echo(f"{service_account or user} {'may' if is_given else 'may not'} use {found['name']}.")


async def _find(
    connection: Connection, customer: str, service_account: str | None, user: str | None
) -> tuple[int, str]:
    """The id of the service account, or of the person, at a customer, and how the audit log names it. Raises OperatorError."""
    if user is not None:
        for colleague in await list_colleagues(connection):
            if (
                colleague.customer == customer
                and colleague.is_active
                and colleague.email.lower() == user.strip().lower()
            ):
                return colleague.id, colleague.email
        raise OperatorError(f"nobody belongs to {customer!r} by that address")
    for record in await list_service_accounts(connection, customer=customer):
        if record.key == service_account:
            return record.id, f"service account {record.id}"
    raise OperatorError(f"customer {customer!r} has no service account {service_account!r}")


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
    "--environment", default="production", show_default=True, type=click.Choice(ENVIRONMENTS), help="Where it pays."
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
        raise OperatorError(problem.detail) from None


def _named(found: Any) -> dict[str, Any]:
    return {"customer_id": found["customer_id"], "environment": found["environment"], "account_id": found["id"]}
