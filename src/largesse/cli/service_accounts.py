"""`service-accounts`: create service accounts, switch them on and off, and limit what they may order."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import click

from largesse.base.errors import OperatorError
from largesse.cli.running import Commands, operator_actor, read_limit, read_name, reading
from largesse.cli.tables import customer_option, format_options, major, show
from largesse.customers.actor import Actor
from largesse.customers.api_keys import MOST_NAME
from largesse.customers.customer_store import ServiceAccount, list_service_accounts
from largesse.customers.service_accounts import (
    create_service_account,
    limit_service_account,
    named_service_account,
    switch_service_account,
)

_COLUMNS = ("id", "customer", "key", "name", "active", "currency", "largest_order", "daily")


@click.group("service-accounts", cls=Commands)
def service_accounts() -> None:
    """List, create, limit, deactivate and activate service accounts. API keys belong to them."""


@service_accounts.command("list")
@customer_option("this one's service accounts")
@format_options
async def service_accounts_list(customer: str | None, form: str | None) -> None:
    """List service accounts, with a line for each currency that has a limit."""
    async with reading(customer) as connection:
        accounts = await list_service_accounts(connection, customer=customer)
    show(
        form, _COLUMNS, (row for account in accounts for row in _rows(account)), empty="There are no service accounts."
    )


@service_accounts.command("limit")
@click.argument("service_account", metavar="CUSTOMER/KEY")
@click.option("--currency", required=True, metavar="CODE", help="The currency, such as GBP.")
@click.option("--largest-order", metavar="AMOUNT", help="What one order may cost, or `none`.")
@click.option("--daily", metavar="AMOUNT", help="What the orders of a day (UTC) may cost, or `none`.")
async def service_accounts_limit(
    service_account: str, currency: str, largest_order: str | None, daily: str | None
) -> None:
    """Limit what the service account CUSTOMER/KEY may order, with all its keys, from the next order on.

    An order counts with its price, even if it is cancelled later. A daily limit counts orders from when it was first set, in each
    environment separately. Options that you leave out change nothing.
    """
    if largest_order is None and daily is None:
        raise OperatorError("say what to change: --largest-order or --daily")
    code = currency.strip().upper()
    async with _named(service_account) as (actor, account):
        limit = await limit_service_account(
            actor,
            account.id,
            code,
            largest_order_minor=read_limit("--largest-order", largest_order, code, ...),
            daily_minor=read_limit("--daily", daily, code, ...),
        )
    texts = limit.texts(code)
    click.echo(f"{service_account} may order {texts['largest_order']} at once and {texts['daily']} a day.")


@service_accounts.command("create")
@click.argument("customer")
@click.argument("name")
async def service_accounts_create(customer: str, name: str) -> None:
    """Create a service account called NAME for CUSTOMER. It has no API key yet, and may use the funding accounts open to all."""
    name = read_name(name, MOST_NAME)
    async with operator_actor(customer) as actor:
        account_id, key = await create_service_account(actor, name)
    click.echo(f"{name} is {customer}/{key} (id {account_id}).")


@service_accounts.command("switch-off")
@click.argument("service_account", metavar="CUSTOMER/KEY")
async def service_accounts_switch_off(service_account: str) -> None:
    """Switch the service account CUSTOMER/KEY off: its keys are refused from their next request on."""
    await _switch(service_account, active=False)


@service_accounts.command("switch-on")
@click.argument("service_account", metavar="CUSTOMER/KEY")
async def service_accounts_switch_on(service_account: str) -> None:
    """Switch the service account CUSTOMER/KEY on again, with the keys that it has."""
    await _switch(service_account, active=True)


async def _switch(service_account: str, *, active: bool) -> None:
    async with _named(service_account) as (actor, account):
        await switch_service_account(actor, account.id, active=active)
    click.echo(f"{account.name} is switched {'on' if active else 'off'}.")


@asynccontextmanager
async def _named(service_account: str) -> AsyncIterator[tuple[Actor, ServiceAccount]]:
    """Yields the service account CUSTOMER/KEY, and the actor on behalf of its customer. Raises OperatorError."""
    customer, _, key = service_account.partition("/")
    if not customer or not key:
        raise OperatorError("name the service account as CUSTOMER/KEY, by the keys of the seed file")
    async with operator_actor() as actor:
        account = await named_service_account(actor, customer, key)
        yield actor.on_behalf_of(account.customer_id), account


def _rows(account: ServiceAccount) -> Iterator[dict[str, Any]]:
    columns = {name: getattr(account, name) for name in _COLUMNS[:5]}
    if not account.limits:
        yield {**columns, "currency": None, "largest_order": None, "daily": None}
    for currency, limit in account.limits.items():
        yield {
            **columns,
            "currency": currency,
            "largest_order": major(limit.largest_order_minor, currency),
            "daily": major(limit.daily_minor, currency),
        }
