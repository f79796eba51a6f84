"""Sessions: browsers that signed in. Sessions are rows, so that they can be listed and ended. The cookie has only their secret."""

import hashlib
import re
import secrets
from datetime import datetime, timedelta

import msgspec

from largesse.base.text import cleaned
from largesse.customers.principal import Principal, person_principal
from largesse.customers.roles import RIGHTS, Reach, Right
from largesse.customers.second_step import asks_second_step
from largesse.customers.sign_in_store import PEOPLE, SignInSql
from largesse.customers.staff_roles import StaffMember
from largesse.db.pool import Connection, Database, open_credentials
from largesse.db.scope import LOOKUP, Place, Scope, for_customer, for_lists
from largesse.db.statements import members_of

_BEGIN = """
    INSERT INTO sessions (hash, person_id, user_id, environment, address, browser, ends_at, awaits_second_step, device)
    VALUES ($1, $2, $3, $4, $5, $6, clock_now() + $7, $8, $9)
"""
_IS_NEW_DEVICE = """
    SELECT EXISTS (SELECT FROM sessions WHERE person_id = $1 AND device IS NOT NULL)
       AND NOT EXISTS (SELECT FROM sessions WHERE person_id = $1 AND device = $2)
"""
_FIND = """
    SELECT s.id, s.person_id, s.environment, s.notice, s.seen_at < clock_now() - interval '1 minute' AS is_unseen,
           p.email, p.language, p.zone, u.user_id, u.name, u.role,
           u.customer_id, u.customer_name, u.plan, u.funding,
           s.awaits_second_step, s.proved_at > clock_now() - $3::interval AS is_proved,
           p.has_password, p.has_app, EXISTS (SELECT FROM passkeys k WHERE k.person_id = p.id) AS has_passkey, u.requires_second_step,
           (SELECT count(*) FROM memberships(p.id)) AS memberships
    FROM sessions s JOIN people p ON p.id = s.person_id
    LEFT JOIN LATERAL memberships(p.id) u ON u.user_id = s.user_id
    WHERE s.hash = $1 AND s.ended_at IS NULL AND s.ends_at > clock_now() AND s.seen_at > clock_now() - $2::interval
"""
_END_OF_USER = "UPDATE sessions SET ended_at = clock_now() WHERE user_id = $1 AND ended_at IS NULL"
_MEMBERSHIPS = """
    SELECT user_id, email, customer_id, customer_name, role FROM memberships($1)
    ORDER BY customer_name, user_id
"""
_CHOOSE_CUSTOMER = """
    UPDATE sessions SET user_id = $2 WHERE id = $1 AND ended_at IS NULL AND EXISTS (
        SELECT FROM memberships($3) WHERE user_id = $2)
    RETURNING true
"""
_CHOOSE_ENVIRONMENT = "UPDATE sessions SET environment = $2 WHERE id = $1"

LASTS = timedelta(days=14)
PROVED = timedelta(minutes=10)  # how long a person need not confirm again who they are
IDLE = timedelta(hours=12)  # a session ends after this time without a request
_LONGEST_BROWSER = 300  # characters of a browser's name that are stored

_SECRET = re.compile(r"[A-Za-z0-9_-]{43}")


def new_secret() -> str:
    """Returns a new secret of 256 random bits for a cookie or a link: 43 characters that URLs and cookies can contain."""
    return secrets.token_urlsafe(32)


def secret_hash(secret: str) -> bytes | None:
    """Returns the SHA-256 of the secret, which the database stores; None for a text that cannot be one."""
    return hashlib.sha256(secret.encode()).digest() if _SECRET.fullmatch(secret) else None


