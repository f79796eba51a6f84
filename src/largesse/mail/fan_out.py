"""Making messages: one for each recipient of an order whose mail is due."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from largesse.base.email import email_key, is_erased
from largesse.db.pool import Connection, Row, commit_as_one
from largesse.db.shard_groups import Customers, list_shard_groups
from largesse.db.sharding import arguments, within
from largesse.db.statements import plan_by_index
from largesse.events.order_changes import record_changes
from largesse.mail.messages import RANK_GAP_S, RANKED_TOGETHER

# Of the customers in $1, the ones with mail that is due.
CUSTOMERS_WAITING = """
    SELECT customer_id FROM mail_jobs
    WHERE fanned_out_at IS NULL AND due_at <= (SELECT clock_now()) AND customer_id = ANY($1::int[]) ORDER BY due_at LIMIT 500
"""
_MAX_CODES = 10_000  # of the orders fanned out in one transaction, unless one order alone has more


async def fan_out(connection: Connection, limit: int, customers: Customers = None) -> tuple[int, int]:
    """Makes the messages of up to `limit` mail jobs that are due, of those customers, else of all; returns how many of each.

    Call it inside a transaction. Several workers may do so at once: each takes other jobs.
    """
    jobs = messages = 0
    await commit_as_one(connection)
    await plan_by_index(connection)
    for shard_group in await list_shard_groups(connection, customers):
        taken, made = await _fan_out(connection, limit - jobs, shard_group)
        jobs, messages = jobs + taken, messages + made
    return jobs, messages


async def _fan_out(connection: Connection, limit: int, shard_group: Customers) -> tuple[int, int]:
    jobs = await connection.fetch(
        f"""
        SELECT customer_id, order_id, environment, due_at, (
            SELECT ARRAY[code_count, (scheduled_for IS NOT NULL)::int] FROM orders o
            WHERE o.customer_id = mail_jobs.customer_id AND o.id = mail_jobs.order_id
              {within("o.customer_id", "$2", shard_group)}) AS codes_and_scheduled
        FROM mail_jobs
        WHERE fanned_out_at IS NULL AND due_at <= (SELECT clock_now()) {within("customer_id", "$2", shard_group)}
        ORDER BY due_at LIMIT $1 FOR UPDATE OF mail_jobs SKIP LOCKED
        """,  # noqa: S608 - a placeholder
        limit,
        *arguments(shard_group),
    )
    taken = _within([job for job in jobs if job["codes_and_scheduled"] is not None], _MAX_CODES)
    if not taken:
        return 0, 0
    made = await _make_messages(connection, taken, shard_group)
    await connection.execute(
        f"""
        UPDATE mail_jobs SET fanned_out_at = (SELECT clock_now())
        FROM unnest($1::int[], $2::int[]) AS taken (customer_id, order_id)
        WHERE mail_jobs.customer_id = taken.customer_id AND mail_jobs.order_id = taken.order_id
          {within("mail_jobs.customer_id", "$3", shard_group)}
        """,  # noqa: S608 - a placeholder
        *_columns(taken),
        *arguments(shard_group),
    )
    await record_changes(
        connection, [(job["customer_id"], job["order_id"]) for job in taken if job["codes_and_scheduled"][1]]
    )
    return len(taken), made


def _columns(jobs: Sequence[Row]) -> tuple[list[int], list[int]]:
    """The customers and the orders of jobs."""
    return [job["customer_id"] for job in jobs], [job["order_id"] for job in jobs]


def _within(jobs: Sequence[Row], codes: int) -> list[Row]:
    """The first of `jobs` that together have at most `codes` codes; one at least."""
    taken: list[Row] = []
    for job in jobs:
        codes -= job["codes_and_scheduled"][0]
        if taken and codes < 0:
            break
        taken.append(job)
    return taken


async def _make_messages(connection: Connection, jobs: Sequence[Row], shard_group: Customers) -> int:
    # A cancellation locks the mail job too, so it is either seen here or sees the messages.
    lines = await connection.fetch(
        f"""
        SELECT customer_id, order_id, number, recipient_email, recipient_name
        FROM unnest($1::int[], $2::int[]) AS due (customer_id, order_id) JOIN lines USING (customer_id, order_id)
        WHERE recipient_email IS NOT NULL {within("lines.customer_id", "$3", shard_group)} AND NOT EXISTS (
            SELECT FROM line_states AS states
            WHERE states.customer_id = lines.customer_id AND states.order_id = lines.order_id
              AND states.number = lines.number AND states.state = 'cancelled' {within("states.customer_id", "$3", shard_group)})
        ORDER BY order_id, number
        """,  # noqa: S608 - a placeholder
        *_columns(jobs),
        *arguments(shard_group),
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
    job_of = {job["order_id"]: job for job in jobs}
    await connection.execute(
        """
        INSERT INTO messages (customer_id, order_id, environment, email, name, line_numbers, due_at, rank_at, created_at)
        SELECT customer_id, order_id, environment, email, name, line_numbers::int[], due_at,
               due_at + (row_number() OVER (PARTITION BY order_id ORDER BY place) / $8::int) * $9::float8 * interval '1 second', now
        FROM unnest($1::int[], $2::int[], $3::text[], $4::timestamptz[], $5::text[], $6::text[], $7::text[]) WITH ORDINALITY
                AS new (customer_id, order_id, environment, due_at, email, name, line_numbers, place),
            (SELECT clock_now()) AS clock (now)
        ORDER BY place
        ON CONFLICT DO NOTHING
        """,
        [line["customer_id"] for line in first.values()],
        [line["order_id"] for line in first.values()],
        [job_of[line["order_id"]]["environment"] for line in first.values()],
        [job_of[line["order_id"]]["due_at"] for line in first.values()],
        [line["recipient_email"] for line in first.values()],
        [line["recipient_name"] for line in first.values()],
        [f"{{{','.join(map(str, numbers[key]))}}}" for key in first],
        RANKED_TOGETHER,
        RANK_GAP_S,
    )
    return len(first)
