"""`stock`: voucher numbers."""

from __future__ import annotations

import json
from pathlib import Path

import click

from largesse.base.money import label, to_number
from largesse.base.settings import load_settings
from largesse.cli.files import progress
from largesse.cli.running import Commands, acting_operator, command, current_database
from largesse.database.scope import OPERATOR
from largesse.installation import open_vault


@click.group(cls=Commands)
def stock() -> None:
    """Import voucher numbers, and see what is left of them."""


@stock.command("import")
@click.argument("product")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--value", help="What each number of the file is worth, where it has no column `value`.")
@command
async def stock_import(product: str, file: Path, value: str | None) -> None:
    """Add the voucher numbers of the CSV file FILE to the stock of PRODUCT.

    PRODUCT is a key of the world file or an id. FILE has a column `number`, or is a list of numbers without a
    heading; it may have `value` (in major units; needed where the gift has several amounts), `pin` and `use_by`.
    Numbers already in the stock are refused and counted. Gifts that wait are served from the new numbers, the
    oldest first, and their recipients are mailed.
    """
    from largesse.fulfilment.inventory import find_inventory_product, import_vouchers

    async with acting_operator() as (database, acting):
        async with database.connection(OPERATOR) as connection:
            stocked = await find_inventory_product(connection, product)
        with progress("numbers") as on_progress:
            imported = await import_vouchers(
                database,
                await open_vault(database, load_settings()),
                stocked,
                file,
                acting=acting,
                value=value,
                on_progress=on_progress,
            )
    click.echo(
        f"{stocked.name}: numbers added {imported.added:,}, duplicates refused {imported.duplicates:,}, "
        f"waiting gifts served {imported.served:,}."
    )


@stock.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@command
async def stock_list(as_json: bool) -> None:
    """List the stock of each gift and amount: free, handed out, and how many recipients wait."""
    from largesse.fulfilment.inventory import list_inventory

    async with current_database() as database, database.connection(OPERATOR) as connection:
        levels = await list_inventory(connection)
    if as_json:
        click.echo(
            json.dumps(
                [
                    {
                        "product": level.product,
                        "value": to_number(level.value_minor, level.currency),
                        "currency": level.currency,
                        "free": level.free,
                        "handed_out": level.handed_out,
                        "waiting": level.waiting,
                    }
                    for level in levels
                ],
                indent=2,
            )
        )
        return
    if not levels:
        click.echo("The stock is empty, and nobody waits.")
    for level in levels:
        waiting = f"  {level.waiting:,} WAITING" if level.waiting else ""
        click.echo(
            f"{level.product:24}  {label(level.value_minor, level.currency):>12}  "
            f"{level.free:9,} free  {level.handed_out:9,} handed out{waiting}"
        )
