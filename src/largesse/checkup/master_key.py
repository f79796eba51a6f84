"""Checks of the master key: that there is one, that it is kept well, and that it is the one the database was sealed with."""

from __future__ import annotations

import stat

from largesse.base.errors import StartError
from largesse.base.settings import Settings
from largesse.base.vault import SealBroken, is_key_to_be_generated, load_vault, master_key_file
from largesse.checkup.finding import Finding, error, ok, warning
from largesse.database import Connection
from largesse.lines import open_code

_NAME = "LARGESSE_MASTER_KEY"
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def check_master_key(settings: Settings) -> list[Finding]:
    """Whether there is a master key, or will be one, and nobody else can read it."""
    path = master_key_file(settings)
    if is_key_to_be_generated(settings):
        return [ok(_NAME, "A key is generated into the data directory when it is first needed.")]
    try:
        load_vault(settings)
    except (StartError, OSError) as unusable:
        return [error(_NAME, f"No master key can be had: {unusable}.")]
    if settings.master_keys:
        return [ok(_NAME, f"Keys that are set: {len(settings.master_keys)}.")]
    if path.stat().st_mode & _OTHERS:
        return [warning(_NAME, f"Others on this machine may read {path}: chmod 600 it.")]
    return [ok(_NAME, "The key in the data directory is its owner's alone.")]


async def check_master_key_fits(connection: Connection, settings: Settings) -> list[Finding]:
    """Whether the codes in the database open under the master keys; nothing where there is no code or no key to try."""
    line = await connection.fetchrow(
        """
        SELECT lines.sealed, orders.reference, lines.number FROM lines JOIN orders ON orders.id = lines.order_id
        ORDER BY lines.order_id DESC, lines.number DESC LIMIT 1
        """
    )
    if line is None:
        return []
    if is_key_to_be_generated(settings):
        return [
            error(
                _NAME, "The file `master-key` of the data directory is missing: bring it back from a backup."
            )
        ]
    try:
        open_code(load_vault(settings), *line)
    except SealBroken:
        return [
            error(
                _NAME, "The newest code does not open: this is not the key it was sealed under. Add that key."
            )
        ]
    except (StartError, OSError):
        return []  # there is no key to try, which is said already
    return [ok(_NAME, "The newest code opens.")]
