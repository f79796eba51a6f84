"""`load`: loads a seed file into the database. `export`: writes one."""

from pathlib import Path

import click

from largesse.base.settings import load_settings
from largesse.cli.running import Command, operator_actor


@click.command(cls=Command)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print ids and new API keys as JSON.")
async def load(file: Path, as_json: bool) -> None:
    """Create or update what the seed file FILE describes. You can repeat it.

    The secrets of new API keys are printed once, here. New people are invited by mail if a mail server is set.
    """
    from largesse.seed.load import load_file
    from largesse.seed.reading import read_seed

    seed, invites = read_seed(file), load_settings().smtp_url is not None
    async with operator_actor() as actor:
        loaded = await load_file(actor, seed, invites=invites)
    for warning in loaded.warnings:
        click.echo(f"Warning: {warning}", err=True)
    if loaded.new_users:
        invited = (
            "are invited by mail"
            if invites
            else "are not invited, since no mail server is set: `largesse users invite` prints a link"
        )
        click.echo(f"New people, {len(loaded.new_users)}, {invited}.", err=True)
    if as_json:
        click.echo(loaded.to_json())
        return
    for kind, ids in loaded.ids.items():
        click.echo(f"{len(ids):6} {kind.replace('_', ' ')}")
    for key, secret in loaded.api_keys.items():
        click.echo(f"API key {key}: {secret}  (shown this once)")


@click.command(cls=Command)
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), help="The file to write, with its pictures beside it."
)
async def export(output: Path | None) -> None:
    """Write the contents of the database as a seed file: to standard output, or to a file with its pictures beside it.

    It holds no secrets: API keys get new ones when it is loaded.
    """
    from largesse.seed.export import export_seed

    async with operator_actor() as actor:
        exported = await export_seed(actor, output)
    for one in exported.left_out:
        click.echo(f"Left out: {one}.", err=True)
    if output is not None:
        click.echo(f"{output}, with {len(exported.pictures)} pictures beside it.", err=True)
        return
    if exported.pictures:
        click.echo(f"Its {len(exported.pictures)} pictures are not written: use --output.", err=True)
    click.echo(exported.content, nl=False)
