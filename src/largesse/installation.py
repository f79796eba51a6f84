"""Opens the parts of an installation that every process needs: its database, the vault that encrypts its secrets, and its chains.

Commands need no more than this. `largesse.main` builds the services and the worker on top.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import structlog
from asyncpg import InsufficientPrivilegeError

from largesse.audit.service import Acting, by_command
from largesse.base.errors import MayNotAct, OperatorError
from largesse.base.settings import Settings
from largesse.db.embedded import EmbeddedServer
from largesse.db.migrate import current_revision, head_revision, runs_on
from largesse.db.pool import DATABASE_FAILED, Connection, Database, commit_as_one, in_one_line
from largesse.db.postmaster import end_orphans_for_ever
from largesse.db.roles import Role
from largesse.db.scope import OPERATOR
from largesse.db.session import COMMANDS, UNLIMITED, Limits
from largesse.db.sharding import trouble as nodes_trouble
from largesse.encryption.chain_keys import Chains, bring_up_to_date, is_chained, open_chains
from largesse.encryption.master_keys import is_sealed, note_sealing, prove_master_key
from largesse.encryption.vault import Vault, is_key_to_be_generated, load_vault, master_key_file
from largesse.ledger.chains import mark_ledger, unchained

SERVING_CONNECTIONS = 10  # database connections of a serving process, without those of its back office and of a worker
OFFICE_CONNECTIONS = 4  # database connections of its back office
_WATCH_EVERY_S = 1.0

_log = structlog.get_logger(__name__)
_IS_LEDGER_CHAINED = "SELECT is_ledger_chained()"
_HAS_MARKS = "SELECT has_marks()"


async def open_vault(database: Database, settings: Settings, *, keep: bool = True) -> Vault:
    """Returns the installation's vault, after it has checked that the database is encrypted under its master key.

    Transactions of `database` can change credentials of people from then on.
    Adds keys that the database does not have yet, as the operator. Without `keep` it writes nothing, as an audit must not.
    Raises OperatorError for a wrong key, and if keys must be added but the login may not act as the operator.
    """
    async with database.connection(OPERATOR) as connection:
        if is_key_to_be_generated(settings) and await is_sealed(connection):
            raise OperatorError(
                f"LARGESSE_MASTER_KEY is not set and {master_key_file(settings)} is missing, but the database is "
                "encrypted under it: bring the file back from a backup"
            )
        vault = load_vault(settings)
        await prove_master_key(connection, vault, keep=False)
        has_keys = not keep or await note_sealing(connection, vault)
    if not has_keys:
        async with _operator(settings, database) as connection:
            await prove_master_key(connection, vault, keep=True)
    database.credentials_key = vault.credentials_key
    return vault


async def chains_of(database: Database, vault: Vault, settings: Settings, *, renew: bool = False) -> Chains:
    """Returns the chains of the installation's ledger and audit log. Makes their first key, as the operator, if there is none.

    With `renew`, it also makes a new key if the master key is new. Only the operator may do this. Raises OperatorError if `migrate` must
    run first, or if the chain of an account is missing although the ledger was chained.
    """
    async with database.connection(OPERATOR) as connection:
        chains = None
        if renew or await is_chained(connection):
            chains = await open_chains(connection, vault, keep=renew)
    if chains is None:
        async with _operator(settings, database) as connection:
            chains = await open_chains(connection, vault, keep=True)
    async with database.connection(OPERATOR) as connection:
        if not await connection.fetchval(_IS_LEDGER_CHAINED):
            raise OperatorError(
                "the ledger was changed from outside: an account has entries but no chain. `largesse verify` "
                "names what was changed; restore a backup from before that"
            )
    return chains


@asynccontextmanager
async def _operator(settings: Settings, database: Database) -> AsyncIterator[Connection]:
    """Opens a connection as the operator, to add keys. It has the time-outs of `database`.

    Raises OperatorError if the login may not act as the operator.
    """
    try:
        async with (
            open_database(settings, max_connections=1, limits=database.dialer.limits) as operators,
            operators.connection(OPERATOR) as connection,
        ):
            yield connection
    # InsufficientPrivilegeError comes through PgBouncer, where logins act as themselves.
    except (MayNotAct, InsufficientPrivilegeError):
        raise OperatorError(
            "the database does not have the keys of this LARGESSE_MASTER_KEY yet, and the login here may not add them: "
            "run `largesse migrate` with it first"
        ) from None


async def chain_ledger(settings: Settings) -> int:
    """Adds the installation's keys if it has a master key, and gives all entries of the ledger marks of the current format.

    Returns how many entries had no mark. This happens once, in one transaction: an entry without a mark after it was not written by us.
    Raises OperatorError if the ledger was changed from outside, and if the master key is wrong or missing.
    """
    async with open_database(settings, max_connections=1, limits=UNLIMITED) as database:
        async with database.connection(OPERATOR) as connection:
            is_done = await is_chained(connection) or await _is_new(connection)
        if is_done and not (settings.master_keys or master_key_file(settings).exists()):
            return 0
        vault = await open_vault(database, settings)
        if is_done:
            await chains_of(database, vault, settings, renew=True)
            return 0
        async with database.transaction(OPERATOR) as connection:
            await commit_as_one(connection)
            chains = await bring_up_to_date(connection, vault)
            if chains is None:
                return 0
            entries = await mark_ledger(connection, chains.entries)
            acting = Acting(by_command("largesse migrate"), chains)
            await acting.record(connection, "ledger.chained", "ledger", after={"entries": entries})
    return entries


async def _is_new(connection: Connection) -> bool:
    """Returns whether the database has nothing to mark yet. Then the first process that starts makes the key."""
    return not (await connection.fetchval(_HAS_MARKS) or await unchained(connection))


@asynccontextmanager
async def open_database(
    settings: Settings,
    *,
    role: Role = Role.OPERATOR,
    max_connections: int = SERVING_CONNECTIONS,
    limits: Limits = COMMANDS,
) -> AsyncIterator[Database]:
    """Opens the pool of the installation's database as `role`. Raises OperatorError if it cannot be reached.

    As a serving process or a worker, also ends sessions of their login that dead processes left at the server.
    """
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(database_address(settings, role))
        try:
            database = await Database.connect(url, role=role, max_connections=max_connections, limits=limits)
        except DATABASE_FAILED as error:
            raise OperatorError(f"the database cannot be reached: {in_one_line(error)}") from None
        stack.push_async_callback(database.close)
        if role in {Role.APP, Role.WORKER}:
            stack.push_async_callback(cancelled, asyncio.create_task(end_orphans_for_ever(database)))
        yield database


@asynccontextmanager
async def database_address(settings: Settings, role: Role | None) -> AsyncIterator[str]:
    """Returns the address of the installation's database for `role`. An embedded server runs until the block ends.

    A `role` of None means the login that makes the roles. Raises OperatorError if an embedded server cannot start.
    """
    if settings.database_url is not None:
        serves = role in {Role.APP, Role.WORKER, Role.OFFICE}
        yield settings.database_url if serves else settings.owner_database_url or settings.database_url
        return
    async with embedded_server(settings) as server:
        yield server.url(role=role)


@asynccontextmanager
async def embedded_server(settings: Settings) -> AsyncIterator[EmbeddedServer]:
    """Runs the embedded server until the block ends, and starts it again if it dies."""
    server = EmbeddedServer(settings.data_dir)
    try:
        # If this is cancelled, the thread goes on, and the release below waits for it.
        await asyncio.to_thread(server.acquire)
        watch = asyncio.create_task(_keep_running(server))
        try:
            yield server
        finally:
            watch.cancel()
    finally:
        await asyncio.to_thread(server.release)


async def check_schema(database: Database) -> None:
    """Raises OperatorError if this release cannot work with the schema, or with the nodes that its tables are on."""
    trouble = await database.read(OPERATOR, schema_trouble)
    if trouble is not None:
        raise OperatorError(trouble)


async def schema_trouble(connection: Connection) -> str | None:
    """Returns why this release cannot work with the schema, or with the nodes that its tables are on; None if it can."""
    try:
        revision = await current_revision(connection)
    except InsufficientPrivilegeError:  # the roles were made for another database of this server
        return "the database's roles have no rights on its schema: run `largesse migrate` first"
    named = f"at revision {revision}" if revision else "empty"
    if revision is None or revision < head_revision():
        return f"the database's schema is {named}: run `largesse migrate` first"
    if revision > head_revision() and not await runs_on(connection):
        return f"the database's schema is {named}, newer than this release of Largesse: install a newer one"
    return await nodes_trouble(connection)


async def cancelled(task: asyncio.Task[Any]) -> None:
    """Cancels a task and waits until it has ended: before what it uses is closed."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def _keep_running(server: EmbeddedServer) -> None:
    while True:
        await asyncio.sleep(_WATCH_EVERY_S)
        try:
            await asyncio.to_thread(server.ensure_running)
        except OperatorError as error:
            _log.error("embedded_server_not_started", reason=str(error))
