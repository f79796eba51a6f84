"""Checks of the database: connection, version, schema, safety, limits and clock, and of its roles, rights and policies."""

from contextlib import suppress
from datetime import datetime

from largesse.base import clock
from largesse.base.errors import MayNotAct, OperatorError
from largesse.base.settings import Settings
from largesse.db.embedded import has_cluster
from largesse.db.grants import differences, policies_missing
from largesse.db.manifest import schema_differences
from largesse.db.migrate import OLDEST_SERVER, current_revision
from largesse.db.pool import DATABASE_FAILED, Connection, connect_once, in_one_line
from largesse.db.roles import Role
from largesse.db.scope import OPERATOR
from largesse.db.session import Session
from largesse.db.sharding import is_distributed
from largesse.doctor.checks import CheckResult, error, ok, warning
from largesse.doctor.machine import check_master_key_fits
from largesse.installation import OFFICE_CONNECTIONS, SERVING_CONNECTIONS, database_address, schema_trouble
from largesse.orders.ids import FEW_IDS, LAST_ID
from largesse.worker import DATABASE_CONNECTIONS as WORKING_CONNECTIONS

_NAME = "LARGESSE_DATABASE_URL"
_SEE = "docs/database.md, Database roles"
# The attributes of the role with which this session logged in.
_LOGIN = """
    SELECT session_user::text AS login, current_user = $1 AS acts, me.rolsuper,
           me.rolcreaterole OR me.rolcreatedb AS makes,
           (SELECT pg_has_role(session_user, relowner, 'MEMBER')
            FROM pg_class WHERE oid = to_regclass('alembic_version')) AS owns
    FROM pg_roles me WHERE me.rolname = session_user
"""
_IS_STANDBY = "SELECT pg_is_in_recovery()"
# The number of connections that are allowed: the lowest of the limits of server, database and role.
_ALLOWED = """
    SELECT least(
        current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int,
        (SELECT nullif(datconnlimit, -1) FROM pg_database WHERE datname = current_database()),
        (SELECT nullif(rolconnlimit, -1) FROM pg_roles WHERE rolname = session_user)) AS allowed
"""
_WHICH = "SELECT system_identifier, oid FROM pg_control_system(), pg_database WHERE datname = current_database()"
_CLOCK = "SELECT clock_timestamp()"
_UNFINISHED = """
    SELECT string_agg(i.indexrelid::regclass::text, ', ' ORDER BY i.indexrelid::regclass::text) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    WHERE NOT i.indisvalid AND c.relnamespace = 'public'::regnamespace
"""
_LAST_ID = "SELECT last_value FROM orders_id_seq"
# How far the clock is moved; no row if it is not.
_AHEAD_BY = "SELECT ahead_by::text FROM clock WHERE ahead_by <> '0'"


async def check_roles(connection: Connection, settings: Settings, role: Role) -> list[CheckResult]:
    """Returns the results about roles for `connection`, which was opened as a serving process or a worker does."""
    row = await connection.fetchrow(_LOGIN, role)
    assert row is not None, "whoever is logged in is there"
    if not row["acts"] and "pgbouncer=true" not in (settings.database_url or ""):
        return [
            warning(
                _NAME,
                f"There is no role {role} that {row['login']} may act as, so processes have all rights of {row['login']}. "
                f"`largesse migrate --roles-sql` prints the SQL that creates it ({_SEE}).",
            )
        ]
    return [_login(row["login"], _more(row), role), await _rights(connection), await _policies(connection)]


def _more(row: object) -> str:
    """Returns the rights of a login beyond those that a process needs; empty if there are none."""
    for name, said in (
        ("rolsuper", "is a superuser"),
        ("owns", "owns the schema"),
        ("makes", "makes roles or databases"),
    ):
        if row[name]:  # type: ignore[index]
            return said
    return ""


def _login(login: str, more: str, role: Role) -> CheckResult:
    if more:
        return warning(
            _NAME,
            f"Processes log in as {login}, who {more}. An attacker who can send any statement could switch back from their "
            f"roles to {login}: create logins that are members of one role each ({_SEE}).",
        )
    processes = "Serving processes" if role is Role.APP else "Workers"
    return ok(_NAME, f"{processes} log in as {login}, who may do no more than they need.")


async def _policies(connection: Connection) -> CheckResult:
    missing = await policies_missing(connection)
    if not missing:
        return ok(_NAME, "Row-level security holds customers apart.")
    return warning(
        _NAME,
        f"Row-level security does not hold customers apart as it should: {len(missing)} statements are missing, such as "
        f"{missing[0]}: `largesse migrate` puts it right ({_SEE}).",
    )


