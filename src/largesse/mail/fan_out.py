"""Makes messages: one for each recipient of an order whose mail is due."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from largesse.base.email import email_key, is_erased
from largesse.db.pool import Connection, Row, commit_as_one
from largesse.db.shard_groups import Customers, list_shard_groups
from largesse.db.sharding import arguments
from largesse.db.statements import plan_by_index
from largesse.events.order_changes import record_changes
from largesse.mail import store
from largesse.mail.messages import RANK_GAP_S, RANKED_TOGETHER

_MAX_CODES = 10_000  # of all orders in one transaction, unless a single order has more


async def fan_out(connection: Connection, limit: int, customers: Customers = None) -> tuple[int, int]:
    """Makes the messages of up to `limit` due mail jobs, of some customers or of all. Returns the number of jobs and of messages.

    Call it inside a transaction. Several workers may run it at once: each takes other jobs.
    """
    jobs = messages = 0
    await commit_as_one(connection)
    await plan_by_index(connection)
    for shard_group in await list_shard_groups(connection, customers):
        taken, made = await _fan_out(connection, limit - jobs, shard_group)
        jobs, messages = jobs + taken, messages + made
    return jobs, messages


async def _fan_out(connection: Connection, limit: int, shard_group: Customers) -> tuple[int, int]:
    jobs = await connection.fetch(store.TAKE_JOBS.of(shard_group), limit, *arguments(shard_group))
    taken = _within([job for job in jobs if job["codes_and_scheduled"] is not None], _MAX_CODES)
    if not taken:
        return 0, 0
    made = await _make_messages(connection, taken, shard_group)
    await connection.execute(store.MARK_FANNED_OUT.of(shard_group), *_columns(taken), *arguments(shard_group))
    await record_changes(
        connection, [(job["customer_id"], job["order_id"]) for job in taken if job["codes_and_scheduled"][1]]
    )
    return len(taken), made


def _columns(jobs: Sequence[Row]) -> tuple[list[int], list[int]]:
    """Returns the customers and the orders of jobs."""
    return [job["customer_id"] for job in jobs], [job["order_id"] for job in jobs]


def _within(jobs: Sequence[Row], codes: int) -> list[Row]:
    """Returns the first of `jobs` that together have at most `codes` codes, but at least one job."""
    taken: list[Row] = []
    for job in jobs:
        codes -= job["codes_and_scheduled"][0]
        if taken and codes < 0:
            break
        taken.append(job)
    return taken


async def _make_messages(connection: Connection, jobs: Sequence[Row], shard_group: Customers) -> int:
    # A cancellation locks the mail job too, so either this sees the cancellation, or the cancellation sees the messages.
    lines = await connection.fetch(store.LINES_TO_MAIL.of(shard_group), *_columns(jobs), *arguments(shard_group))
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
        store.INSERT_MESSAGES,
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
