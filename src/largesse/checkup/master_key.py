"""Checks of the master key: that there is one, that it is kept well, and that it is the one the database was sealed with."""

from __future__ import annotations

import stat
from collections.abc import Sequence

from largesse.base.errors import StartError
from largesse.base.settings import Settings
from largesse.base.vault import Vault, is_key_to_be_generated, load_vault, master_key_file
from largesse.checkup.finding import Finding, error, ok, warning
from largesse.database.pool import Connection
from largesse.sealing.master_keys import KeyRecord, is_sealed, list_master_keys, prove_master_key

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
    known = await list_master_keys(connection)
    return [ok(_NAME, "The database is sealed under this key."), *_rotation(vault, known)]


def _rotation(vault: Vault, known: Sequence[KeyRecord]) -> list[Finding]:
    """What is left to do of a change of keys."""
    newest, *others = vault.key_ids
    older = {key.id: key for key in known if key.id != newest}
    needed = [key.name for key in older.values() if key.is_needed]
    spare = [older[key_id].name for key_id in others if key_id in older and not older[key_id].is_needed]
    findings = []
    if needed:
        findings.append(
            warning(_NAME, f"Something may be sealed under {', '.join(needed)} still: run `largesse reseal`.")
        )
    if spare:
        findings.append(
            warning(_NAME, f"Nothing is sealed under {', '.join(spare)} any more: leave it out of the list.")
        )
    return findings
