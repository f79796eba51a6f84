"""SQL of subscriptions and their deliveries, for people and API callers. Workers take deliveries by `queue_store`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID, uuid4

import msgspec

from largesse.base.errors import InvalidRequest, NotFound
from largesse.customers.principal import Principal
from largesse.db.fragments import Fragment, compose
from largesse.db.pool import Connection, Row
from largesse.db.statements import read_now
from largesse.encryption.vault import Vault
from largesse.events.kinds import EVENTS, Sampled
from largesse.jobs.notifier import notify
from largesse.webhooks.model import Selection, select_events
from largesse.webhooks.queues import wake_queue
from largesse.webhooks.signing import new_secret
from largesse.webhooks.targets import Target

MAX_SUBSCRIPTIONS = 100  # of a customer, in both environments together
MOST_REDELIVERED = 1_000  # at a time
_KEPT_AS_TEXT = "utf-8"

_INSERT = """
    INSERT INTO webhook_subscriptions
        (id, customer_id, environment, event, events, target_url, sealed_secret, service_account_id, user_id)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
"""
_OWN = "SELECT event, events FROM webhook_subscriptions WHERE id = $1 AND customer_id = $2 AND environment = $3"
_HOLD_OWN = _OWN + " FOR KEY SHARE"
_LOCK_OWN = _OWN + " FOR UPDATE"
_LOCK_CUSTOMER = "SELECT FROM customers WHERE id = $1 FOR NO KEY UPDATE"
_COUNT = "SELECT count(*) FROM webhook_subscriptions WHERE customer_id = $1"
_DELETE = "DELETE FROM webhook_subscriptions WHERE customer_id = $1 AND id = $2"
_CANCEL_PENDING = """
    UPDATE deliveries SET state = 'cancelled', finished_at = clock_now()
    WHERE customer_id = $1 AND subscription_id = $2 AND state = 'pending'
"""
_SUBSCRIPTIONS = """
    SELECT id, event, events, target_url, created_at FROM webhook_subscriptions
    WHERE customer_id = $1 AND environment = $2
    ORDER BY created_at DESC, id
"""
_SUBSCRIPTIONS_WITH_STATE = """
    SELECT s.id, event, events, target_url, s.created_at, CASE WHEN previous_until > clock_now() THEN previous_until END AS rotates_until, coalesce(failing, false) AS is_failing, state AS last_state,
           newest.created_at AS last_at
    FROM webhook_subscriptions s
    LEFT JOIN subscription_queues q ON q.customer_id = s.customer_id AND q.subscription_id = s.id
    LEFT JOIN LATERAL (
        SELECT state, created_at FROM deliveries d
        WHERE d.customer_id = s.customer_id AND d.subscription_id = s.id ORDER BY d.id DESC LIMIT 1
    ) AS newest ON true
    WHERE s.customer_id = $1 AND s.environment = $2
    ORDER BY s.created_at DESC, s.id
"""
_COLUMNS = Fragment("""
    deliveries.id, deliveries.event, event_id, state, attempts, attempts_left, due_at, deliveries.created_at, finished_at
""")
_DELIVERIES = compose(
    """
    SELECT {columns} FROM deliveries
    WHERE deliveries.customer_id = $1 AND subscription_id = $2 AND ($3::bigint IS NULL OR deliveries.id < $3)
    ORDER BY deliveries.id DESC LIMIT $4
    """,
    columns=_COLUMNS,
)
_DELIVERY = compose(
    "SELECT {columns} FROM deliveries WHERE deliveries.customer_id = $1 AND deliveries.id = $2", columns=_COLUMNS
)
# Finds rows by time, which is quick: an event has the time of its order, and its deliveries have the time of its fan-out.
_EVENT_OF_ORDER = "SELECT id, fanned_out_at FROM events WHERE customer_id = $1 AND created_at = $2 AND order_id = $3"
_DELIVERIES_OF_EVENT = compose(
    """
    SELECT {columns}, coalesce(s.target_url, '') AS target_url
    FROM deliveries LEFT JOIN webhook_subscriptions AS s ON s.customer_id = $1 AND s.id = subscription_id
    WHERE deliveries.customer_id = $1 AND deliveries.created_at = $2 AND event_id = $3 ORDER BY deliveries.id
    """,
    columns=_COLUMNS,
)
_ATTEMPTS = """
    SELECT delivery_id, number, started_at, duration_ms, status, error, answer FROM delivery_attempts
    WHERE customer_id = $1 AND delivery_id = ANY($2::bigint[]) ORDER BY delivery_id, number
