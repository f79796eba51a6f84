"""`stock`: import and list voucher numbers. `shipments`: export parcels, and import their tracking numbers."""

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from largesse.base.errors import FileRefused, OperatorError
from largesse.base.money import label, to_number
from largesse.base.settings import ENVIRONMENTS, load_settings
from largesse.cli.running import NOT_WRITTEN, Commands, acting_operator, drop_output, private_file, progress, reading
from largesse.db.scope import OPERATOR
from largesse.installation import open_vault


@click.group(cls=Commands)
def stock() -> None:
    """Import voucher numbers, and list the stock."""


@stock.command("import")
@click.argument("product")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--value", help="What each number of the file is worth, where it has no column `value`.")
async def stock_import(product: str, file: Path, value: str | None) -> None:
    """Add the voucher numbers of the CSV file FILE to the stock of PRODUCT.

    PRODUCT is a key of the seed file or an id. FILE has a column `number`, or is a list of numbers without a
    heading: a first line without a digit is a heading. It may have `value` (in major units; required if the gift has several amounts), `pin` and `use_by`.
    Numbers already in the stock are refused and counted. Waiting gifts get the new numbers, oldest first, and
    their recipients are mailed.
    """
    from largesse.fulfilment.inventory import find_inventory_product, import_vouchers

    async with acting_operator() as (database, actor):
        stocked = await database.read(OPERATOR, find_inventory_product, product)
        with progress("numbers") as on_progress, _naming(file):
            imported = await import_vouchers(
                actor, await open_vault(database, load_settings()), stocked, file, value=value, on_progress=on_progress
            )
    click.echo(
        f"{stocked.name}: numbers added {imported.added:,}, duplicates refused {imported.duplicates:,}, "
        f"waiting gifts served {imported.served:,}."
    )
    if imported.unread:
        click.echo(f"Not read: {', '.join(imported.unread)}.")


@contextlib.contextmanager
def _naming(file: Path) -> Iterator[None]:
    """Adds the file's name to errors about the file. Errors about --value stay as they are."""
    try:
        yield
    except FileRefused as refused:
        raise refused if refused.code.startswith("all_") else OperatorError(f"{file}: {refused}") from None


@stock.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
async def stock_list(as_json: bool) -> None:
    """List the stock of each gift and amount: numbers that are free and handed out, and waiting recipients."""
    from largesse.fulfilment.inventory import list_inventory

    async with reading() as connection:
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


@click.group(cls=Commands)
def shipments() -> None:
    """Export parcels to pack, and import their tracking numbers."""


@shipments.command("export")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="A file instead of standard output.")
@click.option("--again", is_flag=True, help="Everything not shipped yet, exported before or not.")
@click.option("--environment", type=click.Choice(ENVIRONMENTS), help="Instead of LARGESSE_ENVIRONMENT.")
async def shipments_export(output: Path | None, again: bool, environment: str | None) -> None:
    """Write the parcels to send as CSV, each once. The file has names and addresses: keep it safe."""
    from largesse.fulfilment.shipments import export_shipments

    settings = load_settings()
    async with acting_operator() as (database, actor):
        vault = await open_vault(database, settings)
        with contextlib.ExitStack() as stack:
            stack.enter_context(_parcels_written())
            file = stack.enter_context(private_file(output)) if output is not None else sys.stdout
            if output is not None:  # spreadsheets recognise UTF-8 by it; the standard output is for programs
                file.write("\ufeff")
            count = await export_shipments(actor, vault, environment or settings.environment, file, again=again)
    click.echo(f"Parcels to send: {count:,}.", err=True)


@contextlib.contextmanager
def _parcels_written() -> Iterator[None]:
    """Reports what to do if the disk is full, as the parcels of the file already count as exported."""
    try:
        yield
    except OSError as error:
        if error.errno not in NOT_WRITTEN:
            raise
        drop_output()
        said = f"the list cannot be written: {error.strerror}. Make room, and repeat the command with --again"
        raise OperatorError(said) from None


@shipments.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--environment", type=click.Choice(ENVIRONMENTS), help="Instead of LARGESSE_ENVIRONMENT.")
async def shipments_import(file: Path, environment: str | None) -> None:
    """Mark the parcels of the CSV file FILE as shipped and mail their recipients.

    FILE has the columns `shipment` (the number of the export), `carrier` and `tracking_number`. All rows are
    imported, or none. Parcels that were shipped before do not change.
    """
    from largesse.fulfilment.shipments import import_shipments

    settings = load_settings()
    async with acting_operator() as (database, actor):
        vault = await open_vault(database, settings)
        with _naming(file):
            shipped, before = await import_shipments(actor, vault, environment or settings.environment, file)
    click.echo(f"Parcels shipped: {shipped:,}; shipped before: {before:,}.")
