"""The audit log: records who did what, and reads it.

    acting = Acting(by_person(user.id, user.email, address, request_id), chains)
    async with database.transaction(scope) as connection:
        …                                                         # the act
        await acting.record(connection, "key.deleted", f"API key {key.id}", customer_id=key.customer_id)

`record` comes last in its transaction: it locks the end of the customer's log, and a later lock could cause a deadlock.

The log is read as a whole, oldest first, or for a customer, newest first, in pages by key.
"""

import getpass
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from largesse.audit import store
from largesse.audit.model import ACTS
from largesse.base.email import MAX_EMAIL
from largesse.db.pool import Connection, Row, commit_as_one
from largesse.encryption.chain import START, content
from largesse.encryption.chain_keys import Chains

INSTALLATION = 0  # in place of a customer's id, for acts that concern no customer

_MOST_SUBJECT = MAX_EMAIL  # characters; the subject may be an e-mail address
_MOST_JSON_BYTES = 128 * 1024  # more than the names of all funding accounts of a customer have
_SECRET_MEMBERS = frozenset({"secret", "hash", "password", "pin", "code", "codes", "token", "sealed"})
_encode = msgspec.json.Encoder(decimal_format="number").encode


class Who(msgspec.Struct, frozen=True):
    """Who acts. `name` is for people. `id` identifies a person, an API key or a member of staff."""

    kind: str  # person, key, staff, command or worker
    id: int | None
    name: str
    address: str | None = None
    request_id: str | None = None


def by_person(user_id: int, name: str, address: str | None, request_id: str | None) -> Who:
    """Returns a person, with their e-mail address as name."""
    return Who("person", user_id, name, address, request_id)


def by_key(key_id: int, name: str, address: str | None, request_id: str | None) -> Who:
    """Returns an API key, with its service account as name."""
    return Who("key", key_id, name, address, request_id)


def by_staff(staff_id: int, email: str, address: str | None, request_id: str | None) -> Who:
    """Returns a member of staff, with their e-mail address as name."""
    return Who("staff", staff_id, email, address, request_id)


def by_command(command: str) -> Who:
    """Returns an operator's command, and the user who ran it on this machine."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user without a name
        user = f"uid {os.getuid()}"
    return Who("command", None, f"{command} ({user})")


def by_worker(job: str) -> Who:
    """Returns a worker, for its automatic work."""
    return Who("worker", None, job)


class Acting(msgspec.Struct, frozen=True):
    """Who acts, with the chains of the audit log."""

    who: Who
    chains: Chains

    async def record(
        self,
        connection: Connection,
        act: str,
        subject: str,
        *,
        customer_id: int = INSTALLATION,
        environment: str | None = None,
        before: Mapping[str, Any] | None = None,
        after: Mapping[str, Any] | None = None,
    ) -> None:
        """Records what was done to `subject` and what changed, without secrets. Call it last in the transaction.

        Raises ValueError for mistakes of the code: an act that is not in ACTS, and values that are too long or look like a secret.
        """
        if act not in ACTS:
            raise ValueError(f"not an act of the audit log: {act}")
        if not 0 < len(subject) <= _MOST_SUBJECT:
            raise ValueError(f"a subject must have 1 to {_MOST_SUBJECT} characters, not {len(subject)}")
        columns = (environment, *msgspec.structs.astuple(self.who), act, subject, _json(before), _json(after))
        await commit_as_one(connection)
        row = await _lock_head(connection, customer_id)
        mac, head = self.chains.audit.add(row["head"], event_content(customer_id, row["at_us"], *columns))
        await connection.execute(store.ADD, customer_id, row["at"], *columns, mac, head)


def event_content(customer_id: int, at_us: int, *columns: Any) -> bytes:
    """Returns the content of an event's mark: all columns except the id, with its time in microseconds since 1970."""
    return content(customer_id, at_us, *columns)


async def _lock_head(connection: Connection, customer_id: int) -> Row:
    """Returns and locks the end of the customer's log, with the transaction's time."""
    row = await connection.fetchrow(store.LOCK_HEAD, customer_id)
    if row is None:  # the customer's first act
        await connection.execute(store.NEW_HEAD, customer_id, START)
        row = await connection.fetchrow(store.LOCK_HEAD, customer_id)
    assert row is not None, "heads are never deleted"
    return row


