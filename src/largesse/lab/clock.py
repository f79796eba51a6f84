"""The test clock: brings all due times of a customer in staging forward, as if that much time had passed.

There is no second clock: the API returns and stores real times, and only due times move. See docs/decisions/0066-the-test-clock.md.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from largesse.base.errors import InvalidRequest, StateConflict
from largesse.customers.actor import Actor
from largesse.customers.roles import Right
from largesse.db.pool import commit_as_one
from largesse.db.statements import read_now
from largesse.jobs.notifier import News, notify
from largesse.jobs.registry import DueTimes, bring_forward, next_due
from largesse.orders.schedule import bring_schedules_forward
from largesse.webhooks.service import DeliveryThrottle

MOST_ADVANCE = timedelta(days=3_660)
_ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtextextended('test_clock', $1))"


class ClockReading(msgspec.Struct, frozen=True):
    """The time, and the first due time in staging, which is None if nothing waits."""

    now: datetime
    next_due_at: datetime | None


class ClockAdvance(msgspec.Struct, frozen=True):
    """An advance of the clock: by how much, how many due times it moved, and the clock after it."""

    by: timedelta
    moved: int
    clock: ClockReading


async def read_clock(actor: Actor, due_times: Sequence[DueTimes]) -> ClockReading:
    """Returns the time, and the customer's first due time in staging."""
    async with actor.transaction(Right.SEND) as transaction:
        connection = transaction.connection
        return ClockReading(await read_now(connection), await next_due(connection, due_times, actor.customer_id))


async def advance_clock(
    actor: Actor,
    throttle: DeliveryThrottle,
    due_times: Sequence[DueTimes],
    *,
    by: timedelta | None = None,
    to: datetime | None = None,
) -> ClockAdvance:
    """Brings all due times of the customer in staging forward: `by` a time, or so far that the instant `to` is now.

    Raises InvalidRequest unless one of the two is given and is at most ten years, StateConflict if the clock would go back or too many orders
    are scheduled, and TooManyRequests.
    """
    assert actor.environment == "staging", "production has no test clock"
    if (by is None) is (to is None):
        raise InvalidRequest("Give either `advance_seconds` or `to`.")
    throttle.count_advance(actor.customer_id)
    async with actor.transaction(Right.SEND) as transaction:
        connection = transaction.connection
        await commit_as_one(connection)
        await connection.execute(_ONE_AT_A_TIME, actor.customer_id)
        now = await read_now(connection)
        advance = _advance(now, by, to)
        await bring_schedules_forward(transaction, advance)
        moved = await bring_forward(connection, due_times, actor.customer_id, advance)
        await notify(connection, News.EVERYTHING)
        due_at = await next_due(connection, due_times, actor.customer_id)
        await transaction.record("clock.advanced", "test clock", after={"seconds": round(advance.total_seconds())})
    return ClockAdvance(advance, moved, ClockReading(now, due_at))


def _advance(now: datetime, by: timedelta | None, to: datetime | None) -> timedelta:
    if to is not None:
        by, name = to - now, "to"
    else:
        assert by is not None, "one of them is given"
        name = "advance_seconds"
    if by < timedelta():
        raise StateConflict(f"The clock only goes forward: `{name}` would set it back.")
    if by > MOST_ADVANCE:
        raise InvalidRequest(f"`{name}` must be at most {MOST_ADVANCE.days} days ahead.")
    return by
