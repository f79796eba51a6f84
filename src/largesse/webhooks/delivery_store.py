"""SQL of deliveries, for people, API callers and members of staff. Workers take deliveries by `queues`."""

from collections import defaultdict
from collections.abc import Collection
from datetime import datetime
from operator import itemgetter
from urllib.parse import urlsplit
from uuid import UUID

import msgspec

from largesse.base.errors import InvalidRequest, NotFound
from largesse.customers.principal import Principal
from largesse.db.fragments import Fragment, compose
from largesse.db.pool import Connection, Row
from largesse.db.statements import members_of, plan_in_order, read_now
from largesse.events.kinds import EVENTS, Sampled
from largesse.jobs.notifier import notify
from largesse.webhooks.queues import wake_queue
from largesse.webhooks.store import HOLD_OWN, OWN, own_events

MOST_REDELIVERED = 1_000  # deliveries that one call makes due
_NEWEST = 2**63 - 1  # a position before all deliveries
FIRST = 0, UUID(int=0)  # a position before all failing webhooks

_COLUMNS = Fragment("""
    deliveries.id, deliveries.event, event_id, state, attempts, attempts_left, due_at, deliveries.created_at, finished_at
""")
_DELIVERIES = compose(
    """
    SELECT {columns} FROM deliveries
    WHERE deliveries.customer_id = $1 AND subscription_id >= $2 AND (subscription_id, deliveries.id) < ($2, $3)
    ORDER BY subscription_id DESC, deliveries.id DESC LIMIT $4
    """,
    columns=_COLUMNS,
)
_DELIVERY = compose(
    "SELECT {columns} FROM deliveries WHERE deliveries.customer_id = $1 AND deliveries.id = $2", columns=_COLUMNS
)
# Finds rows quickly by their time: an event has the time of its order, and its deliveries have the time of its fan-out.
# The index by time holds only events that were fanned out.
_EVENT_OF_ORDER = """
    SELECT id, fanned_out_at FROM events
    WHERE customer_id = $1 AND created_at = $2 AND order_id = $3 AND fanned_out_at IS NOT NULL
"""
_DELIVERIES_OF_EVENT = compose(
    """
    SELECT {columns}, coalesce(s.target_url, '') AS target_url
    FROM deliveries LEFT JOIN webhook_subscriptions AS s ON s.customer_id = $1 AND s.id = subscription_id
    WHERE deliveries.customer_id = $1 AND deliveries.created_at = $2 AND event_id = $3 ORDER BY deliveries.id
    """,
    columns=_COLUMNS,
)
# Not sorted here: in a transaction that reads in the order of an index (`plan_in_order`), that would read all attempts of the customer.
_ATTEMPTS = """
    SELECT delivery_id, number, started_at, duration_ms, status, error, answer FROM delivery_attempts
    WHERE customer_id = $1 AND delivery_id = ANY($2::bigint[])
"""
_ORDERS_OF_EVENTS = "SELECT id, order_id FROM events WHERE customer_id = $1 AND id = ANY($2::bigint[])"
_REFERENCES = "SELECT id, reference FROM orders WHERE customer_id = $1 AND id = ANY($2::int[])"
_DUE_AGAIN = Fragment("""
    UPDATE deliveries SET
        state = 'pending', due_at = (SELECT clock_now()), finished_at = NULL,
        attempts_left = CASE WHEN state = 'pending' THEN attempts_left ELSE 12 END
""")
_REDELIVER = compose(
    "{due_again} WHERE customer_id = $1 AND id = $2 AND subscription_id = $3 RETURNING id", due_again=_DUE_AGAIN
)
# Two look-ups, as an index serves each: one for both would read all deliveries of the subscription.
_REDELIVER_FAILED = compose(
    """
    {due_again} WHERE customer_id = $1 AND id IN (
        (SELECT id FROM deliveries
         WHERE customer_id = $1 AND subscription_id BETWEEN $2 AND $2 AND state IN ('dropped', 'exhausted')
         ORDER BY subscription_id DESC, id DESC LIMIT $3)
        UNION ALL
        (SELECT id FROM deliveries
         WHERE customer_id = $1 AND subscription_id = $2 AND state = 'pending' AND attempts > 0 AND due_at > (SELECT clock_now())
         ORDER BY id DESC LIMIT $3)
        ORDER BY id DESC LIMIT $3)
    RETURNING id
    """,
    due_again=_DUE_AGAIN,
)
_INSERT_SAMPLE = """
    INSERT INTO deliveries (customer_id, subscription_id, event, sample, due_at, created_at)
    VALUES ($1, $2, $3, $4, $5, $5) RETURNING id
"""
_SUBSCRIPTION = Fragment("""
    s.customer_id, c.name AS customer, s.environment, s.id, s.target_url, coalesce(q.failing, false) AS is_failing, f.failed
    FROM webhook_subscriptions s JOIN customers c ON c.id = s.customer_id
""")
# As in `store`, BETWEEN and the sort order make the planner read only the deliveries of the subscription.
_FAILED = Fragment("""
    CROSS JOIN LATERAL (
        SELECT count(*)::int AS failed FROM (
            SELECT FROM deliveries d
            WHERE d.customer_id = s.customer_id AND d.subscription_id BETWEEN s.id AND s.id AND d.state IN ('dropped', 'exhausted')
            ORDER BY d.subscription_id DESC, d.id DESC LIMIT $1) AS few) AS f
""")
_OF_ALL = compose(
    """
    SELECT {subscription} JOIN subscription_queues q ON q.customer_id = s.customer_id AND q.subscription_id = s.id {failed}
    WHERE q.failing AND (q.customer_id, q.subscription_id) > ($2, $3) ORDER BY q.customer_id, q.subscription_id LIMIT $4
    """,
    subscription=_SUBSCRIPTION,
    failed=_FAILED,
)
_OF_ONE = compose(
    """
    SELECT {subscription} LEFT JOIN subscription_queues q ON q.customer_id = s.customer_id AND q.subscription_id = s.id {failed}
    WHERE s.customer_id = $2 AND s.id > $3 AND (q.failing OR f.failed > 0) ORDER BY s.id LIMIT $4
    """,
    subscription=_SUBSCRIPTION,
    failed=_FAILED,
)


class AttemptRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt of a delivery."""

    number: int
    started_at: datetime
    duration_ms: int
    status: int | None  # the status that the receiver answered
    error: str | None  # the reason if there was no status
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


class FailingWebhook(msgspec.Struct, frozen=True):
    """A subscription whose last attempt failed, or that has deliveries that failed for good."""

    customer_id: int
    customer: str
    environment: str
    id: UUID
    target_url: str
    is_failing: bool  # whether its last attempt failed, and will be repeated
    failed: int  # deliveries that failed for good, at most MOST_REDELIVERED

    @property
    def host(self) -> str:
        """Returns only the host of its address, as the rest may contain a secret."""
        return urlsplit(self.target_url).netloc.rpartition("@")[2]


async def list_deliveries(
    connection: Connection, principal: Principal, subscription_id: UUID, *, before: int | None = None, limit: int = 50
) -> list[DeliveryRecord]:
    """Returns the newest deliveries of a subscription with their attempts, newest first. `before` is the last id of the previous page.

    Raises NotFound for a subscription of another customer or environment.
    """
    await own_events(connection, OWN, principal, subscription_id)
    async with connection.transaction():
        await plan_in_order(connection)
        rows = await connection.fetch(
            _DELIVERIES, principal.customer_id, subscription_id, _NEWEST if before is None else before, limit
        )
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
    if event is None:
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
    await own_events(connection, HOLD_OWN, principal, subscription_id)
    # Locks in the same order as a worker: the queue first, then the delivery.
    await wake_queue(connection, principal.customer_id, subscription_id)
    if await connection.fetchrow(_REDELIVER, principal.customer_id, delivery_id, subscription_id) is None:
        raise NotFound("There is no delivery with that id.")
    await notify(connection)
    return await _read(connection, principal, delivery_id)


async def redeliver_failed(connection: Connection, principal: Principal, subscription_id: UUID) -> int:
    """Makes the newest failed deliveries due now, at most MOST_REDELIVERED, as `redeliver` does. Returns how many. Call it inside a transaction.

    Failed are those that were given up, and those that wait for another attempt. Raises NotFound for an unknown subscription.
    """
    await own_events(connection, HOLD_OWN, principal, subscription_id)
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
    names = (await own_events(connection, HOLD_OWN, principal, subscription_id)).names
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
    for row in sorted(rows, key=itemgetter("delivery_id", "number")):
        answer = _shown(row["answer"]) if row["status"] is not None else None
        attempts[row["delivery_id"]].append(AttemptRecord(**members_of(AttemptRecord, row) | {"answer": answer}))
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

    A separate query: events may be on the customer's node, deliveries are not, and some versions of Citus have no outer join of both.
    """
    if not event_ids:
        return {}
    rows = await connection.fetch(_ORDERS_OF_EVENTS, principal.customer_id, list(event_ids))
    return {row["id"]: row["order_id"] for row in rows}


def _shown(answer: bytes | None) -> str:
    """Returns the answer as text. Bytes that are not text become replacement characters."""
    return (answer or b"").decode(errors="replace").replace("\0", "\N{REPLACEMENT CHARACTER}")


async def list_failing(
    connection: Connection, customer_id: int | None, *, past: tuple[int, UUID] = FIRST, limit: int = 50
) -> list[FailingWebhook]:
    """Returns subscriptions whose last attempt failed, after the position `past`. For one customer, adds those with deliveries that failed for good."""
    if customer_id is None:
        rows = await connection.fetch(_OF_ALL, MOST_REDELIVERED, *past, limit)
    else:
        async with connection.transaction():
            await plan_in_order(connection)
            rows = await connection.fetch(_OF_ONE, MOST_REDELIVERED, customer_id, past[1], limit)
    return [FailingWebhook(**row) for row in rows]
