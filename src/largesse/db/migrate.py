"""Brings a database to the current schema.

A revision is a file in `migrations`, `NNNN_name.sql`, numbered without gaps. A released revision never changes: the next one corrects it.
Its first line may say which code runs on it, so that a release can run beside the previous one (docs/upgrades):

- `-- Expand`: the code that ran on the previous revision.
- `-- Contract: code of NNNN`: the code of that revision and of later ones. Without either, only code that has the revision itself.
- `-- Outside a transaction`, on a line of its own, is for CREATE INDEX CONCURRENTLY and for
  changes to many rows in parts. A blank line ends a statement, and each can be repeated.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Sequence
from pathlib import Path

import asyncpg
import msgspec
import structlog

from largesse.base.database_address import DatabaseAddress
from largesse.base.errors import OperatorError
from largesse.db import grants, sharding
from largesse.db.fragments import compose, identifier
from largesse.db.roles import Role, act_as
from largesse.db.session import UNLIMITED, Dialer
from largesse.db.sharding import Session

REVISIONS = Path(__file__).parent / "migrations"
OLDEST_SERVER = 15  # the oldest version of PostgreSQL that Largesse runs on
LOCK_KEY = 0x6C617267657373  # "largess"; one `migrate` at a time holds this advisory lock
_LOCK_EVERY_S = 0.2  # how often a second `migrate` tries to get the lock

# How long a revision waits for the lock of a table. Requests behind it wait too, but less than a statement's time limit.
_LOCK_TIMEOUT_MS = 2_000
_LOCK_TRIES = 30
_LONGEST_PAUSE_S = 10.0
_SAY_EVERY = 5  # a line in the log for every so many tries

_log = structlog.get_logger(__name__)
_EXPAND = re.compile(r"^-- Expand\b")
_CONTRACT = re.compile(r"^-- Contract: code of (\d{4})\b")
_COMMENT = re.compile(r"^ *--.*\n+", re.MULTILINE)
_OUTSIDE = re.compile(r"^-- Outside a transaction$", re.MULTILINE)
_BUILDS_INDEX = re.compile(r"\s*CREATE (?:UNIQUE )?INDEX CONCURRENTLY IF NOT EXISTS (\w+)")
# What is left of an index whose build was interrupted: no query uses it, and IF NOT EXISTS passes it over.
_IS_UNFINISHED = "SELECT EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass($1) AND NOT indisvalid)"
_DROP_INDEX = "DROP INDEX CONCURRENTLY {index}"
_TRY_LOCK = "SELECT pg_try_advisory_lock($1)"
_ACTS_AS = "SELECT current_user = $1"
_ENCODING = "SHOW server_encoding"
_HAS_REVISION = "SELECT to_regclass('alembic_version')"
_REVISION = "SELECT version_num FROM alembic_version"
# The table of an older release does not have this column.
_RUNS_FROM = "SELECT to_jsonb(a) ->> 'runs_from' FROM alembic_version AS a"
_REVISIONS = "SELECT version_num, runs_from FROM alembic_version"
_DELETE_REVISION = "DELETE FROM alembic_version"
_NOTICE_A_KILL = "SET client_connection_check_interval = '2s'"
_ADD_REVISION = "INSERT INTO alembic_version (version_num, runs_from) VALUES ($1, $2)"


class Upgraded(msgspec.Struct, frozen=True):
    """The result of an upgrade."""

    revision: str  # the database's revision now
    refused: Sequence[str]  # statements on roles and rights that the login may not run, for an administrator
    distributed: Sequence[str]  # tables that were distributed over the nodes of a cluster


async def upgrade(url: str) -> Upgraded:
    """Makes the roles, runs the missing revisions, distributes the tables if there are nodes, and grants the roles their rights.

    Two simultaneous runs are safe: the second waits, and finds nothing to do. Raises asyncpg's errors. Raises OperatorError for a server that
    is too old, for a schema of a later release, for a new database that is not in UTF8, for unusable nodes, and for an address of PgBouncer,
    as the lock needs its own session.
    """
    dialer = Dialer(_direct(url), UNLIMITED)
    connection = await dialer.dial()
    try:
        _require_version(connection)
        if not await connection.fetchval(_TRY_LOCK, LOCK_KEY):
            _log.warning("migrate_waits_for_another", see="docs/log-events.md")
            # Polls the lock: a statement that waited for it would hold a snapshot, and CREATE INDEX CONCURRENTLY would wait for that.
            while not await connection.fetchval(_TRY_LOCK, LOCK_KEY):  # noqa: ASYNC110 - the lock is in the database
                await asyncio.sleep(_LOCK_EVERY_S)
        revision = await current_revision(connection)
        if revision is not None and revision > head_revision():
            if not await runs_on(connection):
                raise OperatorError(
                    f"the database's schema is at revision {revision}, newer than this release of Largesse: install a newer one"
                )
            return Upgraded(revision, (), ())  # the schema of the next release, on which this one runs
        if revision is None and (encoding := await connection.fetchval(_ENCODING)) != "UTF8":
            raise OperatorError(
                f"the database is encoded in {encoding}, which cannot hold every text: make it anew with `createdb --encoding UTF8`"
            )
        refused = await grants.prepare_roles(connection)
        # Checks the nodes before a table is made or changed only on the coordinator.
        if trouble := await sharding.trouble(connection):
            raise OperatorError(trouble)
        owns = await connection.fetchval(_ACTS_AS, Role.OWNER)
        if revision != head_revision():
            await _run_revisions(dialer, revision, as_owner=owns)
        if refused:  # also include objects that the revisions have just made
            refused = await grants.roles_to_make(connection)
        distributed = await sharding.distribute(connection)
        refused += await grants.grant_rights(connection)
        refused += await grants.set_policies(connection)
    finally:
        await connection.close()  # frees the lock
    return Upgraded(head_revision(), refused, distributed)


async def roles_to_make(url: str) -> list[str]:
    """Returns the statements about roles that `upgrade` would run, for an administrator. Changes nothing. Raises what `upgrade` does."""
    connection = await Dialer(_direct(url), UNLIMITED).dial()
    try:
        _require_version(connection)
        return await grants.roles_to_make(connection)
    finally:
        await connection.close()


def _require_version(connection: Session) -> None:
    version = connection.get_server_version()
    if version.major < OLDEST_SERVER:
        raise OperatorError(
            f"the server is PostgreSQL {version.major}.{version.minor}, which is too old: it must be {OLDEST_SERVER} or later"
        )


def _direct(url: str) -> DatabaseAddress:
    address = DatabaseAddress.parse(url)
    if address.is_pooled:
        raise OperatorError("migrate needs the address of PostgreSQL itself, not of PgBouncer")
    return address


async def current_revision(connection: asyncpg.Connection[asyncpg.Record]) -> str | None:
    """Returns the revision of the database; None if it was never migrated."""
    if await connection.fetchval(_HAS_REVISION) is None:
        return None
    revision: str | None = await connection.fetchval(_REVISION)
    return revision


async def runs_on(connection: asyncpg.Connection[asyncpg.Record]) -> bool:
    """Returns whether this release runs on the schema of a later one."""
    # Without the column, the schema is of a release before 0.2.0.
    runs_from: str | None = await connection.fetchval(_RUNS_FROM)
    return runs_from is not None and runs_from <= head_revision()


def head_revision() -> str:
    """Returns the revision this release needs."""
    return _revisions()[-1].name[:4]


def _revisions() -> list[Path]:
    """Returns the files of all revisions, the oldest first."""
    return sorted(REVISIONS.glob("[0-9]*.sql"))


async def _run_revisions(dialer: Dialer, after: str | None, *, as_owner: bool) -> None:
    """Runs the revisions later than `after`, each in its own transaction, which also records it.

    With `as_owner`, the role of the owner owns the new objects, otherwise the login.
    """
    session = await dialer.dial()
    try:
        # If this process is killed, the server would go on with a long statement, keep its locks, and stop the next `migrate`.
        with contextlib.suppress(asyncpg.InvalidParameterValueError):  # a server on Windows cannot look
            await session.execute(_NOTICE_A_KILL)
        if as_owner:
            await act_as(session, Role.OWNER)
        await session.execute(_VERSION_TABLE)
        for path in _revisions():
            if path.name[:4] > (after or ""):
                await _run_patiently(session, path.name[:4], path.read_text(encoding="utf-8"))
    finally:
        await session.close()


async def _run_patiently(session: Session, revision: str, sql: str) -> None:
    """Runs a revision in a transaction that waits for locks only a short time, and repeats it until it gets all of them.

    Raises OperatorError if it does not get the locks.
    """
    for attempt in range(_LOCK_TRIES):
        try:
            await _run(session, revision, sql)
        except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
            if attempt % _SAY_EVERY == 0:
                _log.warning("migrate_waits_for_lock", revision=revision, see="docs/upgrades/rolling.md")
            await asyncio.sleep(min(0.2 * 2**attempt, _LONGEST_PAUSE_S))
        else:
            return
    raise OperatorError(
        f"revision {revision} cannot lock a table that a long transaction uses: end it (see pg_stat_activity) and run "
        "`largesse migrate` again, which continues from there"
    )


async def _run(session: Session, revision: str, sql: str) -> None:
    outside = _OUTSIDE.search(sql) is not None
    if outside:
        for statement in _COMMENT.sub("", sql).split("\n\n"):
            builds = _BUILDS_INDEX.match(statement)
            if builds and await session.fetchval(_IS_UNFINISHED, builds[1]):
                await session.execute(compose(_DROP_INDEX, index=identifier(builds[1])))
            await session.execute(statement)
    async with session.transaction():
        await session.execute(f"SET LOCAL lock_timeout = {_LOCK_TIMEOUT_MS}")
        if not outside:
            await session.execute(sql)
        before = await session.fetchrow(_REVISIONS)
        contract = _CONTRACT.match(sql)
        runs_from = contract[1] if contract else revision
        if _EXPAND.match(sql) and before is not None:
            runs_from = before["runs_from"] or before["version_num"]
        await session.execute(_DELETE_REVISION)
        await session.execute(_ADD_REVISION, revision, runs_from)


# The name is from releases before 0.2.0, which ran their revisions with Alembic.
_VERSION_TABLE = """
    CREATE TABLE IF NOT EXISTS alembic_version (
        version_num varchar(32) NOT NULL CONSTRAINT alembic_version_pkc PRIMARY KEY);
    -- The oldest revision whose code runs on this schema.
    ALTER TABLE alembic_version ADD COLUMN IF NOT EXISTS runs_from varchar(32)
"""
