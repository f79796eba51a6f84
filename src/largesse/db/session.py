"""Opens sessions of the database, with time-outs on both sides.

A host that vanishes, or a network that drops packets, reports no error. So both sides have time-outs. The server ends the transaction of a
silent client, and frees its locks. The client drops a session whose server does not answer. Behind PgBouncer, the role has the server's
time-outs (docs/scaling.md).
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import socket
from ipaddress import ip_address
from typing import Any, cast

import asyncpg
import msgspec

from largesse.base import clock
from largesse.base.database_address import DatabaseAddress, address_at
from largesse.db.pipeline import Answer, Exchange, Statement, Unanswered
from largesse.db.roles import Role, act_as, can_act_as
from largesse.db.scope import Actor, Scope
from largesse.db.sharding import SERVICE_SETTINGS, SESSION_SETTINGS

CONNECT_TIMEOUT_S = 4.0
# The time-out for one of several hosts: if the first does not answer, the caller must still reach the next one in time.
_HOST_TIMEOUT_S = 1.5
_CLOSE_TIMEOUT_S = 2.0
# A peer that does not answer counts as dead after some 10 seconds. The system's default is two hours.
_KEEPALIVE_IDLE_S, _KEEPALIVE_EVERY_S, _KEEPALIVE_COUNT = 5, 2, 3
_UNACKNOWLEDGED_MS = 10_000
# A database that is set to read-only and back says so to new sessions only. So a read-only session is used for this long at most.
_READ_ONLY_S = 5.0
_OPEN_CREDENTIALS = "SELECT open_credentials($1)"


class Limits(msgspec.Struct, frozen=True):
    """Time-outs in seconds: of a statement, of its wait for a lock, and of a transaction's wait for its next statement.

    The server enforces them. The client waits a little longer than the longest statement may take: after that, the server is silent.
    """

    statement_s: int  # 0 in any field: no limit
    lock_s: int
    idle_in_transaction_s: int
    idle_s: int = 0  # the limit outside a transaction, so that sessions of lost clients do not pile up at the server
    cancels: bool = False

    @property
    def answer_s(self) -> float | None:
        """How long the client waits for the answer to one statement."""
        return self.statement_s + 1.0 if self.statement_s else None

    @property
    def settings(self) -> dict[str, str]:
        """These limits as parameters of a session."""
        return {
            "statement_timeout": f"{self.statement_s}s",
            "lock_timeout": f"{self.lock_s}s",
            "idle_in_transaction_session_timeout": f"{self.idle_in_transaction_s}s",
            "idle_session_timeout": f"{self.idle_s}s",
        }

    @property
    def name(self) -> str:
        """Returns the application name of such sessions."""
        return "largesse command" if self.cancels else "largesse"


# A caller gets an answer within 15 seconds, whatever happens to the database. One wait for a session and one for
# a statement must fit in that, and an abandoned transaction must have ended by then.
REQUESTS = Limits(statement_s=7, lock_s=3, idle_in_transaction_s=5, idle_s=30)
# A worker's steps change more rows, and no caller waits for them.
WORK = Limits(statement_s=10, lock_s=5, idle_in_transaction_s=10, idle_s=30)
# Loads and imports may take long, but must not keep locks while they do nothing.
COMMANDS = Limits(statement_s=600, lock_s=30, idle_in_transaction_s=10, cancels=True)
# A revision may take hours to build an index.
UNLIMITED = Limits(statement_s=0, lock_s=0, idle_in_transaction_s=60, cancels=True)

# Values of the scope's settings while no scope is set. They are not arrays, so a policy fails with an error that shows the reason.
_UNSAID = {"largesse.customers": "no scope was said", "largesse.environments": "no scope was said"}

# Settings on which statements rely, but which a server, a database or a login may set differently.
# They are needed for reads after a lock, which must see earlier commits, for comparing definitions with the release, for the rows of customers, and for backslashes in texts.
_RELIED_ON = {
    "default_transaction_isolation": "read committed",
    "bytea_output": "hex",
    "intervalstyle": "postgres",
    "quote_all_identifiers": "off",
    "row_security": "on",
    "standard_conforming_strings": "on",
    "search_path": "public",
}

# PostgreSQL's arrays, by the fixed ids of their types and of their elements' types (pg_type.dat). The driver reads
# each type it does not know from the catalog, which takes the server 10 ms for each new session (MagicStack/asyncpg#1272).
_ARRAY_TYPES = [
    {
        "oid": oid,
        "ns": "pg_catalog",
        "name": f"_{name}",
        "elemtype": element,
        "elemtype_name": name,
        "elemdelim": b",",
        "range_subtype": None,
        "attrtypoids": None,
        "basetype": None,
        "kind": b"b",
    }
    for name, oid, element in (
        ("cidr", 651, 650),
        ("bool", 1000, 16),
        ("bytea", 1001, 17),
        ("int2", 1005, 21),
        ("int4", 1007, 23),
        ("int8", 1016, 20),
        ("float8", 1022, 701),
        ("inet", 1041, 869),
        ("date", 1182, 1082),
        ("timestamptz", 1185, 1184),
        ("uuid", 2951, 2950),
    )
]

_KEEPALIVE = {
    "tcp_keepalives_idle": f"{_KEEPALIVE_IDLE_S}s",
    "tcp_keepalives_interval": f"{_KEEPALIVE_EVERY_S}s",
    "tcp_keepalives_count": str(_KEEPALIVE_COUNT),
    "tcp_user_timeout": f"{_UNACKNOWLEDGED_MS}ms",
}


class Session(asyncpg.Connection):
    """A connection that detects a vanished peer, and returns to the pool without a round trip."""

    def __init__(self, protocol: Any, transport: asyncio.Transport, *more: Any) -> None:
        super().__init__(protocol, transport, *more)
        self._reported = protocol.get_settings()
        self._reported.register_data_types(_ARRAY_TYPES)
        _keep_alive(transport.get_extra_info("socket"))
        self._wire = transport
        self._opened_s = clock.passed_s()
        self._sent_together: set[str] = set()  # statements that the server has prepared for exchanges
        self._has_begun = False  # an exchange began a transaction that the driver does not know
        self.answer_s: float | None = None  # how long an exchange waits for its answers
        self.is_pooled = False
        self.scope: Scope | None = None
        self.acts_as: Role | None = None  # the role that the login has taken
        self.begins_as: Role | None = None  # the role of each transaction, if the session is PgBouncer's
        self.is_distributed = False  # whether customers are distributed over nodes (largesse.db.sharding)
        self.credentials_key: bytes | None = None
        self._has_opened = False  # `open_credentials` has run in this transaction
        # For a session on a node: the session on the coordinator that belongs to it (largesse.db.shard_groups).
        self.coordinator: asyncpg.Connection | None = None

    @property
    def is_readable_on_network(self) -> bool:
        """Whether the session leaves this machine without encryption."""
        peer, own = (self._wire.get_extra_info(name) for name in ("peername", "sockname"))
        if not isinstance(peer, tuple) or self._wire.get_extra_info("sslcontext") is not None:
            return False  # it uses a Unix socket, or TLS
        return not ip_address(peer[0]).is_loopback and peer[0] != own[0]

    def lend(self, scope: Scope, *, is_distributed: bool = False, credentials_key: bytes | None = None) -> None:
        """Sets the scope of the transactions that begin from now on. Raises TypeError for anything but a scope.

        `credentials_key` is for `open_credentials`.
        """
        if not isinstance(scope, Scope):
            raise TypeError("a transaction needs a Scope before its first statement")
        self.scope, self.is_distributed, self.credentials_key = scope, is_distributed, credentials_key

    @property
    def _is_read_only(self) -> bool:
        """Whether `default_transaction_read_only` was on when the session began. Servers report it, PgBouncer does not."""
        return getattr(self._reported, "default_transaction_read_only", "off") == "on"

    def set_coordinator(self, coordinator: asyncpg.Connection) -> None:
        """Makes `coordinator` the session on the coordinator that belongs to this one, which is on a node."""
        self.coordinator = coordinator  # the pool's wrapper of a session takes no attributes

    def take_back(self) -> None:
        """Ends what `lend` began. Closes the session if a transaction was left open, or if it has been read-only for some seconds."""
        if self._has_begun or (self._is_read_only and clock.passed_s() - self._opened_s > _READ_ONLY_S):
            self._has_begun = False
            self.terminate()
        self.scope = self.coordinator = self.credentials_key = None

    async def open_credentials(self) -> None:
        """Allows the rest of the transaction to change credentials of people, if the session was lent with their key.

        Raises RuntimeError outside a transaction, as it would end before the change.
        """
        if self.credentials_key is None:
            return
        if not self.is_in_transaction():
            raise RuntimeError("credentials must be changed inside a transaction")
        if self._has_opened:
            return
        # The key is a parameter, because every session of the role can read the text of a statement.
        await self.fetchval(_OPEN_CREDENTIALS, self.credentials_key)
        self._has_opened = True

    async def act_for(self, scope: Scope) -> None:
        """Sets the scope for the rest of the transaction: the customer that a look-up has found, or a part of the present scope."""
        if self.scope == scope:
            return
        if self.scope is None or not (self.scope.actor is Actor.LOOKUP or self.scope.includes(scope)):
            raise RuntimeError("only a look-up may continue with another customer: the one that it found")
        self.scope = scope
        if self.is_in_transaction():
            await self.execute(scope.said)

    async def execute(self, query: str, *args: Any, timeout: float | None = None) -> str:  # noqa: ASYNC109 - as the driver has it
        """Runs statements, as the driver does. BEGIN sets role and scope in the same message."""
        if query.startswith(("BEGIN", "COMMIT", "ROLLBACK")):
            self._has_opened = self._has_begun = False
        query = self._with_scope(query)
        if self.is_distributed and query.startswith("BEGIN"):
            # A coordinator passes the whole message to its nodes for each setting in it. So BEGIN must be a separate message.
            begin, _, query = query.partition(";")
            begun: str = await super().execute(begin, timeout=timeout)
            if not query.strip():
                return begun
        done: str = await super().execute(query, *args, timeout=timeout)
        return done

    @property
    def can_send_together(self) -> bool:
        """Whether `send_together` may be called: not behind PgBouncer, and not on a cluster, where BEGIN must be a separate message."""
        return not (self.is_pooled or self.is_distributed)

    async def send_together(self, *statements: Statement) -> list[Answer]:
        """Runs statements in one round trip, and returns the answer to each. BEGIN sets role and scope, as in `execute`.

        If a statement fails, so do the others of its transaction. Drops the session if the last one is Unanswered, or the caller is cancelled.
        """
        scoped = [statement._replace(sql=self._with_scope(statement.sql)) for statement in statements]
        exchange = Exchange(self._wire, scoped, self._sent_together)
        try:
            await exchange.run(self.answer_s)
        except BaseException:
            self.terminate()
            raise
        self._has_begun = exchange.status != b"I"
        if isinstance(exchange.answers[-1], Unanswered):
            self._has_begun = False
            self.terminate()
        return exchange.answers

    def _with_scope(self, query: str) -> str:
        """Returns the query. If it is a BEGIN, adds role and scope."""
        said = self._said if query.startswith("BEGIN") else ""
        return f"{query.rstrip(';')}; {said}" if said else query

    @property
    def _said(self) -> str:
        role = f"SET LOCAL ROLE {self.begins_as}; " if self.begins_as else ""
        return f"{role}{self.scope.said}" if self.scope else role

    def get_reset_query(self) -> str:
        """Returns an empty query: no session state is left, so returning a connection takes no round trip."""
        return ""

    async def close(self, *, timeout: float | None = None) -> None:  # noqa: ASYNC109 - as the driver has it
        """Closes the session, also with a server that is silent."""
        with contextlib.suppress(OSError, asyncpg.InterfaceError, asyncpg.PostgresError):
            await super().close(timeout=timeout or _CLOSE_TIMEOUT_S)


class _DroppedSession(Session):
    """A session that is dropped as soon as the wait for a statement's answer is cancelled.

    The driver would ask the server on another connection to cancel the statement, and would wait for a silent server twice. Also, a COMMIT
    must not be cancelled: one that waits for a standby would count as done, but only on the primary.
    """

    def _cancel_current_command(self, *_: Any) -> None:
        # Later, as the driver still writes when it calls this.
        asyncio.get_running_loop().call_soon(self.terminate)


class Dialer:
    """Opens sessions at an address, on the first of its hosts that accepts one. Tries the last host that did first.

    With a `role`, the sessions act as it from the first statement on, if the login may.
    """

    def __init__(self, address: DatabaseAddress, limits: Limits, role: Role | None = None) -> None:
        self.address = address
        self.hosts = address.hosts
        self.role = role
        self.limits = limits
        self.is_pooled = address.is_pooled
        session = {"application_name": limits.name, "timezone": "UTC"}
        distribution = SESSION_SETTINGS if limits.cancels else {**SESSION_SETTINGS, **SERVICE_SETTINGS}
        # The back office reads lists and sums, as the pages of people do (`Planning.FOR_VALUES`).
        planning = {"plan_cache_mode": "force_custom_plan"} if role is Role.OFFICE else {}
        self._options: dict[str, Any] = {
            "command_timeout": limits.answer_s,
            # Behind PgBouncer, each transaction may get another session of the server. So no statement is prepared for later,
            # and PgBouncer refuses parameters that it does not store for each client.
            "statement_cache_size": 0 if address.is_pooled else 100,
            "server_settings": session
            if address.is_pooled
            else {
                **session,
                **_UNSAID,
                **_RELIED_ON,
                **_KEEPALIVE,
                **distribution,
                **limits.settings,
                **planning,
                "jit": "off",
            },
            "connection_class": Session if limits.cancels else _DroppedSession,
        }

    async def dial(self, *_: Any, **more: Any) -> Session:
        """Returns a new session. Raises the driver's error if no host accepts it."""
        session = await self._reach(more)
        if self.role is not None:
            try:
                if self.is_pooled:  # the next transaction of such a session may belong to another client
                    session.begins_as = self.role if await can_act_as(session, self.role) else None
                else:
                    session.acts_as = self.role if await act_as(session, self.role) else None
            except BaseException:
                session.terminate()
                raise
        return session

    def at(self, host: str, port: int) -> Dialer:
        """Returns a dialer that opens the same sessions on another server."""
        other = copy.copy(self)
        other.hosts = (address_at(self.hosts[0], host, port),)
        return other

    async def _reach(self, more: dict[str, Any]) -> Session:
        hosts = self.hosts
        timeout_s = CONNECT_TIMEOUT_S if len(hosts) == 1 else _HOST_TIMEOUT_S
        refused: Exception | None = None
        for at, host in enumerate(hosts):
            try:
                session = await asyncpg.connect(host, timeout=timeout_s, **{**more, **self._options})
            except (OSError, asyncpg.CannotConnectNowError, asyncpg.TargetServerAttributeNotMatched) as error:
                refused = error
                continue
            # The server accepts no sessions for this database now, or its disk is too full to write its catalogue's file
            # ("could not write init file"). Of a statement, the same errors are faults.
            except (asyncpg.ObjectNotInPrerequisiteStateError, asyncpg.InternalServerError) as error:
                refused = asyncpg.CannotConnectNowError(str(error))
                continue
            # The login has lost the right to connect. Of a statement, the same error is a fault of ours.
            except asyncpg.InsufficientPrivilegeError as error:
                raise asyncpg.InvalidAuthorizationSpecificationError(str(error)) from error
            self.hosts = hosts[at:] + hosts[:at]
            session.answer_s, session.is_pooled = self.limits.answer_s, self.is_pooled
            return cast("Session", session)
        assert refused is not None
        raise refused


def _keep_alive(sock: socket.socket) -> None:
    """Makes the operating system detect a vanished peer, if it supports this."""
    if sock.family == socket.AF_UNIX:
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        ("TCP_KEEPIDLE", _KEEPALIVE_IDLE_S),
        ("TCP_KEEPINTVL", _KEEPALIVE_EVERY_S),
        ("TCP_KEEPCNT", _KEEPALIVE_COUNT),
        ("TCP_USER_TIMEOUT", _UNACKNOWLEDGED_MS),
    ):
        if hasattr(socket, option):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
