"""Operations on the dates of an order: when it leaves, and its claim-by date. Also sets the customer's defaults for follow-ups."""

from datetime import datetime, timedelta

import msgspec

from largesse.base.errors import InvalidRequest, StateConflict
from largesse.customers import customer_store
from largesse.customers.actor import Actor, Transaction, require_same
from largesse.customers.roles import Right
from largesse.db.pool import Connection, commit_as_one
from largesse.db.statements import read_now
from largesse.events.store import record_changes
from largesse.jobs.outbox import lock_mail_job, reschedule_mail
from largesse.orders.claim_by_store import list_lapses, move_claim_by, read_claim_by, reschedule_reminders
from largesse.orders.follow_ups import (
    LEAST_TO_CLAIM,
    MAX_CLAIM_BY_DAYS,
    FollowUpDefaults,
    read_defaults,
    store_defaults,
)
from largesse.orders.history import NewAct, record_act
from largesse.orders.lookup import find_own_order
from largesse.orders.marks import changing_orders

MOST_BROUGHT_FORWARD = 1_000
# The scheduled orders of a customer in staging, at most $2.
_SCHEDULED = """
    SELECT o.id FROM mail_jobs AS j JOIN orders AS o ON o.customer_id = j.customer_id AND o.id = j.order_id
    WHERE j.customer_id = $1 AND j.environment = 'staging' AND j.fanned_out_at IS NULL AND j.due_at > (SELECT clock_now())
      AND o.scheduled_for IS NOT NULL ORDER BY o.id LIMIT $2
"""
_BRING_FORWARD = """
    UPDATE orders SET scheduled_for = greatest((scheduled_for AT TIME ZONE 'UTC' - $3::interval) AT TIME ZONE 'UTC', (SELECT clock_now()))
    WHERE customer_id = $1 AND id = ANY($2::int[]) AND scheduled_for > (SELECT clock_now())
"""
_LOCK = """
    SELECT j.due_at, o.scheduled_for IS NOT NULL AND j.fanned_out_at IS NULL AND j.due_at > now AS is_scheduled, now
    FROM mail_jobs AS j JOIN orders AS o ON o.customer_id = j.customer_id AND o.id = j.order_id,
         (SELECT clock_now()) AS clock (now)
    WHERE j.customer_id = $1 AND j.order_id = $2
"""
_SCHEDULE = "UPDATE orders SET scheduled_for = $3 WHERE customer_id = $1 AND id = $2"


class HasLeft(Exception):
    """The order is not scheduled any more: its mail has left, or it was cancelled."""


class ChangedMeanwhile(Exception):
    """Somebody else has changed the schedule since the caller saw it."""

    def __init__(self, due_at: datetime) -> None:
        super().__init__()
        self.due_at = due_at  # when the order leaves now


class TooEarly(Exception):
    """The new time is in the past."""


class AfterClaimBy(Exception):
    """The order would leave at its claim-by date or later."""


async def reschedule(actor: Actor, reference: str, *, seen: datetime, at: datetime | None) -> datetime:
    """Sets another time for a scheduled order, or now if `at` is None; returns that time.

    `seen` is the time that the caller saw. If it has changed since, the call is refused. Locks the mail job, as the worker does that makes the
    messages, so that each sees what the other did.

    Raises NotFound, OtherServiceAccount, HasLeft, ChangedMeanwhile, TooEarly for a time in the past, and AfterClaimBy.
    """
    async with actor.transaction(Right.SEND) as transaction:
        connection, principal = transaction.connection, actor.principal
        await commit_as_one(connection)
        order = await find_own_order(connection, principal, reference)
        key = (order["customer_id"], order["id"])
        async with changing_orders(connection, transaction.entries, key[0], [key[1]], waits=True):
            due_at = await _change(connection, key, seen, at)
        await record_changes(connection, [key])
        # For "now" the act has no time: on a cluster, its clock may differ from the clock of the node.
        act = NewAct(key[1], "schedule", due_at=None if at is None else due_at, was_due_at=seen)
        await record_act(connection, principal, actor.acting.who.address, act)
        before, after = ({"scheduled_for": one.isoformat(timespec="seconds")} for one in (seen, due_at))
        await transaction.record("order.rescheduled", f"order {reference}", before=before, after=after)
    return due_at


