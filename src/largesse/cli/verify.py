"""`verify`: the audit."""

from __future__ import annotations

import json
import sys

import click

from largesse.cli.running import command
from largesse.main import check_schema, open_database
from largesse.settings import load_settings


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print findings as JSON.")
@command
async def verify(as_json: bool) -> None:
    """Audit the ledger, balances, orders and codes; exit 1 and list whatever disagrees."""
    from largesse.vault import load_vault
    from largesse.verify import audit

    settings = load_settings()
    async with open_database(settings) as database:
        await check_schema(database)
        report = await audit(database, load_vault(settings))
    click.echo(json.dumps(report.to_json(), indent=2) if as_json else str(report))
    if report.findings:
        sys.exit(1)
