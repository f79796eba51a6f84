"""`accounts assign` and `unassign`: who may use a funding account that is not open to all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from largesse.base.errors import StartError
from largesse.cli.running import acting_operator, command
from largesse.database.pool import Connection
from largesse.database.scope import OPERATOR
from largesse.funding.accounts import find_funding_account
from largesse.funding.assigning import Assigned, Holder, assign_accounts, list_assignable
from largesse.identity.limits import list_limits
from largesse.people.managing import list_colleagues


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
        raise StartError("say to whom: --service-account or --user")
    async with acting_operator() as (database, acting), database.transaction(OPERATOR) as connection:
        found = await find_funding_account(connection, account)
        holder = Holder.PERSON if service_account is None else Holder.SERVICE_ACCOUNT
        holder_id, subject = await _find(connection, found["customer"], service_account, user)
        of_holder = (holder, found["customer_id"], found["environment"], holder_id)
        accounts = await list_assignable(connection, *of_holder)
        one = next((account for account in accounts if account.id == found["id"]), None)
        if one is None:
            raise StartError(f"{found['name']} is closed")
        if one.open_to_all:
            raise StartError(f"{found['name']} is open to everybody at {found['customer']}")
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
    """The id of the service account, or of the person, at a customer, and how the audit log names it. Raises StartError."""
    if user is not None:
        for colleague in await list_colleagues(connection):
            if (
                colleague.customer == customer
                and colleague.is_active
                and colleague.email.lower() == user.strip().lower()
            ):
                return colleague.id, colleague.email
        raise StartError(f"nobody belongs to {customer!r} by that address")
    for record in await list_limits(connection, customer):
        if record.key == service_account:
            return record.id, f"service account {record.id}"
    raise StartError(f"customer {customer!r} has no service account {service_account!r}")