async def bring_schedules_forward(transaction: Transaction, by: timedelta) -> None:
    """Brings the times at which the customer's orders in staging leave forward, to now at the earliest. The caller moves their mail jobs.

    Raises StateConflict for more than 1,000 of them.
    """
    connection, customer_id = transaction.connection, transaction.actor.customer_id
    rows = await connection.fetch(_SCHEDULED, customer_id, MOST_BROUGHT_FORWARD + 1)
    if len(rows) > MOST_BROUGHT_FORWARD:
        raise StateConflict(
            f"At most {MOST_BROUGHT_FORWARD} scheduled orders can be brought forward; cancel some first."
        )
    async with changing_orders(
        connection, transaction.entries, customer_id, [row["id"] for row in rows], waits=True
    ) as held:
        await connection.execute(_BRING_FORWARD, customer_id, held, by)
    if held:
        await record_changes(connection, [(customer_id, order_id) for order_id in held])


async def _change(connection: Connection, order: tuple[int, int], seen: datetime, at: datetime | None) -> datetime:
    """Changes the order and its mail job."""
    await lock_mail_job(connection, order)
    row = await connection.fetchrow(_LOCK, *order)
    if row is None or not row["is_scheduled"]:
        raise HasLeft
    if row["due_at"] != seen:
        raise ChangedMeanwhile(row["due_at"])
    if at is not None and at <= row["now"]:
        raise TooEarly
    due_at: datetime = at or row["now"]
    claim_by = await read_claim_by(connection, order, lock=True)
    # An earlier time than before is never refused.
    if claim_by is not None and due_at > max(claim_by - LEAST_TO_CLAIM, row["due_at"]):
        raise AfterClaimBy
    await connection.execute(_SCHEDULE, *order, due_at)
    await reschedule_mail(connection, order, due_at)
    await reschedule_reminders(connection, order, due_at)
    return due_at


class HasPassed(Exception):
    """The claim-by date has passed, or the order has none."""


class NotLater(Exception):
    """The new date is not later than the one that recipients were given."""


class TooLate(Exception):
    """The new date is too far in the future for a claim-by date."""


async def move_date(actor: Actor, reference: str, *, seen: datetime, at: datetime) -> None:
    """Moves the claim-by date of an order to a later one.

    `seen` is the date that the caller saw. If it has changed since, the call is refused. The worker has the same lock while it carries out a
    date, so the date is either moved or has passed. Raises NotFound, OtherServiceAccount, HasPassed, ChangedMeanwhile, NotLater and TooLate.
    """
    async with actor.transaction(Right.SEND) as transaction:
        connection, principal = transaction.connection, actor.principal
        await commit_as_one(connection)
        order = await find_own_order(connection, principal, reference)
        key = (order["customer_id"], order["id"])
        claim_by = await read_claim_by(connection, key, lock=True)
        # This transaction may have begun before the date, and waited while the worker carried it out.
        if claim_by is None or claim_by <= await read_now(connection) or await list_lapses(connection, key):
            raise HasPassed
        if claim_by != seen:
            raise ChangedMeanwhile(claim_by)
        if at <= claim_by:
            raise NotLater
        if at - (order["scheduled_for"] or order["created_at"]) > timedelta(days=MAX_CLAIM_BY_DAYS):
            raise TooLate
        await move_claim_by(connection, key, at)
        act = NewAct(key[1], "extend", due_at=at, was_due_at=seen)
        await record_act(connection, principal, actor.acting.who.address, act)
        before, after = ({"claim_by": one.isoformat(timespec="seconds")} for one in (seen, at))
        await transaction.record("order.claim_by_moved", f"order {reference}", before=before, after=after)


class RemindersTooLate(
    InvalidRequest, rule="The last reminder would leave after the claim-by date. Choose fewer days, or a later date."
):
    """A reminder would not leave before the claim-by date."""


async def set_defaults(actor: Actor, defaults: FollowUpDefaults, seen: FollowUpDefaults | None = None) -> None:
    """Sets the customer's defaults for follow-ups, which apply to orders that it places from now on and that set none.

    Raises RemindersTooLate, and ReadAgain if the defaults are not those `seen` any more.
    """
    days, reminders = defaults.claim_by_days, defaults.reminder_days
    if days is not None and reminders and reminders[-1] >= days:
        raise RemindersTooLate
    async with actor.transaction(Right.SETTINGS) as transaction:
        connection = transaction.connection
        await customer_store.lock_customer(connection, actor.customer_id)
        old = read_defaults(await customer_store.find_follow_up(connection, actor.customer_id))
        require_same(seen, old)
        if old == defaults:
            return
        await customer_store.set_follow_up(connection, actor.customer_id, store_defaults(defaults))
        before, after = (msgspec.to_builtins(one) for one in (old, defaults))
        await transaction.record("sends.followed_up", f"customer {actor.customer_id}", before=before, after=after)
