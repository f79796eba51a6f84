"""`reseal`: encrypts everything under the newest master key."""

import json
import sys

import click
import msgspec

from largesse.base import clock
from largesse.base.settings import load_settings
from largesse.cli.running import Command, acting_operator
from largesse.installation import open_vault

_SHOW_EVERY_S = 0.5
_SAY_EVERY_S = 30.0


@click.command(cls=Command)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--rest",
    default=1.0,
    show_default=True,
    type=click.FloatRange(0, 100),
    help="How long to rest, as a multiple of how long it works: 0 is the quickest.",
)
async def reseal(as_json: bool, rest: float) -> None:
    """Encrypt everything under the newest master key, while the service runs.

    First put the new key in front of the old one in LARGESSE_MASTER_KEY, and restart every process with that list. Then
    run this command. It says when you can remove the old key. You can interrupt and repeat it. Exits with 1 if no key
    of the list decrypts something.
    """
    from largesse.encryption.key_rotation import rotate_keys

    async with acting_operator() as (database, actor):
        vault = await open_vault(database, load_settings())
        progress = _Progress()
        done = await rotate_keys(actor, database, vault, on_progress=progress.show, rest=rest)
        progress.end()
    broken = sum(done.broken.values())
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(done), indent=2))
    else:
        sealed = ", ".join(f"{table} {count:,}" for table, count in done.rows.items())
        click.echo(f"Encrypted anew under the key {done.newest} in {done.seconds:.0f} s: {sealed}.")
        if done.dispensable:
            click.echo(
                f"No longer needed: {', '.join(done.dispensable)}. Leave them out of LARGESSE_MASTER_KEY and restart; keep them "
                "with the backups that were made until now."
            )
    if broken:
        where = ", ".join(f"{table} {count:,}" for table, count in done.broken.items() if count)
        click.echo(f"No key of the list opens these rows, and they stay as they are: {where}.", err=True)
        sys.exit(1)


class _Progress:
    """Shows the progress: on a terminal in one line that is rewritten, otherwise in a new line at intervals."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._shown_s = clock.passed_s()

    def show(self, table: str, read: int, resealed: int) -> None:
        now_s = clock.passed_s()
        if now_s - self._shown_s < (_SHOW_EVERY_S if self._is_terminal else _SAY_EVERY_S):
            return
        self._shown_s = now_s
        start = "\r\x1b[K" if self._is_terminal else ""
        click.echo(
            f"{start}{table}: rows looked at {read:,}, encrypted anew {resealed:,}", nl=not self._is_terminal, err=True
        )

    def end(self) -> None:
        if self._is_terminal:
            click.echo("\r\x1b[K", nl=False, err=True)
