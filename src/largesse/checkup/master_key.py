"""Checks of the master key: that there is one, that it is kept well, and that it is the one the database was sealed with."""

from __future__ import annotations

import stat

from largesse.base.errors import StartError
from largesse.base.settings import Settings
from largesse.base.vault import is_key_to_be_generated, load_vault, master_key_file
from largesse.checkup.finding import Finding, error, ok, warning
from largesse.database import Connection
from largesse.lines import is_sealed, prove_master_key

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
    """Whether a master key is the one the database is sealed under; nothing where nothing is sealed, or there is no key to try."""
    if not await is_sealed(connection):
        return []
    if is_key_to_be_generated(settings):
        return [
            error(
                _NAME, "The file `master-key` of the data directory is missing: bring it back from a backup."
            )
        ]
    try:
        vault = load_vault(settings)
    except (StartError, OSError):
        return []  # which is said already
    try:
        await prove_master_key(connection, vault, keep=False)
    except StartError as wrong:
        return [error(_NAME, f"{wrong}.")]
    return [ok(_NAME, "The database is sealed under this key.")]