def _json(changed: Mapping[str, Any] | None) -> str | None:
    if changed is None:
        return None
    if secret := _SECRET_MEMBERS.intersection(changed):
        raise ValueError(f"the audit log must not contain secrets: {', '.join(sorted(secret))}")
    text = _encode(changed)
    if len(text) > _MOST_JSON_BYTES:
        raise ValueError(f"a change has {len(text)} bytes, and at most {_MOST_JSON_BYTES} are stored")
    return text.decode()


_AT_ONCE = 1_000
LOOKED_AT = 5_000
LOOKED_AT_OF_CUSTOMER = 100_000
_NEWEST = 2**63 - 1
Place = tuple[datetime, int]  # an event's time and id
_FIRST = datetime(1970, 1, 1, tzinfo=UTC)


class AuditEvent(msgspec.Struct, frozen=True):
    """An event for people. `customer` is the customer's key; None for the installation."""

    id: int
    at: datetime
    customer: str | None
    environment: str | None
    actor: str
    actor_id: int | None
    actor_name: str
    address: str | None
    request_id: str | None
    act: str
    subject: str
    before: str | None  # JSON
    after: str | None


class EventFilter(msgspec.Struct, frozen=True):
    """A filter of events. Empty fields match everything. Letter case is ignored."""

    customer_id: int
    acts: tuple[str, ...] = ()
    who: str = ""  # part of the actor's name
    words: str = ""  # part of the subject, or of what changed
    actors: tuple[str, ...] = ()  # names of actors that match `who` too
    subjects: tuple[str, ...] = ()  # subjects that match `words` too


async def newest_events(
    connection: Connection, wanted: EventFilter, *, before: int | None = None, limit: int = 50
) -> tuple[list[AuditEvent], int | None]:
    """Returns the newest events that pass a filter, older than the event `before`, and where the next page begins.

    Reads at most `LOOKED_AT_OF_CUSTOMER` events, so a page may be empty although later pages are not.
    """
    place = wanted.customer_id, _NEWEST if before is None else before, LOOKED_AT_OF_CUSTOMER
    values = wanted.acts, wanted.who, wanted.actors, wanted.words, wanted.subjects
    rows = await connection.fetch(store.NEWEST, *place, *values, limit + 1)
    events = [AuditEvent(**row) for row in rows[:limit]]
    if len(rows) > limit:
        return events, events[-1].id
    return events, await connection.fetchval(store.LAST, *place)


async def newest_of_all(
    connection: Connection, *, acts: Sequence[str], who: str, words: str, past: Place | None = None, limit: int = 50
) -> tuple[list[AuditEvent], Place | None]:
    """Returns the newest events of the installation and all customers, as `newest_events` does for one. Reads at most `LOOKED_AT` events."""
    place = past or (None, _NEWEST)
    rows = await connection.fetch(store.NEWEST_OF_ALL, *place, LOOKED_AT, list(acts), who, words, limit + 1)
    events = [AuditEvent(**row) for row in rows[:limit]]
    if len(rows) > limit:
        return events, (events[-1].at, events[-1].id)
    last = await connection.fetchrow(store.LAST_OF_ALL, *place, LOOKED_AT)
    return events, (last["at"], last["id"]) if last else None


async def list_events(
    connection: Connection, *, customer_id: int | None = None, since: datetime | None = None
) -> AsyncIterator[list[AuditEvent]]:
    """Yields the events from `since` on, of one customer or of all and the installation, some thousand at a time.

    `connection` must not be in a transaction, which would stay open between the pages.
    """
    at, after = since or _FIRST, 0
    query, own = (store.SINCE, ()) if customer_id is None else (store.SINCE_OF_CUSTOMER, (customer_id,))
    while True:
        # A transaction for each page, because the reader may be slow.
        async with connection.transaction():
            rows = await connection.fetch(query, at, after, _AT_ONCE, *own)
        if rows:
            yield [AuditEvent(**row) for row in rows]
        if len(rows) < _AT_ONCE:
            return
        at, after = rows[-1]["at"], rows[-1]["id"]
