"""`service-accounts`: who the API acts as: making them, switching them on and off, and what each may order."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import click

from largesse.base.amounts import UnreadableAmount, read_amount
from largesse.base.errors import OperatorError
from largesse.base.money import to_decimal
from largesse.cli.running import Commands, acting_operator, command, current_database, read_name
from largesse.cli.tables import customer_option, format_options, show
from largesse.customers.api_keys import MOST_NAME
from largesse.customers.customers import find_customer
from largesse.customers.restrictions import Limit
from largesse.customers.service_accounts import (
    ServiceAccountRecord,
    TooManyServiceAccounts,
    add_service_account,
    limit_service_account,
    list_limits,
    switch_service_account,
)
from largesse.db.pool import Connection
from largesse.db.scope import OPERATOR

_COLUMNS = ("id", "customer", "key", "name", "active", "currency", "largest_order", "daily")
_NONE = "none"


@click.group("service-accounts", cls=Commands)
def service_accounts() -> None:
    """See who the API acts as; make, limit, switch off and switch on service accounts."""


@service_accounts.command("list")
@customer_option("this one's service accounts")
@format_options
@command
async def service_accounts_list(customer: str | None, form: str | None) -> None:
    """List service accounts, with a line for each currency in which what they may order is limited."""
    async with current_database() as database, database.connection(OPERATOR) as connection:
        records = await list_limits(connection, customer)
    show(form, _COLUMNS, (row for record in records for row in _rows(record)), empty="There are none.")


@service_accounts.command("limit")
@click.argument("service_account", metavar="CUSTOMER/KEY")
@click.option("--currency", required=True, metavar="CODE", help="In which currency, such as GBP.")
@click.option("--largest-order", metavar="AMOUNT", help="What one order may cost, or `none`.")
@click.option("--daily", metavar="AMOUNT", help="What the orders of a day (UTC) may cost, or `none`.")
@command
async def service_accounts_limit(
    service_account: str, currency: str, largest_order: str | None, daily: str | None
) -> None:
    """Limit what the service account CUSTOMER/KEY may order, with all its keys, from the next order on.

    What an order costs counts, whatever becomes of it later. A daily sum counts orders from when it was first limited, in each
    environment for itself. What no option speaks of stays as it is.
    """
    if largest_order is None and daily is None:
        raise OperatorError("say what is to change: --largest-order or --daily")
    code = currency.strip().upper()
    async with acting_operator() as (database, acting), database.transaction(OPERATOR) as connection:
        customer_id, found = await _find(connection, service_account)
        before = found.limits.get(code, Limit())
        limit = Limit(
            _read("--largest-order", largest_order, code, before.largest_order_minor),
            _read("--daily", daily, code, before.daily_minor),
        )
        await limit_service_account(
            connection, customer_id=customer_id, service_account_id=found.id, currency=code, limit=limit
        )
        await acting.record(
            connection,
            "service_account.limited",
            f"service account {service_account}"[:200],
            customer_id=customer_id,
            before=before.told(code),
            after=limit.told(code),
        )
    said = limit.told(code)
    click.echo(f"{service_account} may order {said['largest_order']} at once and {said['daily']} a day.")


@service_accounts.command("create")
@click.argument("customer")
@click.argument("name")
@command
async def service_accounts_create(customer: str, name: str) -> None:
    """Make the customer CUSTOMER a service account called NAME, which begins without a key and with the funding accounts open to all."""
    name = read_name(name, MOST_NAME)
    async with acting_operator() as (database, acting), database.transaction(OPERATOR) as connection:
        customer_id = await find_customer(connection, customer)
        try:
            account_id, key = await add_service_account(connection, customer_id, name)
        except TooManyServiceAccounts as error:
            raise OperatorError(error.detail) from None
        await acting.record(
            connection,
            "service_account.created",
            f"service account {account_id}",
            customer_id=customer_id,
            after={"name": name, "key": key},
        )
    click.echo(f"{name} is {customer}/{key} (id {account_id}).")


@service_accounts.command("switch-off")
@click.argument("service_account", metavar="CUSTOMER/KEY")
@command
async def service_accounts_switch_off(service_account: str) -> None:
    """Switch the service account CUSTOMER/KEY off: its keys are refused from their next request on."""
    await _switch(service_account, active=False)


@service_accounts.command("switch-on")
@click.argument("service_account", metavar="CUSTOMER/KEY")
@command
async def service_accounts_switch_on(service_account: str) -> None:
    """Switch the service account CUSTOMER/KEY on again, with the keys that it has."""
    await _switch(service_account, active=True)


async def _switch(service_account: str, *, active: bool) -> None:
    async with acting_operator() as (database, acting), database.transaction(OPERATOR) as connection:
        customer_id, found = await _find(connection, service_account)
        if found.active is not active:
            await switch_service_account(connection, customer_id, found.id, active=active)
            await acting.record(
                connection,
                "service_account.switched",
                f"service account {found.id}",
                customer_id=customer_id,
                after={"name": found.name, "active": active},
            )
    click.echo(f"{found.name} is switched {'on' if active else 'off'}.")


async def _find(connection: Connection, service_account: str) -> tuple[int, ServiceAccountRecord]:
    """The customer's id, and the service account of CUSTOMER/KEY. Raises OperatorError."""
    customer, _, key = service_account.partition("/")
    if not customer or not key:
        raise OperatorError("name the service account as CUSTOMER/KEY, by the keys of the world file")
    found = next((one for one in await list_limits(connection, customer) if one.key == key), None)
    if found is None:
        raise OperatorError(f"customer {customer!r} has no service account {key!r}")
    return await find_customer(connection, customer), found


def _rows(record: ServiceAccountRecord) -> Iterator[dict[str, Any]]:
    of_account = {
        "id": record.id,
        "customer": record.customer,
        "key": record.key,
        "name": record.name,
        "active": record.active,
    }
    if not record.limits:
        yield {**of_account, "currency": None, "largest_order": None, "daily": None}
    for currency, limit in record.limits.items():
        yield {
            **of_account,
            "currency": currency,
            "largest_order": _major(limit.largest_order_minor, currency),
            "daily": _major(limit.daily_minor, currency),
        }


def _major(minor: int | None, currency: str) -> Decimal | None:
    return None if minor is None else to_decimal(minor, currency)


def _read(option: str, text: str | None, currency: str, before: int | None) -> int | None:
    """An amount in minor units; None for none, `before` where the option was not given."""
    if text is None:
        return before
    if text.strip().lower() == _NONE:
        return None
    try:
        return read_amount(text, currency)
    except UnreadableAmount as error:
        raise OperatorError(f"{option}: {error} Or type `none`.") from None
