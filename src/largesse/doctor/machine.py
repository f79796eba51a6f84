"""Checks of the data directory, the limit of open files, the mail server (without sending mail), the master key and the suppliers."""

import os
import resource
import ssl
import stat
from collections.abc import Sequence

from largesse.base.errors import OperatorError
from largesse.base.settings import Settings
from largesse.catalogue.model import STOCK
from largesse.connections.manager import files_needed
from largesse.db.embedded import has_cluster
from largesse.db.pool import DATABASE_FAILED, Connection
from largesse.db.scope import OPERATOR
from largesse.doctor.checks import CheckResult, error, ok, warning
from largesse.encryption.master_keys import KeyRecord, is_sealed, list_master_keys, prove_master_key
from largesse.encryption.vault import Vault, is_key_to_be_generated, load_vault, master_key_file
from largesse.installation import open_database
from largesse.mail.away import MailServerAwayError
from largesse.mail.server import MailServer
from largesse.mail.smtp import Session, SmtpTimeouts
from largesse.suppliers.description import read_descriptions
from largesse.suppliers.service import opened
from largesse.suppliers.store import list_naming
from largesse.worker import OPEN_FILES

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def check_data_dir(settings: Settings) -> list[CheckResult]:
    """Returns whether the data directory can be used, and others cannot read it. An external database does not need it."""
    name, folder = "LARGESSE_DATA_DIR", settings.data_dir
    if settings.database_url is not None:
        return []
    if not folder.exists():
        above = next(one for one in folder.parents if one.exists())
        if not (above.is_dir() and os.access(above, os.W_OK | os.X_OK)):
            return [error(name, f"{folder} cannot be made by this user below {above}.")]
        return [ok(name, f"{folder} is made at the first start.")]
    if not folder.is_dir():
        return [error(name, f"{folder} is no directory.")]
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return [error(name, f"{folder} cannot be written to by this user: make the service's user its owner.")]
    if folder.stat().st_mode & _OTHERS_WRITE:
        return [warning(name, f"Others on this machine may change {folder}: chmod go-w it.")]
    return [ok(name, f"Nobody else may change {folder}.")]


def check_open_files(settings: Settings) -> list[CheckResult]:
    """Returns whether this process may open as many files as the busiest process needs."""
    name = "RLIMIT_NOFILE"
    wanted = files_needed(settings.max_connections, other_files=OPEN_FILES)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard == resource.RLIM_INFINITY or hard >= wanted:
        return [ok(name, f"A process may open the {wanted:,} files that serving and working take at most.")]
    if settings.max_connections and files_needed(settings.max_connections) > hard:  # `connection_limit` refuses it
        return [
            error(
                "LARGESSE_MAX_CONNECTIONS",
                f"It is {settings.max_connections:,}, but a process may open {hard:,} files: raise that limit (LimitNOFILE=, "
                "ulimit -Hn) or lower the setting.",
            )
        ]
    said = f"A process may open {hard:,} files; one that serves and works wants {wanted:,} when it is busiest."
    return [warning(name, f"{said} Raise the limit (LimitNOFILE=, ulimit -Hn).")]


_NAME = "LARGESSE_SMTP_URL"
_PATIENCE = SmtpTimeouts(connect_s=10.0, greeting_s=20.0, command_s=20.0)


async def check_mail_server(url: str | None, patience: SmtpTimeouts = _PATIENCE) -> list[CheckResult]:
    """Connects, encrypts and logs in as a worker does, and quits."""
    if url is None:
        return []
    server = MailServer.from_url(url)
    where = f"{server.host}:{server.port}"
    try:
        session = await Session.open(server, patience)
    except MailServerAwayError as away:
        return [error(_NAME, f"{where} takes no mail: {away}{_advice(away)}.")]
    how = "encrypted" if session.is_encrypted else "not encrypted"
    login = ", and takes the login" if server.username else ""
    letters = "any letters" if session.takes_international else "ASCII letters alone before the @"
    try:
        await session.ask_for_nothing()
    except MailServerAwayError as away:
        return [error(_NAME, f"{where} ended the conversation: {away}.")]
    finally:
        await session.close()
    return [ok(_NAME, f"{where} answers, {how}{login}. It takes addresses of {letters}.")]


