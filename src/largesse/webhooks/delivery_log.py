"""How deliveries to a subscription are doing, sending one again, and sending a sample."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from datetime import datetime
from uuid import UUID

import msgspec

from largesse.base.errors import InvalidRequest, NotFound
from largesse.customers.principal import Principal
from largesse.db.pool import Connection, Row
from largesse.events.kinds import Sampled
from largesse.events.registry import EVENTS
from largesse.jobs.notifier import notify
from largesse.webhooks.queues import wake_queue
from largesse.webhooks.subscriptions import own_subscription

MOST_REDELIVERED = 1_000  # at a time
_KEPT_AS_TEXT = "utf-8"
_COLUMNS = """
    deliveries.id, deliveries.event, event_id, state, attempts, attempts_left, due_at, deliveries.created_at, finished_at
"""


class AttemptRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt of a delivery."""

    number: int
    started_at: datetime
    duration_ms: int
    status: int | None  # the receiver's
    error: str | None  # why there was no status
    answer: str | None  # the beginning of the receiver's


class DeliveryRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One event on its way to a subscription."""

    id: int
    event: str
    order_id: int | None  # none of a sample
    state: str
    attempts: list[AttemptRecord]
    attempts_left: int
    next_attempt_at: datetime | None
    created_at: datetime
    finished_at: datetime | None


class SubscriptionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription and how its deliveries are doing."""

    id: UUID
    event: str
    target_url: str
    created_at: datetime
    is_failing: bool  # what was tried last did not arrive
    last_state: str | None  # of its newest delivery; None: it has none
    last_at: datetime | None


async def list_subscription_records(connection: Connection, principal: Principal) -> list[SubscriptionRecord]:
    """The customer's subscriptions in the principal's environment, newest first, with their newest delivery."""
    rows = await connection.fetch(
        """
        SELECT s.id, event, target_url, s.created_at, coalesce(failing, false) AS is_failing, state AS last_state,
               newest.created_at AS last_at
        FROM webhook_subscriptions s
        LEFT JOIN subscription_queues q ON q.customer_id = s.customer_id AND q.subscription_id = s.id
        LEFT JOIN LATERAL (
            SELECT state, created_at FROM deliveries d
            WHERE d.customer_id = s.customer_id AND d.subscription_id = s.id ORDER BY d.id DESC LIMIT 1
        ) AS newest ON true
        WHERE s.customer_id = $1 AND s.environment = $2
        ORDER BY s.created_at DESC, s.id
        """,
        principal.customer_id,
        principal.environment,
    )
    return [SubscriptionRecord(**row) for row in rows]


async def list_deliveries(
    connection: Connection, principal: Principal, subscription_id: UUID, *, before: int | None = None, limit: int = 50
) -> list[DeliveryRecord]:
    """The newest deliveries of a subscription with their attempts, newest first; `before` is the id of the last page's end.

    Raises NotFound for a subscription of another customer or environment.
    """
    await own_subscription(connection, principal, subscription_id, lock="")
    rows = await connection.fetch(
        f"""
        SELECT {_COLUMNS} FROM deliveries
        WHERE deliveries.customer_id = $1 AND subscription_id = $2 AND ($3::bigint IS NULL OR deliveries.id < $3)
        ORDER BY deliveries.id DESC LIMIT $4
        """,  # noqa: S608 - constants
        principal.customer_id,
        subscription_id,
        before,
        limit,
    )
    return await _with_attempts(connection, principal, rows)


async def order_references(connection: Connection, principal: Principal, order_ids: Collection[int]) -> dict[int, str]:
    """The references of the orders that deliveries are about, by the orders' ids."""
    rows = await connection.fetch(
        "SELECT id, reference FROM orders WHERE customer_id = $1 AND id = ANY($2::int[])",
        principal.customer_id,
        list(order_ids),
    )
    return {row["id"]: row["reference"] for row in rows}


async def list_order_webhooks(
    connection: Connection, principal: Principal, order_id: int, placed_at: datetime
) -> list[tuple[str, DeliveryRecord]]:
    """The deliveries of an order's event, with the address each goes to; none once they were pruned.

    Both tables are read by their times: an event is as old as its order, and its deliveries were made when it was fanned out.
    """
    event = await connection.fetchrow(
        "SELECT id, fanned_out_at FROM events WHERE customer_id = $1 AND created_at = $2 AND order_id = $3",
        principal.customer_id,
        placed_at,
        order_id,
    )
    if event is None or event["fanned_out_at"] is None:
        return []
    rows = await connection.fetch(
        f"""
        SELECT {_COLUMNS}, coalesce(s.target_url, '') AS target_url
        FROM deliveries LEFT JOIN webhook_subscriptions AS s ON s.customer_id = $1 AND s.id = subscription_id
        WHERE deliveries.customer_id = $1 AND deliveries.created_at = $2 AND event_id = $3 ORDER BY deliveries.id
        """,  # noqa: S608 - constants
        principal.customer_id,
        event["fanned_out_at"],
        event["id"],
    )
    return list(
        zip([row["target_url"] for row in rows], await _with_attempts(connection, principal, rows), strict=True)
    )