"""
_ORDERS_OF_EVENTS = "SELECT id, order_id FROM events WHERE customer_id = $1 AND id = ANY($2::bigint[])"
_REFERENCES = "SELECT id, reference FROM orders WHERE customer_id = $1 AND id = ANY($2::int[])"
_REDELIVER = """
    UPDATE deliveries SET
        state = 'pending', due_at = (SELECT clock_now()), finished_at = NULL,
        attempts_left = CASE WHEN state = 'pending' THEN attempts_left ELSE 12 END
    WHERE customer_id = $1 AND id = $2 AND subscription_id = $3 RETURNING id
"""
_REDELIVER_FAILED = """
    UPDATE deliveries SET
        state = 'pending', due_at = (SELECT clock_now()), finished_at = NULL,
        attempts_left = CASE WHEN state = 'pending' THEN attempts_left ELSE 12 END
    WHERE customer_id = $1 AND id IN (
        SELECT id FROM deliveries
        WHERE customer_id = $1 AND subscription_id = $2
            AND (state IN ('dropped', 'exhausted') OR state = 'pending' AND attempts > 0 AND due_at > (SELECT clock_now()))
        ORDER BY id DESC LIMIT $3)
    RETURNING id
"""
_INSERT_SAMPLE = """
    INSERT INTO deliveries (customer_id, subscription_id, event, sample, due_at, created_at)
    VALUES ($1, $2, $3, $4, $5, $5) RETURNING id
"""


@dataclass(frozen=True, slots=True)
class Subscription:
    """A subscription as its customer sees it."""

    id: UUID
    event: str | None
    events: Sequence[str] | None
    target_url: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class CreatedSubscription:
    """A new subscription with its signing secret, which is shown only once."""

    id: UUID
    event: str | None
    events: Sequence[str] | None
    target_url: str
    secret: str = field(repr=False)


class AttemptRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt of a delivery."""

    number: int
    started_at: datetime
    duration_ms: int
    status: int | None  # the receiver's
    error: str | None  # why there was no status
    answer: str | None  # the start of the receiver's answer


class DeliveryRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The delivery of an event to a subscription."""

    id: int
    event: str
    is_sample: bool
    order_id: int | None  # None for a sample, and for an event without an order
    state: str
    attempts: list[AttemptRecord]
    attempts_left: int
    next_attempt_at: datetime | None
    created_at: datetime
    finished_at: datetime | None


class SubscriptionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription with the state of its deliveries."""

    id: UUID
    event: str | None
    events: list[str] | None
    target_url: str
    created_at: datetime
    rotates_until: datetime | None  # until when deliveries are signed with the previous secret too
    is_failing: bool  # the last attempt failed
    last_state: str | None  # of its newest delivery; None without deliveries
    last_at: datetime | None

    @property
    def names(self) -> Sequence[str]:
        """Returns the names of all events that it receives."""
        return Selection(self.event, self.events).names


async def insert_subscription(
    connection: Connection, principal: Principal, vault: Vault, target: Target, events: str | Sequence[str]
) -> CreatedSubscription:
    """Subscribes a checked target to one or several events. Raises InvalidRequest as `select_events`, and if there are too many subscriptions."""
    selection = select_events(events)
    subscription_id, secret, customer_id = uuid4(), new_secret(), principal.customer_id
    async with connection.transaction():
        # The customer's other calls wait here. A statement after the lock sees what they committed.
        await connection.execute(_LOCK_CUSTOMER, customer_id)
        if await connection.fetchval(_COUNT, customer_id) >= MAX_SUBSCRIPTIONS:
            raise InvalidRequest(
                f"A customer holds at most {MAX_SUBSCRIPTIONS} webhook subscriptions: delete one first."
            )
        await connection.execute(
            _INSERT,
            subscription_id,
            customer_id,
            principal.environment,
            *selection,
            target.url,
            vault.webhooks.seal(secret.encode(), secret_context(subscription_id)),
            principal.service_account_id,
            principal.user_id,
        )
    return CreatedSubscription(subscription_id, *selection, target.url, secret)


