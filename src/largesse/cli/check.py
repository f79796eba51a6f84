"""`check`: what is doubtful about a configuration."""

from __future__ import annotations

import json
import os
import sys

import click

from largesse.cli.running import command


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print findings as JSON.")
@command
async def check(as_json: bool) -> None:
    """Say what is doubtful about this configuration; exit 1 for what cannot work.

    Looks at every setting, the data directory, the database and the mail server, with which it speaks as a worker
    would. Changes nothing and sends nothing.
    """
    from largesse.doctor.doctor import check as check_all

    report = await check_all(os.environ)
    click.echo(json.dumps(report.to_json(), indent=2) if as_json else str(report))
    if not report.can_work:
        sys.exit(1)