async def redeliver(
    connection: Connection, principal: Principal, subscription_id: UUID, delivery_id: int
) -> DeliveryRecord:
    """Has a delivery made again now, with a full row of attempts if it had ended. Call it inside a transaction.

    Raises NotFound for an unknown delivery or subscription.
    """
    await own_subscription(connection, principal, subscription_id)
    # As a worker does: the queue first, then the delivery.
    await wake_queue(connection, principal.customer_id, subscription_id)
    row = await connection.fetchrow(
        """
        UPDATE deliveries SET
            state = 'pending', due_at = (SELECT clock_now()), finished_at = NULL,
            attempts_left = CASE WHEN state = 'pending' THEN attempts_left ELSE 12 END
        WHERE customer_id = $1 AND id = $2 AND subscription_id = $3 RETURNING id
        """,
        principal.customer_id,
        delivery_id,
        subscription_id,
    )
    if row is None:
        raise NotFound("There is no delivery of that id.")
    await notify(connection)
    return await _read(connection, principal, delivery_id)


async def redeliver_failed(connection: Connection, principal: Principal, subscription_id: UUID) -> int:
    """Has the newest deliveries that failed for good made again now, as `redeliver` does; returns how many. Call it in a transaction.

    At most MOST_REDELIVERED at a time. Raises NotFound for an unknown subscription.
    """
    await own_subscription(connection, principal, subscription_id)
    await wake_queue(connection, principal.customer_id, subscription_id)
    rows = await connection.fetch(
        """
        UPDATE deliveries SET state = 'pending', due_at = (SELECT clock_now()), finished_at = NULL, attempts_left = 12
        WHERE customer_id = $1 AND id IN (
            SELECT id FROM deliveries
            WHERE customer_id = $1 AND subscription_id = $2 AND state IN ('dropped', 'exhausted')
            ORDER BY id DESC LIMIT $3)
        RETURNING id
        """,
        principal.customer_id,
        subscription_id,
        MOST_REDELIVERED,
    )
    if rows:
        await notify(connection)
    return len(rows)


async def send_sample(
    connection: Connection, principal: Principal, subscription_id: UUID, now: datetime
) -> DeliveryRecord:
    """Has a signed sample of the subscription's event delivered. Call it inside a transaction.

    Raises NotFound, and InvalidRequest for an event of another release, which this one knows no sample of.
    """
    event = await own_subscription(connection, principal, subscription_id)
    await wake_queue(connection, principal.customer_id, subscription_id)
    delivery_id = await connection.fetchval(
        """
        INSERT INTO deliveries (customer_id, subscription_id, event, sample, due_at, created_at)
        SELECT $1, $2, $3, $4, now, now FROM (SELECT clock_now()) AS clock (now) RETURNING id
        """,
        principal.customer_id,
        subscription_id,
        event,
        _sample_body(event, Sampled(principal.customer_id, principal.service_account_id, now)),
    )
    await notify(connection)
    return await _read(connection, principal, delivery_id)


def _sample_body(event: str, sampled: Sampled) -> bytes:
    kind = EVENTS.get(event)
    if kind is None:
        raise InvalidRequest(f"`{event}` is no event that is sent any more: delete the subscription.")
    return kind.sample_body(sampled)


async def _read(connection: Connection, principal: Principal, delivery_id: int) -> DeliveryRecord:
    rows = await connection.fetch(
        f"SELECT {_COLUMNS} FROM deliveries WHERE deliveries.customer_id = $1 AND deliveries.id = $2",  # noqa: S608 - constants
        principal.customer_id,
        delivery_id,
    )
    [record] = await _with_attempts(connection, principal, rows)
    return record


async def _with_attempts(connection: Connection, principal: Principal, deliveries: list[Row]) -> list[DeliveryRecord]:
    rows = await connection.fetch(
        """
        SELECT delivery_id, number, started_at, duration_ms, status, error, answer FROM delivery_attempts
        WHERE customer_id = $1 AND delivery_id = ANY($2::bigint[]) ORDER BY delivery_id, number
        """,
        principal.customer_id,
        [row["id"] for row in deliveries],
    )
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


async def _orders_of(connection: Connection, principal: Principal, event_ids: set[int]) -> dict[int, int]:
    """The orders that events are about, without those of events that were pruned.

    Read separately: events may be on the customer's node, and deliveries are not, nor does every engine survive their outer join.
    """
    if not event_ids:
        return {}
    rows = await connection.fetch(
        "SELECT id, order_id FROM events WHERE customer_id = $1 AND id = ANY($2::bigint[])",
        principal.customer_id,
        list(event_ids),
    )
    return {row["id"]: row["order_id"] for row in rows}


def _shown(answer: bytes | None) -> str:
    """The answer as text; what is none becomes replacement characters."""
    return (answer or b"").decode(_KEPT_AS_TEXT, errors="replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
