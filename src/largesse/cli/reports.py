"""`rebuild-reports`: the read models anew."""

from __future__ import annotations

import click

from largesse.cli.files import progress
from largesse.cli.running import acting_operator, command


@click.command("rebuild-reports")
@command
async def rebuild_reports() -> None:
    """Make anew what people list, search and add up, from the orders.

    Orders go on meanwhile, and workers help. Broken off, the workers finish it.
    """
    from largesse.reports.rebuilding import rebuild

    async with acting_operator() as (database, acting):
        with progress("orders taken in") as show:
            total = await rebuild(database, acting, show)
    click.echo(f"The reports are made anew from {total:,} orders.")
