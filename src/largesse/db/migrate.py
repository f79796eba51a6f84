"""Brings a database to the current schema.

A revision is a file in `migrations`, `NNNN_name.sql`, numbered without gaps. A released revision never changes: the next one corrects it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import asyncpg

from largesse.base.database_address import DatabaseAddress
from largesse.base.errors import OperatorError
from largesse.db import grants, sharding
from largesse.db.roles import Role, act_as
from largesse.db.session import UNLIMITED, Dialer

REVISIONS = Path(__file__).parent / "migrations"
LOCK_KEY = 0x6C617267657373  # "largess"; one `migrate` at a time holds this advisory lock


@dataclass(frozen=True, slots=True)
class Upgraded:
    """The result of `upgrade`."""

    revision: str  # the one the database is at
    refused: Sequence[str]  # statements on roles and rights that the login may not run: for an administrator
    distributed: Sequence[str]  # tables that it distributed over the nodes of a cluster


async def upgrade(url: str) -> Upgraded:
    """Makes the roles, runs the revisions the database lacks, distributes the tables where there are nodes, and gives the roles their rights.

    Safe to run twice at once: the second waits, and finds nothing left to do. Raises asyncpg's errors, and
    OperatorError for a schema of a later release, for nodes that cannot be worked with, and for an address of PgBouncer: the lock needs a
    session of its own.
    """
    dialer = Dialer(_direct(url), UNLIMITED)
    connection = await dialer.dial()
    try:
        await connection.execute("SELECT pg_advisory_lock($1)", LOCK_KEY)
        revision = await current_revision(connection)
        if revision is not None and revision > head_revision():
            raise OperatorError(f"the database's schema is at revision {revision}, newer than this release of Largesse")
        refused = await grants.prepare_roles(connection)
        # Before a table is made or changed on the coordinator alone.
        if trouble := await sharding.trouble(connection):
            raise OperatorError(trouble)
        owns = await connection.fetchval("SELECT current_user = $1", Role.OWNER)
        if revision != head_revision():
            await _run_revisions(dialer, revision, as_owner=owns)
        if refused:  # with what the revisions have just made
            refused = await grants.roles_to_make(connection)
        distributed = await sharding.distribute(connection)
        refused += await grants.grant_rights(connection)
        refused += await grants.set_policies(connection)
    finally:
        await connection.close()  # frees the lock
    return Upgraded(head_revision(), refused, distributed)


async def roles_to_make(url: str) -> list[str]:
    """Returns the statements about roles that `upgrade` would run, for an administrator. Changes nothing; raises as `upgrade` does."""
    connection = await Dialer(_direct(url), UNLIMITED).dial()
    try:
        return await grants.roles_to_make(connection)
    finally:
        await connection.close()


def _direct(url: str) -> DatabaseAddress:
    address = DatabaseAddress.parse(url)
    if address.is_pooled:
        raise OperatorError("migrate needs the address of PostgreSQL itself, not of PgBouncer")
    return address


async def current_revision(connection: asyncpg.Connection[asyncpg.Record]) -> str | None:
    """Returns the revision of the database; None if it was never migrated."""
    if await connection.fetchval("SELECT to_regclass('alembic_version')") is None:
        return None
    revision: str | None = await connection.fetchval("SELECT version_num FROM alembic_version")
    return revision


def head_revision() -> str:
    """Returns the revision this release needs."""
    return _revisions()[-1].name[:4]


def _revisions() -> list[Path]:
    """Returns the files of all revisions, the oldest first."""
    return sorted(REVISIONS.glob("[0-9]*.sql"))


async def _run_revisions(dialer: Dialer, after: str | None, *, as_owner: bool) -> None:
    """Runs the revisions later than `after`, each in a transaction of its own that also notes it.

    `as_owner` makes the owner's role the owner of what they make; else the login is.
    """
    session = await dialer.dial()
    try:
        if as_owner:
            await act_as(session, Role.OWNER)
        for path in _revisions():
            revision = path.name[:4]
            if revision > (after or ""):
                async with session.transaction():
                    await session.execute(_VERSION_TABLE)
                    await session.execute(path.read_text(encoding="utf-8"))
                    await session.execute("DELETE FROM alembic_version")
                    await session.execute("INSERT INTO alembic_version (version_num) VALUES ($1)", revision)
    finally:
        await session.close()


# Named so since releases before 0.2.0, which ran their revisions with Alembic.
_VERSION_TABLE = """
    CREATE TABLE IF NOT EXISTS alembic_version (
        version_num varchar(32) NOT NULL CONSTRAINT alembic_version_pkc PRIMARY KEY)
"""