async def delete_subscription(connection: Connection, principal: Principal, subscription_id: UUID) -> None:
    """Ends a subscription and cancels its pending deliveries.

    Raises NotFound if the principal's customer has no such subscription in its environment.
    """
    async with connection.transaction():
        await _own_events(connection, _LOCK_OWN, principal, subscription_id)
        await end_subscription(connection, principal.customer_id, subscription_id)


async def _own_events(connection: Connection, query: str, principal: Principal, subscription_id: UUID) -> Selection:
    """Returns the events of a subscription of the principal's customer and environment. Raises NotFound for any other.

    `query` is `_OWN`, `_HOLD_OWN`, which prevents its deletion until the transaction ends, or `_LOCK_OWN`, which locks it.
    """
    row = await connection.fetchrow(query, subscription_id, principal.customer_id, principal.environment)
    if row is None:
        raise NotFound("There is no subscription with that id.")
    return Selection(*row)


async def end_subscription(connection: Connection, customer_id: int, subscription_id: UUID) -> None:
    """Deletes a subscription and cancels its pending deliveries. Call it inside a transaction.

    In this order, as the deletion waits for current fan-outs, and the UPDATE then sees their deliveries.
    """
    await connection.execute(_DELETE, customer_id, subscription_id)
    await connection.execute(_CANCEL_PENDING, customer_id, subscription_id)


async def list_subscriptions(connection: Connection, principal: Principal) -> list[Subscription]:
    """Returns the customer's subscriptions in the principal's environment, newest first."""
    rows = await connection.fetch(_SUBSCRIPTIONS, principal.customer_id, principal.environment)
    return [Subscription(**row) for row in rows]


def secret_context(subscription_id: UUID) -> bytes:
    """Returns the encryption context of a signing secret, so that it decrypts only for its own subscription."""
    return b"webhook-secret/" + subscription_id.bytes


async def list_subscription_records(connection: Connection, principal: Principal) -> list[SubscriptionRecord]:
    """Returns the customer's subscriptions in the principal's environment, newest first, with their newest delivery."""
    rows = await connection.fetch(_SUBSCRIPTIONS_WITH_STATE, principal.customer_id, principal.environment)
    return [SubscriptionRecord(**row) for row in rows]


async def list_deliveries(
    connection: Connection, principal: Principal, subscription_id: UUID, *, before: int | None = None, limit: int = 50
) -> list[DeliveryRecord]:
    """Returns the newest deliveries of a subscription with their attempts, newest first. `before` is the last id of the previous page.

    Raises NotFound for a subscription of another customer or environment.
    """
    await _own_events(connection, _OWN, principal, subscription_id)
    rows = await connection.fetch(_DELIVERIES, principal.customer_id, subscription_id, before, limit)
    return await _with_attempts(connection, principal, rows)


async def order_references(connection: Connection, principal: Principal, order_ids: Collection[int]) -> dict[int, str]:
    """Returns the references of orders, by the orders' ids."""
    rows = await connection.fetch(_REFERENCES, principal.customer_id, list(order_ids))
    return {row["id"]: row["reference"] for row in rows}


async def list_order_webhooks(
    connection: Connection, principal: Principal, order_id: int, placed_at: datetime
) -> list[tuple[str, DeliveryRecord]]:
    """Returns the deliveries of an order's event, each with its target address. Returns none if they were pruned."""
    event = await connection.fetchrow(_EVENT_OF_ORDER, principal.customer_id, placed_at, order_id)
    if event is None or event["fanned_out_at"] is None:
        return []
    rows = await connection.fetch(_DELIVERIES_OF_EVENT, principal.customer_id, event["fanned_out_at"], event["id"])
    return list(
        zip([row["target_url"] for row in rows], await _with_attempts(connection, principal, rows), strict=True)
    )


async def redeliver(
    connection: Connection, principal: Principal, subscription_id: UUID, delivery_id: int
) -> DeliveryRecord:
    """Makes a delivery due now. If it had ended, it gets all its attempts again. Call it inside a transaction.

    Raises NotFound for an unknown delivery or subscription.
    """
    await _own_events(connection, _HOLD_OWN, principal, subscription_id)
    # Locks in the same order as a worker: the queue first, then the delivery.
    await wake_queue(connection, principal.customer_id, subscription_id)
    if await connection.fetchrow(_REDELIVER, principal.customer_id, delivery_id, subscription_id) is None:
        raise NotFound("There is no delivery with that id.")
    await notify(connection)
    return await _read(connection, principal, delivery_id)