class Person(msgspec.Struct, frozen=True):
    """A person who signed in and chose a customer. It is read again for each request."""

    session_id: int
    person_id: int
    user_id: int
    email: str
    name: str
    role: str  # admin, member, finance or viewer
    customer_id: int
    customer_name: str
    plan: str  # starter, pro or enterprise
    funding: str  # balance or invoiced
    environment: str  # the environment that the pages show: production or staging
    is_proved: bool  # they recently confirmed who they are, at sign-in or later

    @property
    def place(self) -> Place:
        """The customer and the environment that the pages show."""
        return self.customer_id, self.environment

    @property
    def scope(self) -> Scope:
        """The scope of the person's transactions."""
        return for_customer(self.customer_id, self.environment)

    @property
    def list_scope(self) -> Scope:
        """The scope of the person's pages that list many rows."""
        return for_lists(self.customer_id, self.environment)

    @property
    def principal(self) -> Principal:
        """The person as a principal, for rules and reads."""
        of_customer = (self.customer_id, self.customer_name, self.plan, self.funding)
        return person_principal(self.environment, *of_customer, self.user_id, self.role, self.session_id)

    @property
    def is_of_staff(self) -> bool:
        """Whether this is a member of staff who sees the customer's pages and is not one of its people."""
        return self.user_id == 0

    def reach(self, right: Right) -> Reach | None:
        """Returns the reach of a right of the person; None if they do not have it."""
        return RIGHTS[right].get(self.role)

    def if_only_own(self, right: Right) -> int | None:
        """Returns the person's user id if the right covers only their own things; None for all other rights."""
        return self.user_id if self.reach(right) is Reach.OWN else None

    def may(self, right: Right) -> bool:
        """Returns whether the person has that right, with any reach."""
        return self.reach(right) is not None


class SignedIn(msgspec.Struct, frozen=True, kw_only=True):
    """A browser that is signed in, as a person of a customer or as a member of staff."""

    id: int
    person_id: int
    email: str
    language: str | None
    zone: str | None
    notice: str | None  # a message that the next page shows
    has_password: bool  # False is possible for a person who signed in by a link
    has_app: bool  # has an authenticator app
    has_passkey: bool
    awaits_second_step: bool  # the password was right; pages are shown only after the second step
    lacks_second_step: bool  # the person needs a second step and has none
    person: Person | StaffMember | None  # the reader of the pages; None before a customer is chosen

    @property
    def has_second_step(self) -> bool:
        """Whether the person has an authenticator app or a passkey."""
        return self.has_app or self.has_passkey

    @property
    def can_prove(self) -> bool:
        """Whether the person has a password or a second step with which to confirm who they are."""
        return self.has_password or self.has_second_step


class Session(SignedIn, frozen=True, kw_only=True):
    """The session of a person. `person` is None until they choose a customer, and if they no longer belong to the chosen one."""

    environment: str
    memberships: int  # number of customers to choose from
    requires_second_step: bool  # the customer requires a second step of all its people
    person: Person | None


class Membership(msgspec.Struct, frozen=True):
    """A customer that a person belongs to."""

    user_id: int
    email: str
    customer_id: int
    customer_name: str
    role: str


async def begin_session(
    connection: Connection,
    person_id: int,
    user_id: int | None,
    environment: str,
    *,
    address: str | None,
    browser: str,
    device: bytes | None = None,
) -> str:
    """Begins a session, and returns its secret this once. The secret is always new, so that an attacker cannot choose it."""
    await open_credentials(connection)
    secret = new_secret()
    awaits_second_step = await asks_second_step(connection, person_id)
    await connection.execute(
        _BEGIN,
        secret_hash(secret),
        person_id,
        user_id,
        environment,
        address,
        browser_name(browser),
        LASTS,
        awaits_second_step,
        device,
    )
    return secret


def browser_name(browser: str) -> str:
    """Returns the part of a browser's name that is stored."""
    return cleaned(browser, " ")[:_LONGEST_BROWSER]


async def knows_device(connection: Connection, person_id: int, device: bytes | None, sql: SignInSql = PEOPLE) -> bool:
    """Returns whether a person has signed in with that browser before, including the second step if they have one."""
    return bool(await connection.fetchval(sql.knows_device, person_id, device))


async def is_new_device(connection: Connection, person_id: int, device: bytes | None) -> bool:
    """Returns whether a person who has signed in before uses a new browser."""
    return bool(await connection.fetchval(_IS_NEW_DEVICE, person_id, device))


async def find_session(database: Database, secret: str) -> Session | None:
    """Returns the session of a cookie; None if it has ended or never existed."""
    hash_ = secret_hash(secret)
    if hash_ is None:
        return None
    row = await database.fetchrow(LOOKUP, _FIND, hash_, IDLE, PROVED)
    if row is None:
        return None
    if row["is_unseen"]:
        await note_seen(database, row["id"])
    requires_second_step = bool(row["requires_second_step"])
    return Session(
        **members_of(Session, row) | {"requires_second_step": requires_second_step},
        lacks_second_step=requires_second_step and not (row["has_app"] or row["has_passkey"]),
        person=None if row["user_id"] is None else Person(session_id=row["id"], **members_of(Person, row)),
    )


