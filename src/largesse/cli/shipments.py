"""`shipments`: parcels out, tracking numbers in."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import click

from largesse.base.settings import ENVIRONMENTS, load_settings
from largesse.cli.files import private_file
from largesse.cli.running import Commands, acting_operator, command
from largesse.installation import open_vault


@click.group(cls=Commands)
def shipments() -> None:
    """Hand parcels to whoever packs them, and say which are on their way."""


@shipments.command("export")
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), help="A file instead of standard output."
)
@click.option("--again", is_flag=True, help="Everything not shipped yet, exported before or not.")
@click.option("--environment", type=click.Choice(ENVIRONMENTS), help="Instead of LARGESSE_ENVIRONMENT.")
@command
async def shipments_export(output: Path | None, again: bool, environment: str | None) -> None:
    """Write the parcels to send as CSV, each once. It holds names and addresses: keep it safe."""
    from largesse.fulfilment.shipments import export_shipments

    settings = load_settings()
    async with acting_operator() as (database, acting):
        with contextlib.ExitStack() as stack:
            file = stack.enter_context(private_file(output)) if output is not None else sys.stdout
            count = await export_shipments(
                database,
                await open_vault(database, settings),
                environment or settings.environment,
                file,
                acting=acting,
                again=again,
            )
    click.echo(f"Parcels to send: {count:,}.", err=True)


@shipments.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--environment", type=click.Choice(ENVIRONMENTS), help="Instead of LARGESSE_ENVIRONMENT.")
@command
async def shipments_import(file: Path, environment: str | None) -> None:
    """Mark the parcels of the CSV file FILE as shipped and mail their recipients.

    FILE has the columns `shipment` (the number of the export), `carrier` and `tracking_number`. It is taken whole or
    not at all; a parcel shipped before is left as it is.
    """
    from largesse.fulfilment.shipments import import_shipments

    settings = load_settings()
    async with acting_operator() as (database, acting):
        shipped, before = await import_shipments(
            database,
            await open_vault(database, settings),
            environment or settings.environment,
            file,
            acting=acting,
        )
    click.echo(f"Parcels shipped: {shipped:,}; shipped before: {before:,}.")
