"""The access of API keys and people: whether they may act, and whether they may act on orders of others.

A key is checked when a request arrives, and again in the transaction that writes, as a body may take long. That transaction locks the key.
A deletion and such a transaction wait for each other, so nothing is written with a deleted key.

A transaction of a person locks the session, the membership and the role that it relies on until it ends.
"""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple, Self

from msgspec.structs import replace

from largesse.base.errors import Inactive, OtherServiceAccount, PlanRequired, Unauthorized
from largesse.base.settings import parse_network
from largesse.customers.principal import ADMIN, SENDERS, Principal
from largesse.customers.restrictions import require_network, require_scope
from largesse.customers.sessions import Person
from largesse.db.fragments import Fragment, compose
from largesse.db.pool import Connection, Database, Row, coordinator_of, is_distributed

_MEMBERS = 0x6D656D62  # "memb", the class of the advisory locks of members; their object is the member's id
_CUSTOMERS = 0x63757374  # "cust", likewise of customers

# The rows that a transaction reads, or locks until it ends.
ACCOUNTS_OF_USERS = (
    "SELECT user_id, account_id FROM account_users WHERE customer_id = ANY($1::int[]) AND user_id = ANY($2::int[])"
)
HOLD_SESSIONS = """
    SELECT found.* FROM unnest($1::bigint[]) AS wanted (id) CROSS JOIN LATERAL (
        SELECT id, user_id, environment FROM sessions
        WHERE id = wanted.id AND ended_at IS NULL AND NOT awaits_second_step AND ends_at > clock_now() FOR SHARE) AS found
"""
HOLD_USERS = """
    SELECT found.* FROM unnest($1::int[]) AS wanted (id) CROSS JOIN LATERAL (
        SELECT id, customer_id, role FROM users WHERE id = wanted.id AND is_active FOR SHARE) AS found
"""
# On a cluster, FOR SHARE locks all rows of `users`, and two such statements can deadlock. There, advisory locks lock members, who are read
# after that. A transaction that changes or removes a member waits for both kinds of locks.
SHARE_USERS = compose(
    "SELECT pg_advisory_xact_lock_shared({members}, id) FROM unnest($1::int[]) AS held (id)", members=_MEMBERS
)
USERS = "SELECT id, customer_id, role FROM users WHERE id = ANY($1::int[]) AND is_active"
LOCK_USER = compose("SELECT pg_advisory_xact_lock({members}, $1)", members=_MEMBERS)
# Not the row of the customer. A member who acts holds their membership, and may wait for that row: with it, these changes would wait in a circle.
LOCK_CUSTOMER = compose("SELECT pg_advisory_xact_lock({customers}, $1)", customers=_CUSTOMERS)
LOCK_PERSON = "SELECT FROM people WHERE id = $1 FOR NO KEY UPDATE"

# Look-ups of callers: API keys and people.
FIND_KEYS = """
    SELECT k.hash, k.key_id, k.environment, k.customer_id, k.customer_name, k.plan, k.funding,
           k.service_account_id, k.service_account_name, k.active, NULL::int, NULL::text,
           k.scopes, k.networks, k.limits, v.version, (SELECT clock_now()), k.collections_version, k.follow_up
    FROM callers($1, $2) k CROSS JOIN catalogue_version v
"""
NOTE_KEYS_SEEN = "SELECT note_keys_seen($1, $2)"
FIND_USER = """
    SELECT c.id, c.name, c.plan, c.funding, u.id, u.role, v.version, clock_now(), coalesce(o.version, 0), c.follow_up
    FROM users u JOIN customers c ON c.id = u.customer_id CROSS JOIN catalogue_version v
    LEFT JOIN collection_versions o ON o.customer_id = c.id
    WHERE u.id = $1 AND u.customer_id = $2 AND u.is_active
"""
FIND_VIEWER = """
    SELECT v.version, clock_now(), coalesce(o.version, 0), c.follow_up
    FROM customers c CROSS JOIN catalogue_version v LEFT JOIN collection_versions o ON o.customer_id = c.id
    WHERE c.id = $1
"""


class StaleCaller(Exception):
    """A remembered caller may have changed. Nothing was written: look the caller up and try again."""


