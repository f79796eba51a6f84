"""`anchor`: where the chains of ledger and audit log end."""

from __future__ import annotations

import click

from largesse.cli.running import command, current_database
from largesse.database.scope import OPERATOR


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for `verify --anchor`.")
@click.option(
    "--note", is_flag=True, help="Note it in the database too, for the accounts' people to see and compare."
)
@command
async def anchor(as_json: bool, note: bool) -> None:
    """Print where each account's entries and each audit log end, with the marks they end in; keep it elsewhere.

    `largesse verify --anchor FILE` then finds what was made anew or rolled back since, whoever did it.
    """
    from largesse.verify.anchor import make_anchor, note_anchor

    async with (
        current_database() as database,
        database.connection(OPERATOR) as connection,
        connection.transaction(isolation="repeatable_read", readonly=not note),
    ):
        made = await make_anchor(connection)
        if note:
            await note_anchor(connection, made)
    if as_json:
        click.echo(made.to_json())
        return
    for end, mac in made.rows():
        click.echo(f"{mac}  {end}")
