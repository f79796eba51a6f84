"""`suppliers`: list and check suppliers, and show their catalogues, orders and costs."""

from collections.abc import Iterator
from datetime import date, datetime
from typing import Any

import click

from largesse.base import clock
from largesse.base.errors import OperatorError
from largesse.base.money import to_decimal
from largesse.base.settings import load_settings
from largesse.cli.running import Commands, acting_operator, reading
from largesse.cli.tables import format_options, major, show
from largesse.db.pool import Row
from largesse.db.scope import OPERATOR
from largesse.suppliers.description import read_descriptions
from largesse.suppliers.model import State
from largesse.suppliers.service import as_seed, find_description, import_offers, list_costs, opened, try_out
from largesse.suppliers.store import list_naming, list_newest

_ORDERS = (
    "id", "supplier", "supplier_order", "order", "line", "product", "value", "attempt", "state", "reason", "failures", "created_at",
    "cost", "cost_currency",
)  # fmt: skip
_MOST_REFUSED = 50  # how many refused products are shown
_COSTS = ("supplier", "product", "bought", "kept", "value", "value_currency", "cost", "cost_currency", "margin")


@click.group(cls=Commands)
def suppliers() -> None:
    """List and check suppliers, their catalogues, orders and costs."""


@suppliers.command("list")
@format_options
async def suppliers_list(form: str | None) -> None:
    """List the suppliers of LARGESSE_SUPPLIERS with the active products that name them."""
    described = read_descriptions(load_settings().suppliers)
    async with reading() as connection:
        rows = await list_naming(connection)
    naming = {one.name: sum(one.name in row["suppliers"] for row in rows) for one in described}
    show(
        form,
        ("name", "kind", "products", "secrets"),
        (
            {
                "name": one.name,
                "kind": one.kind,
                "products": naming[one.name],
                "secrets": ", ".join(sorted(one.secrets)),
            }
            for one in described
        ),
        empty="LARGESSE_SUPPLIERS names no suppliers.",
    )


@suppliers.command("check")
@click.argument("name")
async def suppliers_check(name: str) -> None:
    """Call the supplier NAME for an order that does not exist. It buys nothing."""
    click.echo(await try_out(find_description(load_settings(), name)))


@suppliers.command("balance")
@click.argument("name")
async def suppliers_balance(name: str) -> None:
    """Print the balance at the supplier NAME."""
    async with opened(find_description(load_settings(), name)) as supplier:
        balance = await supplier.supplier.balance()
    if balance is None:
        raise OperatorError(f"supplier {name} does not report its balance")
    click.echo(f"{to_decimal(balance.amount_minor, balance.currency)} {balance.currency}")


@suppliers.command("catalogue")
@click.argument("name")
async def suppliers_catalogue(name: str) -> None:
    """Print the catalogue of the supplier NAME as inactive products of a seed file."""
    async with opened(find_description(load_settings(), name)) as supplier:
        offers = await supplier.supplier.catalogue()
    click.echo(as_seed(name, offers), nl=False)


@suppliers.command("import")
@click.argument("name")
async def suppliers_import(name: str) -> None:
    """Import the catalogue of the supplier NAME as drafts of products. Skips products that exist."""
    async with opened(find_description(load_settings(), name)) as supplier:
        offers = await supplier.supplier.catalogue()
    async with acting_operator() as (database, actor), database.connection(OPERATOR) as connection:
        imported = await import_offers(actor, connection, name, offers)
    for one in imported.refused[:_MOST_REFUSED]:
        click.echo(f"Left out: {one}", err=True)
    if len(imported.refused) > _MOST_REFUSED:
        click.echo(f"… and {len(imported.refused) - _MOST_REFUSED} more mistakes", err=True)
    click.echo(f"{imported.saved} drafts saved, {imported.known} products known already.")


@suppliers.command("orders")
@click.option("--supplier", help="Only those of this supplier.")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice([one.value for one in State]),
    help="Only those; several times: any.",
)
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 10_000), help="How many at most.")
@format_options
async def suppliers_orders(supplier: str | None, states: tuple[str, ...], limit: int, form: str | None) -> None:
    """List the newest supplier orders, without any voucher number."""
    async with reading() as connection:
        rows = await list_newest(connection, supplier, list(states) or None, limit)
    show(form, _ORDERS, map(_order, rows), empty="There are no supplier orders.")


@suppliers.command("costs")
@click.option(
    "--from",
    "since",
    type=click.DateTime(["%Y-%m-%d"]),
    metavar="DAY",
    help="The first day, such as 2026-11-20, in UTC. By default 30 days before the last.",
)
@click.option(
    "--to", "until", type=click.DateTime(["%Y-%m-%d"]), metavar="DAY", help="The last day, in UTC. By default today."
)
@format_options
async def suppliers_costs(since: datetime | None, until: datetime | None, form: str | None) -> None:
    """List costs and margins, by supplier and product.

    The margin is the value minus the cost, if both have the same currency.
    """
    last = until.date() if until is not None else clock.now().date()
    first = since.date() if since is not None else date.fromordinal(max(1, last.toordinal() - 30))
    if first > last:
        raise OperatorError("--from must not be after --to, which is today by default")
    async with reading() as connection:
        rows = await list_costs(connection, first, last)
    show(form, _COSTS, _costs(rows), empty="Nothing was bought in that time.")


def _order(row: Row) -> dict[str, Any]:
    return {
        **dict(row.items()),
        "supplier_order": row["supplier_order_id"],
        "order": row["reference"],
        "line": row["number"],
        "value": to_decimal(row["value_minor"], row["currency"]),
        "cost": major(row["cost_minor"], row["cost_currency"]),
    }


def _costs(rows: list[Row]) -> Iterator[dict[str, Any]]:
    for row in rows:
        currency = row["currency"]
        value = to_decimal(row["value_minor"], row["value_currency"])
        cost = to_decimal(row["cost_minor"], currency) if currency else None
        is_one = currency == row["value_currency"]
        yield {
            **dict(row.items()),
            "value": value,
            "cost": cost,
            "cost_currency": currency,
            "margin": value - cost if is_one and cost is not None else None,
        }