class KeyStatus(NamedTuple):
    """The facts that decide about the access of an existing key."""

    plan: str
    service_account_active: bool
    limits: str | None = None  # the limits of the service account, for `read_limits`
    scopes: Sequence[str] | None = None  # the scopes of the key; None: all
    networks: Sequence[str] | None = None  # the networks that may use it, as text; None: all
    funding: str = ""  # how the customer pays

    @classmethod
    def of(cls, principal: Principal) -> Self:
        """Returns the status of a key from its principal."""
        networks = None if principal.networks is None else [str(one) for one in principal.networks]
        active, limits, scopes = principal.service_account_active, principal.limits, principal.scopes
        return cls(principal.plan, active, limits, scopes, networks, principal.funding)


class HeldPerson(NamedTuple):
    """The person of a session, as read by the transaction that locked it."""

    user_id: int
    customer_id: int
    environment: str  # the environment that the session's pages show
    role: str


class PersonStatus(NamedTuple):
    """The facts that decide about the access of a person."""

    role: str
    account_ids: Collection[int] = ()  # funding accounts assigned to them, in addition to those open to all


def key_statuses(key_ids: Fragment) -> Fragment:
    """Returns SQL that locks keys and returns the status of each: `id` and the fields of a KeyStatus.

    `key_ids` is SQL for an array of integers. Only deleting or restricting a key waits for the locks. Uses a subquery for each key, not a join,
    so that the planner finds each one by its id.
    """
    return compose(
        """
        SELECT found.* FROM unnest({key_ids}) AS asked (id) CROSS JOIN LATERAL (
            SELECT k.id, c.plan, s.active, s.limits, k.scopes, k.networks::text[] AS networks, c.funding FROM api_keys k
            JOIN customers c ON c.id = k.customer_id JOIN service_accounts s ON s.id = k.service_account_id
            WHERE k.id = asked.id AND (k.deleted_at IS NULL) IS TRUE FOR KEY SHARE OF k) AS found
    """,
        key_ids=key_ids,
    )


_KEY_STATUS = key_statuses(Fragment("ARRAY[$1::int]"))


async def hold_key(connection: Connection, principal: Principal, *scopes: str, address: str | None = None) -> None:
    """Checks the principal's key again, and locks it until the transaction ends, so that it is not deleted or restricted meanwhile.

    Must be the first statement of every transaction that writes for an API key. Raises as `require_key_status` does.
    """
    row = await connection.fetchrow(_KEY_STATUS, principal.key_id)
    require_key_status(principal, None if row is None else KeyStatus(*row[1:]), *scopes, address=address)


def require_key_status(
    principal: Principal, standing: KeyStatus | None, *scopes: str, address: str | None = None
) -> None:
    """Raises an error if a key with that status may no longer do what it requested. `standing` is None for a deleted key.

    The request needs `scopes` and came from the network address. Raises Unauthorized, PlanRequired, Inactive, NetworkNotAllowed or
    ScopeRequired.
    """
    if standing is None:
        raise Unauthorized("The API key was deleted.")
    require_plan(standing.plan)
    require_active(standing.service_account_active, principal.service_account_name)
    if standing.scopes is None and standing.networks is None:
        return
    networks = None if standing.networks is None else [parse_network(one) for one in standing.networks]
    now = replace(principal, scopes=standing.scopes, networks=networks)
    require_network(now, address)
    for scope in scopes:
        require_scope(now, scope)


async def person_statuses(connection: Connection, session_ids: Collection[int]) -> dict[int, PersonStatus]:
    """Returns the status of people whose sessions are still open, by session. Locks them as `hold_people` does."""
    held = await hold_people(connection, session_ids)
    return await _with_accounts(
        connection, {key: (one.customer_id, one.user_id, one.role) for key, one in held.items()}
    )


async def member_statuses(connection: Connection, user_ids: Collection[int]) -> dict[int, PersonStatus]:
    """Returns the status of people who are still members, signed in or not, by `Principal.person_key`. Locks their memberships."""
    rows = await _hold_users(connection, user_ids)
    return await _with_accounts(connection, {-row["id"]: (row["customer_id"], row["id"], row["role"]) for row in rows})


async def _with_accounts(connection: Connection, people: Mapping[int, tuple[int, int, str]]) -> dict[int, PersonStatus]:
    """Returns the status of people, with the accounts that they may use. Each person is a customer, a user and a role."""
    accounts: dict[int, list[int]] = {}
    # Administrators use every account. A separate statement by customer, because accounts and people may be on different nodes.
    if some := [person for person in people.values() if person[2] != ADMIN]:
        rows = await connection.fetch(
            ACCOUNTS_OF_USERS, list({customer_id for customer_id, _, _ in some}), [user_id for _, user_id, _ in some]
        )
        for row in rows:
            accounts.setdefault(row["user_id"], []).append(row["account_id"])
    return {key: PersonStatus(role, accounts.get(user_id, ())) for key, (_, user_id, role) in people.items()}