async def note_seen(database: Database, session_id: int, sql: SignInSql = PEOPLE) -> None:
    """Records that a session has just been used."""
    async with database.transaction(LOOKUP) as connection:
        await open_credentials(connection)
        await connection.execute(sql.note_seen, session_id)


async def find_session_id(database: Database, secret: str, sql: SignInSql = PEOPLE) -> int | None:
    """Returns the id of the session of a cookie, open or ended; None if there is none."""
    found: int | None = await database.fetchval(LOOKUP, sql.find_session_id, secret_hash(secret))
    return found


async def pass_second_step(connection: Connection, session_id: int, sql: SignInSql = PEOPLE) -> str | None:
    """Signs the session in and returns its new secret, which replaces the one in the cookie; None if the session has ended."""
    await open_credentials(connection)
    secret = new_secret()
    done = await connection.execute(sql.end_second_step, session_id, secret_hash(secret))
    return secret if done == "UPDATE 1" else None


async def note_proof(connection: Connection, session_id: int, sql: SignInSql = PEOPLE) -> None:
    """Records that the person has just confirmed who they are."""
    await open_credentials(connection)
    await connection.execute(sql.note_proof, session_id)


async def end_session(connection: Connection, session_id: int, sql: SignInSql = PEOPLE) -> None:
    """Ends a session at once."""
    await connection.execute(sql.end_session, session_id)


async def end_session_of(connection: Connection, person_id: int, session_id: int, sql: SignInSql = PEOPLE) -> None:
    """Ends a session if it is one of the person's."""
    await connection.execute(sql.end_session_of, person_id, session_id)


async def end_sessions(
    connection: Connection, person_id: int, *, but: int | None = None, sql: SignInSql = PEOPLE
) -> None:
    """Ends all sessions of a person except the one with the id `but`."""
    await connection.execute(sql.end_sessions, person_id, but)


async def forget_browsers(connection: Connection, person_id: int, sql: SignInSql = PEOPLE) -> None:
    """Ends all sessions of a person, and forgets their browsers."""
    await open_credentials(connection)
    await end_sessions(connection, person_id, sql=sql)
    await connection.execute(sql.forget_browsers, person_id)


async def end_sessions_of_user(connection: Connection, user_id: int) -> None:
    """Ends the sessions in which a person uses this membership. Their sessions with other customers stay open."""
    await connection.execute(_END_OF_USER, user_id)


async def list_memberships(connection: Connection, person_id: int) -> list[Membership]:
    """Returns the customers that a person belongs to, by name."""
    rows = await connection.fetch(_MEMBERSHIPS, person_id)
    return [Membership(**row) for row in rows]


async def choose_customer(connection: Connection, session: Session, user_id: int) -> bool:
    """Makes the session's pages show the customer of a membership. Returns False if the person lacks it, or the session has ended."""
    await open_credentials(connection)
    chosen = await connection.fetchval(_CHOOSE_CUSTOMER, session.id, user_id, session.person_id)
    return bool(chosen)


async def choose_environment(connection: Connection, session_id: int, environment: str) -> None:
    """Makes the session's pages show that environment."""
    await connection.execute(_CHOOSE_ENVIRONMENT, session_id, environment)


async def set_notice(connection: Connection, session_id: int, notice: str | None, sql: SignInSql = PEOPLE) -> None:
    """Stores the notice that the session's next page shows. None removes it."""
    await connection.execute(sql.set_notice, session_id, notice)


class OpenSession(msgspec.Struct, frozen=True):
    """A session as its person sees it."""

    id: int
    address: str | None
    browser: str
    created_at: datetime
    seen_at: datetime


async def list_sessions(
    connection: Connection, person_id: int, sql: SignInSql = PEOPLE, *, idle: timedelta = IDLE
) -> list[OpenSession]:
    """Returns the open sessions of a person, the most recent first."""
    rows = await connection.fetch(sql.list_sessions, person_id, idle)
    return [OpenSession(**row) for row in rows]
