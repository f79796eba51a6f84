"""Sending again what was given up, or is held: for an operator who has put right what was wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from largesse.base.email import ERASED_DOMAIN
from largesse.database import OPERATOR, Connection, Database, Row
from largesse.delivery.mail.messages import RANK_GAP_S, RANKED_TOGETHER
from largesse.delivery.queue import notify
from largesse.events import record_changes

_BITE = 1_000
_START = datetime(1970, 1, 1, tzinfo=UTC), 0

# The lines of a message whose codes still stand.
_STANDING = """
    ARRAY(SELECT line FROM unnest(line_numbers) AS line WHERE NOT EXISTS (
        SELECT FROM line_states AS states
        WHERE states.customer_id = messages.customer_id AND states.order_id = messages.order_id
          AND states.number = line AND states.state = 'cancelled')
    ORDER BY line)
"""

# What was asked for again since then was sent instead: only the last edition of an order's mail counts. A notification is of
# one line, whose number is its edition.
_CANDIDATES = f"""
    SELECT customer_id, id, order_id, coalesce(finished_at, due_at) AS given_up_at FROM messages
    WHERE state IN ('bounced', 'exhausted', 'held')
      AND coalesce(finished_at, due_at) >= $1 AND (coalesce(finished_at, due_at), id) > ($2, $3)
      AND ($4::text IS NULL OR position(lower($4) IN lower(reason)) > 0)
      AND {_STANDING} <> '{{}}' AND email NOT LIKE '%@{ERASED_DOMAIN}'
      AND NOT (kind = 'gift' AND EXISTS (
        SELECT FROM messages AS later
        WHERE later.customer_id = messages.customer_id AND later.order_id = messages.order_id AND later.email = messages.email AND later.kind = 'gift'
          AND later.edition > messages.edition))
    ORDER BY coalesce(finished_at, due_at), id LIMIT $5
"""  # noqa: S608 - made of constants


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which mail to send again: what was given up or held since then, for a reason with these words in any case."""

    since: datetime
    reason: str | None = None


async def count_given_up(database: Database, wanted: Wanted) -> int:
    """How many messages `requeue` would send again."""
    found = 0
    after = _START
    async with database.connection(OPERATOR) as connection:
        while rows := await connection.fetch(_CANDIDATES, wanted.since, *after, wanted.reason, _BITE):
            found += len(rows)
            after = rows[-1]["given_up_at"], rows[-1]["id"]
    return found


async def requeue(database: Database, wanted: Wanted) -> int:
    """Makes messages due again, with three more days and without codes that were cancelled since; returns how many.

    What was asked for is kept in `mail_requeues` with that number. It is done in bites; broken off, it may be repeated.
    """
    made = 0
    after = _START
    run_id = await database.fetchval(
        OPERATOR,
        """
        INSERT INTO mail_requeues (at, since, reason, messages) SELECT clock_now(), $1, $2, 0 RETURNING id
        """,
        wanted.since,
        wanted.reason,
    )
    while True:
        async with database.transaction(OPERATOR) as connection:
            rows = await connection.fetch(_CANDIDATES, wanted.since, *after, wanted.reason, _BITE)
            if not rows:
                return made
            after = rows[-1]["given_up_at"], rows[-1]["id"]
            made += await _make_due(connection, rows, rank=made)
            await record_changes(connection, {(row["customer_id"], row["order_id"]) for row in rows})
            await connection.execute("UPDATE mail_requeues SET messages = $2 WHERE id = $1", run_id, made)
            await notify(connection)


async def _make_due(connection: Connection, rows: Sequence[Row], *, rank: int) -> int:
    """Makes one bite of messages due, one after the other behind the `rank` before it, so that new mail passes between."""
    # A cancellation locks the mail job too: it is either seen here, or sees what is pending.
    await connection.execute(
        """
        SELECT FROM mail_jobs JOIN unnest($1::int[], $2::int[]) AS wanted (customer_id, order_id)
            USING (customer_id, order_id)
        ORDER BY order_id FOR UPDATE OF mail_jobs
        """,
        [row["customer_id"] for row in rows],
        [row["order_id"] for row in rows],
    )
    made = await connection.execute(
        f"""
        UPDATE messages SET
            state = 'pending', attempts = 0, fault = NULL, finished_at = NULL, trying_since = now, due_at = at,
            rank_at = at, line_numbers = {_STANDING}
        FROM unnest($1::int[], $2::bigint[]) WITH ORDINALITY AS wanted (wanted_of, wanted_id, place),
            (SELECT clock_now()) AS clock (now),
            LATERAL (SELECT now + ((place + $3) / $4::int) * $5::float8 * interval '1 second') AS turn (at)
        WHERE customer_id = wanted_of AND id = wanted_id AND state IN ('bounced', 'exhausted', 'held') AND {_STANDING} <> '{{}}'
        """,  # noqa: S608 - made of constants
        [row["customer_id"] for row in rows],
        [row["id"] for row in rows],
        rank,
        RANKED_TOGETHER,
        RANK_GAP_S,
    )
    return int(made.split()[-1])
