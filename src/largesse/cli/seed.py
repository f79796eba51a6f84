"""`load`: what a world file describes, into the database."""

from __future__ import annotations

from pathlib import Path

import click

from largesse.base.settings import load_settings
from largesse.cli.running import acting_operator, command
from largesse.db.scope import OPERATOR
from largesse.jobs.outbox import mail_invitation


@click.command()
@click.argument("world", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print ids and new API keys as JSON.")
@command
async def load(world: Path, as_json: bool) -> None:
    """Create or update what the file WORLD describes; safe to repeat.

    The secrets of new API keys are printed once, here. New people are invited by mail where a mail server is set.
    """
    from largesse.seed.load import load_seed
    from largesse.seed.reading import read_seed

    described = read_seed(world)
    async with acting_operator() as (database, acting), database.transaction(OPERATOR) as connection:
        loaded = await load_seed(connection, acting.chains.entries, described)
        counted = {kind: len(ids) for kind, ids in loaded.ids.items()}
        made = {**counted, "api_keys": len(loaded.api_keys)}
        if mails := load_settings().smtp_url is not None:
            made["invitations"] = len(loaded.new_users)
            for user_id in loaded.new_users:
                await mail_invitation(connection, user_id)
        await acting.record(connection, "world.loaded", f"file {world.name}"[:200], after=made)
    for warning in loaded.warnings:
        click.echo(f"Warning: {warning}", err=True)
    if loaded.new_users:
        said = (
            "are invited by mail"
            if mails
            else "are not invited, since no mail server is set: `largesse users invite` prints a link"
        )
        click.echo(f"New people, {len(loaded.new_users)}, {said}.", err=True)
    if as_json:
        click.echo(loaded.to_json())
        return
    for kind, ids in loaded.ids.items():
        click.echo(f"{len(ids):6} {kind.replace('_', ' ')}")
    for key, secret in loaded.api_keys.items():
        click.echo(f"API key {key}: {secret}  (shown this once)")
