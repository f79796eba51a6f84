"""Mail of production that no mail server can take yet: held where none is set, and let go where one is.

Sending again what was given up, or is held: for an operator who has put right what was wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from largesse.base.email import ERASED_DOMAIN
from largesse.db.pool import Connection, Database, Row
from largesse.db.scope import OPERATOR
from largesse.db.shard_groups import list_shard_groups
from largesse.db.sharding import arguments, within
from largesse.events.order_changes import record_changes
from largesse.jobs.notifier import notify
from largesse.mail.messages import RANK_GAP_S, RANKED_TOGETHER

REASON = "no mail server is set"

# Held mail goes out in bites, each when the last has left: new mail passes between.
_BITE = 1_000


async def release(connection: Connection) -> int:
    """Makes held messages due again, the oldest first, up to a bite waiting in all; returns how many.

    Any number of workers may do so at once: each takes others. Their three days begin anew.
    """
    status = await connection.execute(
        """
        WITH waiting AS (
            SELECT count(*) FROM (
                SELECT FROM messages WHERE state = 'pending' AND rank_at <= (SELECT clock_now()) LIMIT $1) AS due)
        UPDATE messages SET state = 'pending', reason = NULL, trying_since = (SELECT clock_now())
        WHERE (customer_id, id) IN (
            SELECT customer_id, id FROM messages WHERE state = 'held'
            ORDER BY rank_at LIMIT $1 - (SELECT count FROM waiting) FOR UPDATE SKIP LOCKED)
        """,
        _BITE,
    )
    return int(status.split()[-1])


_START = datetime(1970, 1, 1, tzinfo=UTC), 0

# What was asked for again since then was sent instead: only the last edition of an order's mail counts. A notification is of
# one line, whose number is its edition.
_CANDIDATES = f"""
    SELECT customer_id, id, order_id, line_numbers, coalesce(finished_at, due_at) AS given_up_at FROM messages
    WHERE state IN ('bounced', 'exhausted', 'held')
      AND coalesce(finished_at, due_at) >= $1 AND (coalesce(finished_at, due_at), id) > ($2, $3)
      AND ($4::text IS NULL OR position(lower($4) IN lower(reason)) > 0)
      AND email NOT LIKE '%@{ERASED_DOMAIN}'
      AND NOT (kind = 'gift' AND EXISTS (
        SELECT FROM messages AS later
        WHERE later.customer_id = messages.customer_id AND later.order_id = messages.order_id AND later.email = messages.email AND later.kind = 'gift'
          AND later.edition > messages.edition))
    ORDER BY coalesce(finished_at, due_at), id LIMIT $5
"""  # noqa: S608 - made of constants


@dataclass(frozen=True, slots=True)
class RequeueFilter:
    """Which mail to send again: what was given up or held since then, for a reason with these words in any case."""

    since: datetime
    reason: str | None = None


async def count_given_up(database: Database, wanted: RequeueFilter) -> int:
    """How many messages `requeue` would send again."""
    found = 0
    after = _START
    async with database.connection(OPERATOR) as connection:
        while rows := await connection.fetch(_CANDIDATES, wanted.since, *after, wanted.reason, _BITE):
            found += len(await _standing(connection, rows))
            after = rows[-1]["given_up_at"], rows[-1]["id"]
    return found


async def requeue(database: Database, wanted: RequeueFilter) -> int:
    """Makes messages due again, with three more days and without codes that were cancelled since; returns how many.

    The request is stored in `mail_requeues` with that number. It is done in bites; broken off, it may be repeated.
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
            await connection.execute("UPDATE mail_requeues SET messages = $2 WHERE id = $1", run_id, made)
            await notify(connection)


async def _make_due(connection: Connection, rows: Sequence[Row], *, rank: int) -> int:
    """Makes one bite of messages due, one after the other behind the `rank` before it, so that new mail passes between."""
    # A cancellation locks the mail job too: it is either seen here, or sees what is pending.
    for shard_group in await list_shard_groups(connection, None):
        await connection.execute(
            f"""
            SELECT FROM mail_jobs JOIN unnest($1::int[], $2::int[]) AS wanted (customer_id, order_id)
                USING (customer_id, order_id)
            WHERE true {within("mail_jobs.customer_id", "$3", shard_group)} ORDER BY order_id FOR UPDATE OF mail_jobs
            """,
            [row["customer_id"] for row in rows],
            [row["order_id"] for row in rows],
            *arguments(shard_group),
        )
    standing = await _standing(connection, rows)
    made = await connection.execute(
        """
        UPDATE messages SET
            state = 'pending', attempts = 0, fault = NULL, finished_at = NULL, trying_since = now, due_at = at,
            rank_at = at, line_numbers = standing::int[]
        FROM unnest($1::int[], $2::bigint[], $3::text[]) WITH ORDINALITY AS wanted (wanted_of, wanted_id, standing, place),
            (SELECT clock_now()) AS clock (now),
            LATERAL (SELECT now + ((place + $4) / $5::int) * $6::float8 * interval '1 second') AS turn (at)
        WHERE customer_id = wanted_of AND id = wanted_id AND state IN ('bounced', 'exhausted', 'held')
        """,
        [row["customer_id"] for row, _ in standing],
        [row["id"] for row, _ in standing],
        [f"{{{','.join(map(str, numbers))}}}" for _, numbers in standing],
        rank,
        RANKED_TOGETHER,
        RANK_GAP_S,
    )
    await record_changes(connection, {(row["customer_id"], row["order_id"]) for row, _ in standing})
    return int(made.split()[-1])


async def _standing(connection: Connection, rows: Sequence[Row]) -> list[tuple[Row, list[int]]]:
    """Those of the messages that have lines whose codes still stand, each with these. Orders may lie on nodes, where messages do not."""
    cancelled = await connection.fetch(
        """
        SELECT DISTINCT customer_id, order_id, number
        FROM unnest($1::int[], $2::int[]) AS wanted (customer_id, order_id) JOIN line_states USING (customer_id, order_id)
        WHERE state = 'cancelled'
        """,
        [row["customer_id"] for row in rows],
        [row["order_id"] for row in rows],
    )
    gone = {tuple(line) for line in cancelled}
    standing = [
        (row, [n for n in sorted(row["line_numbers"]) if (row["customer_id"], row["order_id"], n) not in gone])
        for row in rows
    ]
    return [(row, numbers) for row, numbers in standing if numbers]
