"""`service-accounts`: who the API acts as, and what each may order."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Any

import click

from largesse.base.errors import StartError
from largesse.base.money import AmountError, to_decimal, to_minor
from largesse.cli.running import Commands, acting_operator, command, current_database
from largesse.cli.tables import customer_option, format_options, show
from largesse.database import OPERATOR
from largesse.identity import (
    Limit,
    ServiceAccountRecord,
    find_customer,
    limit_service_account,
    list_limits,
)

_COLUMNS = ("id", "customer", "key", "name", "active", "currency", "largest_order", "daily")
_NONE = "none"


@click.group("service-accounts", cls=Commands)
def service_accounts() -> None:
    """See who the API acts as, and limit what each may order."""


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
    customer, slash, key = service_account.partition("/")
    if not slash or not customer or not key:
        raise StartError("name the service account as CUSTOMER/KEY, by the keys of the world file")
    if largest_order is None and daily is None:
        raise StartError("say what is to change: --largest-order or --daily")
    code = currency.strip().upper()
    async with acting_operator() as (database, acting), database.transaction(OPERATOR) as connection:
        found = next((one for one in await list_limits(connection, customer) if one.key == key), None)
        if found is None:
            raise StartError(f"customer {customer!r} has no service account {key!r}")
        customer_id = await find_customer(connection, customer)
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
        minor = to_minor(Decimal(text.strip()), currency)
    except (AmountError, InvalidOperation) as error:
        said = error if isinstance(error, AmountError) else "must be a number, or `none`"
        raise StartError(f"{option} {said}") from None
    if minor <= 0:
        raise StartError(f"{option} must be more than 0, or `none`")
    return minor
