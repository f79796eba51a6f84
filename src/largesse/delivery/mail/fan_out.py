"""Making messages: one for each recipient of an order whose mail is due."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from largesse.base.email import email_key, is_erased
from largesse.database import Connection, Row
from largesse.delivery.mail.messages import RANK_GAP_S, RANKED_TOGETHER
from largesse.delivery.queue import plan_by_index
from largesse.events import record_changes

_MAX_CODES = 10_000  # of the orders fanned out in one transaction, unless one order alone has more


async def fan_out(connection: Connection, limit: int) -> tuple[int, int]:
    """Makes the messages of up to `limit` mail jobs that are due; returns how many of each.

    Call it inside a transaction. Several workers may do so at once: each takes other jobs.
    """
    await plan_by_index(connection)
    jobs = await connection.fetch(
        """
        WITH due AS MATERIALIZED (
            SELECT customer_id, order_id, due_at FROM mail_jobs
            WHERE fanned_out_at IS NULL AND due_at <= (SELECT clock_now())
            ORDER BY due_at LIMIT $1 FOR UPDATE SKIP LOCKED)
        SELECT customer_id, order_id, due_at, code_count, scheduled_for IS NOT NULL AS is_scheduled
        FROM due, LATERAL (
            SELECT code_count, scheduled_for FROM orders o WHERE o.customer_id = due.customer_id AND o.id = due.order_id
            LIMIT 1  -- each by its key, whatever the planner thinks of the tables' sizes
        ) AS ordered
        ORDER BY due_at
        """,
        limit,
    )
    if not jobs:
        return 0, 0
    taken = _within(jobs, _MAX_CODES)
    made = await _make_messages(connection, taken)
    await connection.execute(
        """
        UPDATE mail_jobs SET fanned_out_at = (SELECT clock_now())
        FROM unnest($1::int[], $2::int[]) AS taken (customer_id, order_id)
        WHERE mail_jobs.customer_id = taken.customer_id AND mail_jobs.order_id = taken.order_id
        """,
        *_columns(taken),
    )
    await record_changes(
        connection, [(job["customer_id"], job["order_id"]) for job in taken if job["is_scheduled"]]
    )
    return len(taken), made


def _columns(jobs: Sequence[Row]) -> tuple[list[int], list[int]]:
    """The customers and the orders of jobs."""
    return [job["customer_id"] for job in jobs], [job["order_id"] for job in jobs]


def _within(jobs: Sequence[Row], codes: int) -> list[Row]:
    """The first of `jobs` that together have at most `codes` codes; one at least."""
    taken: list[Row] = []
    for job in jobs:
        codes -= job["code_count"]
        if taken and codes < 0:
            break
        taken.append(job)
    return taken


async def _make_messages(connection: Connection, jobs: Sequence[Row]) -> int:
    # A cancellation locks the mail job too, so it is either seen here or sees the messages.
    lines = await connection.fetch(
        """
        SELECT customer_id, order_id, number, recipient_email, recipient_name
        FROM unnest($1::int[], $2::int[]) AS due (customer_id, order_id) JOIN lines USING (customer_id, order_id)
        WHERE recipient_email IS NOT NULL AND NOT EXISTS (
            SELECT FROM line_states AS states
            WHERE states.customer_id = lines.customer_id AND states.order_id = lines.order_id
              AND states.number = lines.number AND states.state = 'cancelled')
        ORDER BY order_id, number
        """,
        *_columns(jobs),
    )
    # One message for each distinct address, letter case ignored, as the order's recipientCount counts them.
    numbers: dict[tuple[int, str], list[int]] = defaultdict(list)
    first: dict[tuple[int, str], Row] = {}
    for line in lines:
        if is_erased(line["recipient_email"]):
            continue
        key = (line["order_id"], email_key(line["recipient_email"]))
        numbers[key].append(line["number"])
        first.setdefault(key, line)
    await connection.execute(
        """
        INSERT INTO messages (customer_id, order_id, environment, email, name, line_numbers, due_at, rank_at, created_at)
        SELECT customer_id, order_id, environment, email, name, line_numbers::int[], due_at,
               due_at + (row_number() OVER (PARTITION BY order_id ORDER BY place) / $6::int) * $7::float8 * interval '1 second', now
        FROM unnest($1::int[], $2::int[], $3::text[], $4::text[], $5::text[]) WITH ORDINALITY
                AS new (customer_id, order_id, email, name, line_numbers, place)
        JOIN mail_jobs USING (customer_id, order_id), (SELECT clock_now()) AS clock (now)
        ORDER BY place
        ON CONFLICT DO NOTHING
        """,
        [line["customer_id"] for line in first.values()],
        [line["order_id"] for line in first.values()],
        [line["recipient_email"] for line in first.values()],
        [line["recipient_name"] for line in first.values()],
        [f"{{{','.join(map(str, numbers[key]))}}}" for key in first],
        RANKED_TOGETHER,
        RANK_GAP_S,
    )
    return len(first)