async def redeliver_failed(connection: Connection, principal: Principal, subscription_id: UUID) -> int:
    """Makes the newest deliveries that failed, for good or until their next attempt, due now, as `redeliver` does. Returns how many. Call it in a transaction.

    At most MOST_REDELIVERED at a time. Raises NotFound for an unknown subscription.
    """
    await _own_events(connection, _HOLD_OWN, principal, subscription_id)
    await wake_queue(connection, principal.customer_id, subscription_id)
    rows = await connection.fetch(_REDELIVER_FAILED, principal.customer_id, subscription_id, MOST_REDELIVERED)
    if rows:
        await notify(connection)
    return len(rows)


async def insert_sample(
    connection: Connection, principal: Principal, subscription_id: UUID, event: str | None = None
) -> DeliveryRecord:
    """Adds a delivery of a signed sample of one of the subscription's events, the first by default. Call it inside a transaction.

    Raises NotFound, and InvalidRequest for an event that the subscription does not name or this release does not have.
    """
    names = (await _own_events(connection, _HOLD_OWN, principal, subscription_id)).names
    if event is None:
        event = names[0]
    elif event not in names:
        raise InvalidRequest(f"`event` must be one of the subscription's: {', '.join(names)}.")
    await wake_queue(connection, principal.customer_id, subscription_id)
    now = await read_now(connection)
    sample = _sample_body(event, Sampled(principal.customer_id, principal.service_account_id, now))
    delivery_id = await connection.fetchval(_INSERT_SAMPLE, principal.customer_id, subscription_id, event, sample, now)
    await notify(connection)
    return await _read(connection, principal, delivery_id)


def _sample_body(event: str, sampled: Sampled) -> bytes:
    kind = EVENTS.get(event)
    if kind is None:
        raise InvalidRequest(f"`{event}` is no longer sent: delete the subscription.")
    return kind.sample_body(sampled)


async def _read(connection: Connection, principal: Principal, delivery_id: int) -> DeliveryRecord:
    rows = await connection.fetch(_DELIVERY, principal.customer_id, delivery_id)
    [record] = await _with_attempts(connection, principal, rows)
    return record


async def _with_attempts(connection: Connection, principal: Principal, deliveries: list[Row]) -> list[DeliveryRecord]:
    rows = await connection.fetch(_ATTEMPTS, principal.customer_id, [row["id"] for row in deliveries])
    attempts: dict[int, list[AttemptRecord]] = defaultdict(list)
    for row in rows:
        attempts[row["delivery_id"]].append(
            AttemptRecord(
                number=row["number"],
                started_at=row["started_at"],
                duration_ms=row["duration_ms"],
                status=row["status"],
                error=row["error"],
                answer=_shown(row["answer"]) if row["status"] is not None else None,
            )
        )
    orders = await _orders_of(connection, principal, {row["event_id"] for row in deliveries} - {None})
    return [
        DeliveryRecord(
            id=row["id"],
            event=row["event"],
            is_sample=row["event_id"] is None,
            order_id=orders.get(row["event_id"]),
            state=row["state"],
            attempts=attempts[row["id"]],
            attempts_left=row["attempts_left"] if row["state"] == "pending" else 0,
            next_attempt_at=row["due_at"] if row["state"] == "pending" else None,
            created_at=row["created_at"],
            finished_at=row["finished_at"],
        )
        for row in deliveries
    ]


async def _orders_of(connection: Connection, principal: Principal, event_ids: set[int]) -> dict[int, int | None]:
    """Returns the orders of events, by the events' ids, without pruned events.

    A separate query, as events may be on the customer's node and deliveries are not, and not every version of Citus supports an outer join of both.
    """
    if not event_ids:
        return {}
    rows = await connection.fetch(_ORDERS_OF_EVENTS, principal.customer_id, list(event_ids))
    return {row["id"]: row["order_id"] for row in rows}


def _shown(answer: bytes | None) -> str:
    """Returns the answer as text. Bytes that are not text become replacement characters."""
    return (answer or b"").decode(_KEPT_AS_TEXT, errors="replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
