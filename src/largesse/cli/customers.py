"""`customers`: who orders here."""

from __future__ import annotations

from dataclasses import asdict

import click

from largesse.cli.running import Commands, command, current_database
from largesse.cli.tables import format_options, show
from largesse.database import OPERATOR
from largesse.database.distribution import homes
from largesse.identity import list_customers

_COLUMNS = ("id", "key", "name", "plan", "funding", "service_accounts", "api_keys", "created_at")


@click.group(cls=Commands)
def customers() -> None:
    """See who orders here."""


@customers.command("list")
@click.option("--nodes", is_flag=True, help="Tell which node of a cluster each lives on.")
@format_options
@command
async def customers_list(form: str | None, *, nodes: bool) -> None:
    """List the customers, with how many service accounts and API keys each has."""
    async with current_database() as database, database.connection(OPERATOR) as connection:
        records = await list_customers(connection)
        node = await homes(connection, [record.id for record in records]) if nodes else {}
    rows = [asdict(record) | ({"node": node[record.id]} if nodes else {}) for record in records]
    columns = (*_COLUMNS, "node") if nodes else _COLUMNS
    show(form, columns, rows, empty="There are no customers: load a world file.")
