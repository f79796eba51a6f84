"""`verify`: the audit."""

from __future__ import annotations

import json
import sys

import click

from largesse.base.settings import load_settings
from largesse.cli.running import command
from largesse.database import Role
from largesse.installation import check_schema, open_database, open_vault


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print findings as JSON.")
@command
async def verify(as_json: bool) -> None:
    """Audit the ledger, balances, orders and codes; exit 1 and list whatever disagrees."""
    from largesse.verify import audit

    settings = load_settings()
    async with open_database(settings, role=Role.READ) as database:
        await check_schema(database)
        report = await audit(database, await open_vault(database, settings, keep=False))
    click.echo(json.dumps(report.to_json(), indent=2) if as_json else str(report))
    if report.findings:
        sys.exit(1)