async def _rights(connection: Connection) -> CheckResult:
    found = await differences(connection)
    if found.missing:
        first = found.missing[0].grant
        said = f"Roles lack {len(found.missing)} of their rights, such as {first}"
    elif found.extra:
        first = found.extra[0].grant
        said = f"Roles have {len(found.extra)} rights that are not theirs, such as {first}"
    else:
        return ok(_NAME, "Every role has its rights, and no others.")
    return warning(_NAME, f"{said}: `largesse migrate` puts them right.")


_FAILED: tuple[type[BaseException], ...] = (OperatorError, *DATABASE_FAILED)
_OWNER = "LARGESSE_OWNER_DATABASE_URL"
_CLOCKS_APART_S = 2.0
_SPARE_CONNECTIONS = 12  # connections for people, backups and monitoring

# The text of the result for each of these settings that is off.
_SAFETY = {
    "fsync": "a crash of the machine may ruin the database",
    "synchronous_commit": "a crash may lose orders that were acknowledged",
    "full_page_writes": "a crash of the machine may ruin pages of the database",
}


async def check_database(settings: Settings) -> list[CheckResult]:
    """Returns all results about the database. Starts an embedded one for this."""
    if settings.database_url is None and not has_cluster(settings.data_dir):
        return [error(_NAME, "There is no embedded database yet: run `largesse migrate`.")]
    try:
        try:
            findings = await _look_as(Role.APP, settings)
        except MayNotAct as failure:  # the login is a worker's, which does not serve
            try:
                findings = await _look_as(Role.WORKER, settings)
            except MayNotAct:
                raise failure from None
    except _FAILED as failure:
        findings = [error(_NAME, f"The database cannot be reached: {in_one_line(failure)}.")]
    return findings + await _check_owner(settings.owner_database_url, settings.database_url)


async def _look_as(role: Role, settings: Settings) -> list[CheckResult]:
    async with database_address(settings, role) as url, connect_once(url, OPERATOR, role=role) as connection:
        return await _look_at(connection, settings, role)


async def _check_owner(url: str | None, served: str | None) -> list[CheckResult]:
    """Connects with the address of commands, if they have a separate one. It must be of the same database as the one `served`."""
    if url is None:
        return []
    try:
        async with connect_once(url, OPERATOR, role=Role.OPERATOR) as connection:
            if served is not None and await _is_other(connection, served):
                return [error(_OWNER, f"Commands change another database than the one of {_NAME}.")]
            return [ok(_OWNER, "Commands reach the database.")]
    except _FAILED as failure:
        return [error(_OWNER, f"Commands cannot reach the database: {in_one_line(failure)}.")]


async def _is_other(connection: Connection, served: str) -> bool:
    """Returns whether an address is of another database than `connection`. Returns False if it cannot be reached, or customers are distributed over nodes."""
    with suppress(*_FAILED):
        async with connect_once(served, OPERATOR) as other:
            if not await is_distributed(other):
                return bool(await connection.fetchrow(_WHICH) != await other.fetchrow(_WHICH))
    return False


async def _look_at(connection: Connection, settings: Settings, role: Role) -> list[CheckResult]:
    findings = [await look(connection) for look in (_version, _writable, _encoding, _safety, _room, _clock)]
    findings += _encryption(connection)
    trouble = await schema_trouble(connection)
    if trouble is not None:
        return [*findings, error(_NAME, f"{trouble[0].upper()}{trouble[1:]}.")]
    findings.append(ok(_NAME, f"The schema is one that this release runs on, {await current_revision(connection)}."))
    findings += [await look(connection) for look in (_ids, _indexes, _moved_clock)]
    findings += await check_roles(connection, settings, role)
    return findings + await check_master_key_fits(connection, settings)


async def _version(connection: Connection) -> CheckResult:
    version = await connection.fetchval("SHOW server_version")
    number = int(await connection.fetchval("SHOW server_version_num"))
    if number < OLDEST_SERVER * 10_000:
        return error(_NAME, f"PostgreSQL {version} is too old: it must be {OLDEST_SERVER} or later.")
    return ok(_NAME, f"PostgreSQL {version} answers.")


async def _writable(connection: Connection) -> CheckResult:
    if await connection.fetchval(_IS_STANDBY):
        return error(_NAME, "The server is a standby: it takes no orders until it is promoted.")
    if await connection.fetchval("SHOW default_transaction_read_only") == "on":
        return error(_NAME, "Transactions are read-only (default_transaction_read_only): no order can be placed.")
    return ok(_NAME, "The database can be written to.")


