"""`database-url`: how to get at the database with PostgreSQL's own programs."""

from __future__ import annotations

import click

from largesse.base.database_address import for_programs
from largesse.base.errors import StartError
from largesse.base.settings import load_settings
from largesse.cli.running import command
from largesse.database.embedded import has_cluster
from largesse.database.roles import Role
from largesse.installation import database_address

_ROLES = {role.removeprefix("largesse_"): role for role in Role}


@click.command("database-url")
@click.option(
    "--role", type=click.Choice(list(_ROLES)), default="read", show_default=True, help="As whom to act there."
)
@command
async def database_url(role: str) -> None:
    """Print the database's address for psql and pg_dump; it may hold a password.

    pg_dump wants `--role owner`. An embedded database is there as long as another process of Largesse runs.
    """
    settings = load_settings()
    if settings.database_url is None and not has_cluster(settings.data_dir):
        raise StartError("there is no embedded database yet: run `largesse migrate`")
    async with database_address(settings, _ROLES[role]) as url:
        click.echo(for_programs(url, _ROLES[role]))
