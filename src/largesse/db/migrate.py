"""Brings a database to the current schema.

A revision is two files in `migrations/versions`: `NNNN_name.sql` says what it does, and the Python file of the same name
tells Alembic its place in the row. A revision once released is never changed: the next one corrects it.
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
from largesse.db.session import UNLIMITED, Dialer, Session

MIGRATIONS = Path(__file__).parent / "migrations"
LOCK_KEY = 0x6C617267657373  # "largess"; one `migrate` at a time holds this advisory lock


@dataclass(frozen=True, slots=True)
class Upgraded:
    """What `upgrade` came to."""

    revision: str  # the one the database is at
    refused: Sequence[str]  # statements on roles and rights that whoever migrates may not run: for an administrator
    spread: Sequence[str]  # tables that it spread over the nodes of a cluster


async def upgrade(url: str) -> Upgraded:
    """Makes the roles, runs the revisions the database lacks, spreads the tables where there are nodes, and gives the roles their rights.

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
        if told := await sharding.trouble(connection):
            raise OperatorError(told)
        owns = await connection.fetchval("SELECT current_user = $1", Role.OWNER)
        if revision != head_revision():
            await _run_alembic(dialer, Role.OWNER if owns else None)
        if refused:  # with what the revisions have just made
            refused = await grants.roles_to_make(connection)
        spread = await sharding.distribute(connection)
        refused += await grants.grant_rights(connection)
        refused += await grants.set_policies(connection)
    finally:
        await connection.close()  # frees the lock
    return Upgraded(head_revision(), refused, spread)


async def roles_to_make(url: str) -> list[str]:
    """The statements about roles that `upgrade` would run, for an administrator. Changes nothing; raises as `upgrade` does."""
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
    """The revision the database is at; None where it was never migrated."""
    if await connection.fetchval("SELECT to_regclass('alembic_version')") is None:
        return None
    revision: str | None = await connection.fetchval("SELECT version_num FROM alembic_version")
    return revision


def head_revision() -> str:
    """The revision this release needs: the highest number among the files, since the row has no branches."""
    return max(path.name.split("_")[0] for path in (MIGRATIONS / "versions").glob("[0-9]*.sql"))


def run_sql_beside(revision_file: str) -> None:
    """For revisions: runs the SQL file named like the Python file, in the migration's transaction."""
    # Alembic takes a while to import and is wanted here alone: `serve` only compares revisions.
    from alembic import op

    script = Path(revision_file).with_suffix(".sql").read_text(encoding="utf-8")
    connection = op.get_bind()
    connection.exec_driver_sql("SELECT 1")  # opens the transaction, which the driver does with its first statement
    pooled = connection.connection
    # Straight to asyncpg: anything above it would take `:name` and `%` for parameters and allows one statement only.
    pooled.dbapi_connection.run_async(lambda driver: driver.execute(script))  # type: ignore[union-attr]


async def _run_alembic(dialer: Dialer, owner: Role | None) -> None:
    """Runs the revisions as the owner of what they make; None: whoever logs in."""
    from alembic import command
    from alembic.config import Config
    from sqlalchemy import Connection
    from sqlalchemy.ext.asyncio import create_async_engine
    from sqlalchemy.pool import NullPool

    config = Config(attributes={})
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))

    def run(connection: Connection) -> None:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")

    async def dial() -> Session:
        session = await dialer.dial()
        if owner is not None:
            await act_as(session, owner)
        return session

    engine = create_async_engine("postgresql+asyncpg://", async_creator=dial, poolclass=NullPool)
    try:
        async with engine.connect() as connection:
            await connection.run_sync(run)
    finally:
        await engine.dispose()