async def hold_people(connection: Connection, session_ids: Collection[int]) -> dict[int, HeldPerson]:
    """Returns the people of sessions, by session. Leaves out sessions and memberships that have ended.

    Locks session and membership until the transaction ends: ending one of them, or changing a role, waits.
    """
    sessions = await coordinator_of(connection).fetch(HOLD_SESSIONS, sorted(session_ids))
    # A separate statement: on a cluster, sessions are on the coordinator, and users are on every node.
    users = await _hold_users(connection, {row["user_id"] for row in sessions if row["user_id"] is not None})
    members = {row["id"]: row for row in users}
    return {
        row["id"]: HeldPerson(member["id"], member["customer_id"], row["environment"], member["role"])
        for row in sessions
        if (member := members.get(row["user_id"])) is not None
    }


async def _hold_users(connection: Connection, user_ids: Collection[int]) -> list[Row]:
    """Returns id, customer and role of the users who are still members, and locks their memberships."""
    coordinator, ids = coordinator_of(connection), sorted(user_ids)
    if not is_distributed(connection):
        return await coordinator.fetch(HOLD_USERS, ids)
    await coordinator.execute(SHARE_USERS, ids)
    return await coordinator.fetch(USERS, ids)


def require_sender(principal: Principal, standing: PersonStatus | None) -> None:
    """Raises Unauthorized if a person with that status may no longer send. A status of None means that they are no longer signed in."""
    if standing is None or standing.role != principal.role or standing.role not in SENDERS:
        raise Unauthorized("This person may no longer send for this customer.")


def require_admission(principal: Principal, *, inactive_too: bool = False) -> None:
    """Raises PlanRequired or Inactive if a key that was just looked up may not call the API. With `inactive_too`, never raises Inactive."""
    require_plan(principal.plan)
    if not inactive_too:
        require_active(principal.service_account_active, principal.service_account_name)


def is_own(principal: Principal, service_account_id: int | None, user_id: int | None) -> bool:
    """Returns whether an order of a service account or a person belongs to the principal.

    All orders belong to administrators and members of staff.
    """
    if principal.role == ADMIN:
        return True
    if principal.user_id is not None:
        return user_id == principal.user_id
    return service_account_id == principal.service_account_id


def require_own(principal: Principal, service_account_id: int | None, user_id: int | None, reference: str) -> None:
    """Raises OtherServiceAccount unless the order, which a service account or a person placed, belongs to the principal."""
    if is_own(principal, service_account_id, user_id):
        return
    if principal.user_id is not None:
        raise OtherServiceAccount(f"Somebody else placed order {reference}: only they or an administrator may do this.")
    if service_account_id is None:
        raise OtherServiceAccount(
            f"A person placed order {reference} in the web application. Use the web application for it."
        )
    raise OtherServiceAccount(f"Another service account placed order {reference}: use a key of that service account.")


def require_plan(plan: str) -> None:
    """Raises PlanRequired if the customer's plan does not include the API."""
    if plan == "starter":
        raise PlanRequired("The API is available on the Pro plan and above; this customer is on Starter.")


def require_active(active: bool, name: str) -> None:
    """Raises Inactive if the service account is deactivated."""
    if not active:
        raise Inactive(f"The service account {name!r} is not active.")


class AccessChanged(Exception):
    """The person is no longer signed in, or their role, customer or environment has changed since the request began."""


@asynccontextmanager
async def writing(database: Database, person: Person, *, changes_access: bool = False) -> AsyncIterator[Connection]:
    """Begins a transaction that writes for a person. It first locks their session and their role. Raises AccessChanged.

    Set `changes_access` if it ends sessions or changes rights. Such transactions of one customer or person wait for each other before they
    lock anything else, so that they cannot deadlock.
    """
    async with database.transaction(person.scope) as connection:
        if changes_access:
            await coordinator_of(connection).execute(LOCK_CUSTOMER, person.customer_id)
            await connection.execute(LOCK_PERSON, person.person_id)
        held = await hold_people(connection, [person.session_id])
        expected = HeldPerson(person.user_id, *person.place, person.role)
        if held.get(person.session_id) != expected:
            raise AccessChanged
        yield connection
