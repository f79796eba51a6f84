"""Claim-by dates: moving the date of an order, and what a customer sets for orders that say nothing."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from largesse.customers import customer_store
from largesse.customers.actor import Actor
from largesse.customers.roles import Right
from largesse.db.pool import commit_as_one
from largesse.db.statements import read_now
from largesse.orders.claim_by_store import move_claim_by, read_claim_by
from largesse.orders.follow_ups import MAX_CLAIM_BY_DAYS, FollowUpDefaults, read_defaults, store_defaults
from largesse.orders.history import NewAct, record_act
from largesse.orders.lookup import find_own_order
from largesse.orders.schedule import ChangedMeanwhile


class HasPassed(Exception):
    """The claim-by date has passed, or the order has none."""


class NotLater(Exception):
    """The new date is not later than the one that recipients were given."""


class TooLate(Exception):
    """The new date is further away than a claim-by date may be."""


async def move_date(actor: Actor, reference: str, *, seen: datetime, at: datetime) -> None:
    """Moves the claim-by date of an order to a later one.

    `seen` is the date that the caller saw: of two changes at once, the second is refused. The worker holds the same lock while it carries the
    date out, so a date is either moved or has passed. Raises NotFound, OtherServiceAccount, HasPassed, ChangedMeanwhile, NotLater and TooLate.
    """
    async with actor.transaction(Right.SEND) as transaction:
        connection, principal = transaction.connection, actor.principal
        await commit_as_one(connection)
        order = await find_own_order(connection, principal, reference)
        key = (order["customer_id"], order["id"])
        claim_by = await read_claim_by(connection, key, lock=True)
        if claim_by is None or claim_by <= await read_now(connection):
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


async def set_defaults(actor: Actor, defaults: FollowUpDefaults) -> None:
    """Sets what happens to gifts that nobody claims, in orders that the actor's customer places from now on and that say nothing."""
    async with actor.transaction(Right.SETTINGS) as transaction:
        connection = transaction.connection
        await customer_store.lock_customer(connection, actor.customer_id)
        old = read_defaults(await customer_store.find_follow_up(connection, actor.customer_id))
        if old == defaults:
            return
        await customer_store.set_follow_up(connection, actor.customer_id, store_defaults(defaults))
        before, after = (msgspec.to_builtins(one) for one in (old, defaults))
        await transaction.record("sends.followed_up", f"customer {actor.customer_id}", before=before, after=after)
