"""Decides the outcome of a delivery from the receiver's answer, by the table in docs/contract.md, Webhooks.

Also writes the outcomes of attempts, many at once.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from uuid import UUID

import msgspec

from largesse.base import clock
from largesse.db.pool import Connection
from largesse.jobs.job_loop import Schedule
from largesse.jobs.leases import Lease
from largesse.webhooks import queues
from largesse.webhooks.queues import Job, SubscriptionQueue, leave_queues
from largesse.webhooks.store import end_subscription

MAX_ATTEMPTS = 12
# Roughly 4 seconds, 16 seconds, a minute, and so on up to 6 hours (docs/contract.md, Webhooks).
SCHEDULE = Schedule(first_s=4.0, factor=4.0, cap_s=6 * 3600.0)


class AttemptResult(msgspec.Struct, frozen=True):
    """The result of one attempt: a status with the start of the body, or an error instead of a status."""

    status: int | None
    error: str | None
    retry_after: str | None
    body: bytes
    duration_s: float


class Verdict(msgspec.Struct, frozen=True):
    """The outcome for a delivery. All outcomes but `retry` and `gone` are states of the table `deliveries`."""

    # Delivered, dropped, exhausted, retry (it stays pending for `delay_s`), or gone (the subscription ends).
    outcome: str
    delay_s: float = 0.0

    @property
    def failed(self) -> bool:
        """Whether the subscription goes to the failing lane."""
        return self.outcome in {"retry", "exhausted"}


def judge(result: AttemptResult, *, attempt: int, attempts_left: int, now: datetime) -> Verdict:
    """Returns the outcome of a delivery after an attempt. `attempt` is its number, from 1 again after a redelivery. `attempts_left` includes it."""
    status = result.status
    if status is not None and 200 <= status < 300:
        return Verdict("delivered")
    if status == 410:
        return Verdict("gone")
    if status is not None and 400 <= status < 500 and status != 429:
        return Verdict("dropped")
    if attempts_left <= 1:
        return Verdict("exhausted")
    retry_after_s = (
        read_retry_after(result.retry_after, now) if status is not None and (status == 429 or status >= 500) else 0.0
    )
    return Verdict("retry", SCHEDULE.delay_s(attempt, at_least_s=retry_after_s))


def read_retry_after(text: str | None, now: datetime) -> float:
    """Returns the seconds of a Retry-After header (RFC 9110, 10.2.3: seconds or a date). 0 if it is missing or malformed."""
    if text is None:
        return 0.0
    text = text.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, OverflowError):  # such as a year with 20 digits
        return 0.0
    return max((at.replace(tzinfo=at.tzinfo or UTC) - now).total_seconds(), 0.0)


class Attempted(msgspec.Struct, frozen=True):
    """An attempt and the outcome for its delivery."""

    queue: SubscriptionQueue
    job: Job
    ended: float  # time.monotonic
    result: AttemptResult
    verdict: Verdict


async def record(connection: Connection, attempted: Sequence[Attempted], leaving: Sequence[Lease] = ()) -> None:
    """Writes attempts whose lease is still valid, and the outcomes for their deliveries. Then gives `leaving` back.

    Locks all queues first, so that no worker takes one while its outcomes are written. Before that, locks the subscriptions that end.
    Fan-outs and deletions lock in the same order, which avoids deadlocks.
    """
    gone = [one.queue.lease for one in attempted if one.verdict.outcome == "gone"]
    if gone:
        await connection.execute(queues.LOCK_ENDING, *_columns(gone))
    held = await connection.fetch(queues.LOCK_QUEUES, *_columns([*(one.queue.lease for one in attempted), *leaving]))
    fences = {row["subscription_id"]: row["fence"] for row in held}
    ours = [one for one in attempted if fences.get(one.queue.lease.key) == one.queue.lease.fence]
    if ours:
        await _write_attempts(connection, ours)
        await _write_verdicts(connection, ours)
        await _mark_failing(connection, ours)
    for one in ours:
        if one.verdict.outcome == "gone":
            await end_subscription(connection, one.queue.customer_id, one.queue.lease.key)
    await leave_queues(connection, leaving)


def _columns(leases: Sequence[Lease]) -> tuple[list[int], list[UUID]]:
    """Returns the customers and subscriptions of leased queues, each subscription once."""
    customers = {lease.key: lease.customer_id for lease in leases}
    return list(customers.values()), list(customers)


async def _write_attempts(connection: Connection, attempted: Sequence[Attempted]) -> None:
    now = clock.passed_s()
    await connection.execute(
        queues.INSERT_ATTEMPTS,
        [one.queue.customer_id for one in attempted],
        [one.job.id for one in attempted],
        [one.job.attempts + 1 for one in attempted],
        [now - one.ended + one.result.duration_s for one in attempted],
        [round(one.result.duration_s * 1000) for one in attempted],
        [one.result.status for one in attempted],
        [one.result.error for one in attempted],
        [one.result.body for one in attempted],
    )


async def _write_verdicts(connection: Connection, attempted: Sequence[Attempted]) -> None:
    states = {"retry": "pending", "gone": "cancelled"}
    await connection.execute(
        queues.WRITE_VERDICTS,
        [one.queue.customer_id for one in attempted],
        [one.job.id for one in attempted],
        [states.get(one.verdict.outcome, one.verdict.outcome) for one in attempted],
        [one.verdict.delay_s for one in attempted],
        [one.job.attempts for one in attempted],
    )


async def _mark_failing(connection: Connection, attempted: Sequence[Attempted]) -> None:
    latest = {(one.queue.customer_id, one.queue.lease.key): one.verdict.failed for one in attempted}
    if all(one.verdict.failed == one.queue.failing for one in attempted):
        return
    await connection.execute(
        queues.MARK_FAILING,
        [customer_id for customer_id, _ in latest],
        [subscription_id for _, subscription_id in latest],
        list(latest.values()),
    )
