"""`anchor` prints the ends of the chains, `verify` audits the data, and `check` checks the configuration."""

import json
import os
import sys
from pathlib import Path

import click

from largesse.base.settings import load_settings
from largesse.cli.running import Command, current_database
from largesse.db.roles import Role
from largesse.installation import check_schema, open_database, open_vault


@click.command(cls=Command)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for `verify --anchor`.")
@click.option("--note", is_flag=True, help="Note it in the database too, for the accounts' people to see and compare.")
async def anchor(as_json: bool, note: bool) -> None:
    """Print the last entry of each account and the last event of each audit log, with their marks. Store it elsewhere.

    `largesse verify --anchor FILE` then finds entries that were rewritten or rolled back since.
    """
    from largesse.verify.anchor import take_anchor

    async with current_database() as database:
        made = await take_anchor(database, note=note)
    if as_json:
        click.echo(made.to_json())
        return
    for end, mac in made.rows():
        click.echo(f"{mac}  {end}")


@click.command(cls=Command)
@click.option("--json", "as_json", is_flag=True, help="Print findings as JSON.")
@click.option(
    "--anchor",
    "anchored",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Also compare with this output of an earlier `largesse anchor --json`.",
)
async def verify(as_json: bool, anchored: Path | None) -> None:
    """Audit the ledger, balances, orders and codes. Lists failures, and exits with 1 if there are any."""
    from largesse.verify.anchor import read_anchor
    from largesse.verify.audit import audit

    anchor = None if anchored is None else read_anchor(anchored)
    settings = load_settings()
    async with open_database(settings, role=Role.READ) as database:
        await check_schema(database)
        report = await audit(database, await open_vault(database, settings, keep=False), anchor=anchor)
    click.echo(json.dumps(report.to_json(), indent=2) if as_json else str(report))
    if report.findings:
        sys.exit(1)


@click.command(cls=Command)
@click.option("--json", "as_json", is_flag=True, help="Print findings as JSON.")
async def check(as_json: bool) -> None:
    """Check this configuration. Lists errors and warnings, and exits with 1 if there are errors.

    Checks every setting, the data directory, the database and the mail server, to which it connects as a worker
    does. Changes nothing and sends nothing.
    """
    from largesse.doctor.doctor import check as check_all

    report = await check_all(os.environ)
    click.echo(json.dumps(report.to_json(), indent=2) if as_json else str(report))
    if not report.can_work:
        sys.exit(1)