def _advice(away: MailServerAwayError) -> str:
    """Returns what to do about the reason, as the end of its sentence."""
    match away.__cause__:
        case ssl.SSLCertVerificationError():
            return "; SSL_CERT_FILE may name your own authority's"
        case ssl.SSLError():
            return "; say smtp:// with ?starttls=, or another port"
        case _:
            return ""


_MASTER_KEY_NAME = "LARGESSE_MASTER_KEY"
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def check_master_key(settings: Settings) -> list[CheckResult]:
    """Returns whether there is a master key, or will be one, that others cannot read."""
    path = master_key_file(settings)
    if is_key_to_be_generated(settings):
        return [ok(_MASTER_KEY_NAME, "A key is generated into the data directory when it is first needed.")]
    try:
        load_vault(settings)
    except (OperatorError, OSError) as unusable:
        return [error(_MASTER_KEY_NAME, f"The master key cannot be used: {unusable}.")]
    if settings.master_keys:
        return [ok(_MASTER_KEY_NAME, f"Keys that are set: {len(settings.master_keys)}.")]
    if path.stat().st_mode & _OTHERS:
        return [warning(_MASTER_KEY_NAME, f"Others on this machine may read {path}: chmod 600 it.")]
    return [ok(_MASTER_KEY_NAME, "The key in the data directory is its owner's alone.")]


async def check_master_key_fits(connection: Connection, settings: Settings) -> list[CheckResult]:
    """Returns whether the master key decrypts the database; no result if nothing is encrypted, or there is no key."""
    if not await is_sealed(connection):
        return []
    if is_key_to_be_generated(settings):
        return [
            error(
                _MASTER_KEY_NAME, "The file `master-key` of the data directory is missing: bring it back from a backup."
            )
        ]
    try:
        vault = load_vault(settings)
    except (OperatorError, OSError):
        return []  # another check has reported it
    try:
        await prove_master_key(connection, vault, keep=False)
    except OperatorError as wrong:
        return [error(_MASTER_KEY_NAME, f"{wrong}.")]
    known = await list_master_keys(connection)
    return [ok(_MASTER_KEY_NAME, "The database is encrypted under this key."), *_rotation(vault, known)]


def _rotation(vault: Vault, known: Sequence[KeyRecord]) -> list[CheckResult]:
    """Returns the steps that are left of a key rotation."""
    newest, *others = vault.key_ids
    older = {key.id: key for key in known if key.id != newest}
    needed = [key.name for key in older.values() if key.is_needed]
    spare = [older[key_id].name for key_id in others if key_id in older and not older[key_id].is_needed]
    findings = []
    if needed:
        findings.append(
            warning(
                _MASTER_KEY_NAME, f"Something may be encrypted under {', '.join(needed)} still: run `largesse reseal`."
            )
        )
    if spare:
        findings.append(
            warning(
                _MASTER_KEY_NAME, f"Nothing is encrypted under {', '.join(spare)} any more: leave it out of the list."
            )
        )
    return findings


_SUPPLIERS = "LARGESSE_SUPPLIERS"
_FAILED: tuple[type[BaseException], ...] = (OperatorError, *DATABASE_FAILED)


async def check_suppliers(settings: Settings, *, has_database: bool = True) -> list[CheckResult]:
    """Opens each supplier of the setting. With `has_database`, also names products whose suppliers are not described."""
    findings: list[CheckResult] = []
    names = {STOCK}
    try:
        for description in read_descriptions(settings.suppliers):
            names.add(description.name)
            async with opened(description):
                findings.append(
                    ok(_SUPPLIERS, f"The supplier {description.name} is described, and its secrets are there.")
                )
    except OperatorError as wrong:
        return [*findings, error(_SUPPLIERS, f"{str(wrong).removeprefix(f'{_SUPPLIERS}: ')}.")]
    if not has_database or (settings.database_url is None and not has_cluster(settings.data_dir)):
        return findings
    try:
        async with open_database(settings) as database, database.connection(OPERATOR) as connection:
            naming = await list_naming(connection)
    except _FAILED:
        return findings  # other checks report errors of the database
    missing = sorted({name for row in naming for name in row["suppliers"]} - names)
    if missing:
        findings.append(
            warning(
                _SUPPLIERS,
                f"Products name suppliers that no file describes: {', '.join(missing)}. Their gifts wait until one does.",
            )
        )
    return findings
