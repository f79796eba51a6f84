"""Reading the audit log: all of it, oldest first, or a customer's, newest first; in pages that follow each other by key."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime

from largesse.database.pool import Connection

_AT_ONCE = 1_000
_FIRST = datetime(1970, 1, 1, tzinfo=UTC)
_COLUMNS = """
    e.id, e.at, c.key AS customer, e.environment, e.actor, e.actor_id, e.actor_name, e.address, e.request_id, e.act, e.subject,
    e.before::text, e.after::text
"""


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """One event as people read it; `customer` is its key, None for the installation's own."""

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


async def newest_events(
    connection: Connection,
    customer_id: int,
    *,
    act: str = "",
    who: str = "",
    before: int | None = None,
    limit: int = 50,
) -> list[AuditEvent]:
    """The newest events of a customer: of one act, by whom that text is part of the name of, older than the event `before`."""
    rows = await connection.fetch(
        f"""
        SELECT {_COLUMNS}
        FROM audit_events e LEFT JOIN customers c ON c.id = e.customer_id
        WHERE e.customer_id = $1 AND ($2::bigint IS NULL OR e.id < $2) AND ($3 = '' OR e.act = $3)
          AND ($4 = '' OR strpos(lower(e.actor_name), lower($4)) > 0)
        ORDER BY e.id DESC LIMIT $5
        """,  # noqa: S608 - constants
        customer_id,
        before,
        act,
        who,
        limit,
    )
    return [AuditEvent(**row) for row in rows]


async def list_events(
    connection: Connection, *, customer_id: int | None = None, since: datetime | None = None
) -> AsyncIterator[list[AuditEvent]]:
    """The events from `since` on, of one customer or of all and the installation, some thousand at a time.

    `connection` must not be in a transaction, which would stay open between the pages.
    """
    at, after = since or _FIRST, 0
    own = "" if customer_id is None else "AND e.customer_id = $4"
    query = f"""
        SELECT {_COLUMNS}
        FROM audit_events e LEFT JOIN customers c ON c.id = e.customer_id
        WHERE (e.at, e.id) > ($1, $2) {own}
        ORDER BY e.at, e.id LIMIT $3
    """  # noqa: S608 - constants
    while True:
        # Each page by itself: whoever takes them may be slow.
        async with connection.transaction():
            rows = await connection.fetch(
                query, at, after, _AT_ONCE, *(() if customer_id is None else (customer_id,))
            )
        if rows:
            yield [AuditEvent(**row) for row in rows]
        if len(rows) < _AT_ONCE:
            return
        at, after = rows[-1]["at"], rows[-1]["id"]
