"""`orders` and `rebuild-reports`: listing placed orders, and rebuilding the read models."""

from __future__ import annotations

import click

from largesse.cli.running import Commands, acting_operator, command, current_database, progress
from largesse.cli.tables import customer_option, format_options, in_major_units, show
from largesse.customers.customer_store import find_customer
from largesse.db.scope import OPERATOR
from largesse.orders.listing import list_newest_orders

_COLUMNS = (
    "id",
    "created_at",
    "customer",
    "environment",
    "reference",
    "external_reference",
    "gift",
    "code_count",
    "delivery_mode",
    "scheduled_for",
    "source",
    "service_account",
    "account",
    "total",
    "currency",
)
_AFTER_ALL = 2_147_483_647


@click.group(cls=Commands)
def orders() -> None:
    """See placed orders."""


@orders.command("list")
@customer_option("its orders")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 10_000), help="How many at the most.")
@click.option("--before", default=_AFTER_ALL, type=click.IntRange(1, _AFTER_ALL), help="Only orders with smaller ids.")
@format_options
@command
async def orders_list(customer: str | None, limit: int, before: int, form: str | None) -> None:
    """List the newest orders, newest first, without codes, names or addresses."""
    async with current_database() as database, database.connection(OPERATOR) as connection:
        customer_id = None if customer is None else await find_customer(connection, customer)
        records = await list_newest_orders(connection, customer_id, before=before, limit=limit)
    rows = (in_major_units(record, "total") for record in records)
    show(form, _COLUMNS, rows, empty="There are no orders.")


@click.command("rebuild-reports")
@command
async def rebuild_reports() -> None:
    """Rebuild what people list, search and add up, from the orders.

    Orders can be placed meanwhile, and workers help. If interrupted, the workers finish it.
    """
    from largesse.reports.updates import rebuild

    async with acting_operator() as (database, acting):
        with progress("orders taken in") as show:
            total = await rebuild(database, acting, show)
    click.echo(f"The reports are made anew from {total:,} orders.")