async def _encoding(connection: Connection) -> CheckResult:
    encoding = await connection.fetchval("SHOW server_encoding")
    if encoding != "UTF8":
        return error(_NAME, f"The database is encoded in {encoding}: make it anew in UTF8 (createdb --encoding UTF8).")
    return ok(_NAME, "The database is encoded in UTF8.")


def _encryption(connection: Connection) -> list[CheckResult]:
    assert isinstance(connection, Session)
    if not connection.is_readable_on_network:
        return []
    said = "The connection to the database leaves this machine and is not encrypted: add ?sslmode=verify-full to the address"
    return [warning(_NAME, f"{said} (docs/database.md, External database).")]


async def _safety(connection: Connection) -> CheckResult:
    off = {name: said for name, said in _SAFETY.items() if await connection.fetchval(f"SHOW {name}") == "off"}
    if off:
        said = "; ".join(f"{name} is off: {what}" for name, what in off.items())
        return warning(_NAME, f"{said}. Switch it on.")
    return ok(_NAME, "What is acknowledged is on the disk (fsync, synchronous_commit, full_page_writes).")


async def _room(connection: Connection) -> CheckResult:
    """Returns how many connections are allowed: the lowest limit of server, database and role."""
    row = await connection.fetchrow(_ALLOWED)
    assert row is not None, "a query of one row"
    allowed: int = row["allowed"]
    serving = SERVING_CONNECTIONS + OFFICE_CONNECTIONS
    needed = serving + WORKING_CONNECTIONS + _SPARE_CONNECTIONS
    each = f"a serving process takes up to {serving}, a worker {WORKING_CONNECTIONS}"
    if allowed < needed:
        return warning(
            _NAME,
            f"The database allows {allowed} connections: {each}, and {_SPARE_CONNECTIONS} should be spare. "
            "Raise max_connections, or the limit of the database or the role.",
        )
    return ok(_NAME, f"The database allows {allowed} connections: {each}.")


async def _clock(connection: Connection) -> CheckResult:
    sent = clock.now().timestamp()
    at: datetime = await connection.fetchval(_CLOCK)
    return compare_clocks(sent, at.timestamp(), clock.now().timestamp())


def compare_clocks(sent: float, at: float, received: float) -> CheckResult:
    """Compares the database's time `at` with this machine's time before and after the query (seconds since 1970)."""
    ahead_s = at - (sent + received) / 2
    if abs(ahead_s) > _CLOCKS_APART_S + (received - sent) / 2:
        which = "ahead of" if ahead_s > 0 else "behind"
        said = f"The database's clock is {abs(ahead_s):.1f} s {which} this machine's"
        return warning(_NAME, f"{said}: let both follow a time server.")
    return ok(_NAME, "The database's clock and this machine's agree.")


async def _ids(connection: Connection) -> CheckResult:
    left = LAST_ID - int(await connection.fetchval(_LAST_ID))
    if left <= 0:
        return error(_NAME, "No id of an order is left: none can be placed any more. Ask for help before you go on.")
    if left < FEW_IDS:
        return warning(_NAME, f"Ids for {left:,} more orders are left, fewer than a tenth: ask for help in good time.")
    return ok(_NAME, f"Ids for {left:,} more orders are left.")


async def _indexes(connection: Connection) -> CheckResult:
    differs = await schema_differences(connection)
    if missing := [one.rpartition(".")[2] for one in differs if one.startswith("missing index ")]:
        return warning(
            _NAME,
            f"Indexes of this release are missing: {', '.join(missing)}. Without them, statements read whole tables: create them "
            "again as src/largesse/db/migrations does, with CREATE INDEX CONCURRENTLY.",
        )
    unfinished = await connection.fetchval(_UNFINISHED)
    if unfinished is None:
        return ok(_NAME, "Every index is there and complete.")
    return warning(
        _NAME,
        f"An index is not complete, and no query uses it: {unfinished}. Its build goes on, or was interrupted: then run "
        "REINDEX INDEX CONCURRENTLY with its name.",
    )


async def _moved_clock(connection: Connection) -> CheckResult:
    moved = await connection.fetchval(_AHEAD_BY)
    if moved is not None:
        return warning(_NAME, f"Deliveries go by a clock that is moved by {moved} (table clock), as only tests do.")
    return ok(_NAME, "Deliveries go by the database's clock.")
