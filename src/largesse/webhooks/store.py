"""SQL of subscriptions, the events they name, and their secrets. The SQL of their deliveries is in `delivery_store`."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID, uuid4

import msgspec

from largesse.base.confidential import Confidential
from largesse.base.errors import InvalidRequest, StateConflict, existing
from largesse.base.settings import ENVIRONMENTS
from largesse.customers.principal import Principal
from largesse.db.pool import Connection, Database, Row
from largesse.db.scope import Place, for_customers
from largesse.db.statements import plan_by_index, plan_in_order
from largesse.encryption.vault import DecryptionFailed, Vault
from largesse.events.kinds import EVENTS
from largesse.webhooks.signing import new_secret
from largesse.webhooks.targets import Target


class Selection(NamedTuple):
    """The events that a subscription names: one in `event`, or several in `events`."""

    event: str | None
    events: Sequence[str] | None

    @property
    def names(self) -> Sequence[str]:
        """Returns all of them."""
        return self.events or [self.event or ""]


def select_events(events: str | Sequence[str]) -> Selection:
    """Returns what a subscription stores for one or several events. Raises InvalidRequest for no event, an unknown one or a repeated one."""
    if isinstance(events, str):
        if events not in EVENTS:
            raise InvalidRequest(f"`event` must be one of: {', '.join(EVENTS)}.")
        return Selection(events, None)
    if not events:
        raise InvalidRequest("`events` must name at least one event.")
    for at, event in enumerate(events):
        if event not in EVENTS:
            raise InvalidRequest(f"`events[{at}]` must be one of: {', '.join(EVENTS)}.")
        if event in events[:at]:
            raise InvalidRequest(f"`events[{at}]` is named twice.")
    return Selection(None, events)


MAX_SUBSCRIPTIONS = 100  # subscriptions of a customer, in both environments together
ROTATION_S = 86_400  # how long the previous secrets sign too
MOST_PREVIOUS = 3  # previous secrets that sign
# Pending deliveries of a deleted subscription; a million in one statement would exceed its time limit.
CANCELLED_AT_ONCE = 5_000

_INSERT = """
    INSERT INTO webhook_subscriptions
        (id, customer_id, environment, event, events, target_url, sealed_secret, service_account_id, user_id)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
"""
OWN = "SELECT event, events FROM webhook_subscriptions WHERE id = $1 AND customer_id = $2 AND environment = $3"
HOLD_OWN = OWN + " FOR KEY SHARE"
LOCK_OWN = OWN + " FOR UPDATE"
_LOCK_CUSTOMER = "SELECT FROM customers WHERE id = $1 FOR NO KEY UPDATE"
_COUNT = "SELECT count(*) FROM webhook_subscriptions WHERE customer_id = $1"
_DELETE = "DELETE FROM webhook_subscriptions WHERE customer_id = $1 AND id = $2"
_CANCEL_PENDING = """
    UPDATE deliveries SET state = 'cancelled', finished_at = clock_now()
    WHERE customer_id = $1 AND id = ANY(ARRAY(
        SELECT id FROM deliveries WHERE customer_id = $1 AND subscription_id = $2 AND state = 'pending' ORDER BY due_at LIMIT $3))
"""
# Reads the first pending delivery of each subscription, not all pending deliveries.
_DELETED_WITH_PENDING = """
    WITH RECURSIVE waiting AS (
        (SELECT customer_id, subscription_id FROM deliveries WHERE state = 'pending'
         ORDER BY customer_id, subscription_id LIMIT 1)
        UNION ALL
        SELECT next.customer_id, next.subscription_id FROM waiting CROSS JOIN LATERAL (
            SELECT customer_id, subscription_id FROM deliveries
            WHERE state = 'pending' AND (customer_id, subscription_id) > (waiting.customer_id, waiting.subscription_id)
            ORDER BY customer_id, subscription_id LIMIT 1) AS next)
    SELECT customer_id, subscription_id FROM waiting
    WHERE NOT EXISTS (
        SELECT FROM webhook_subscriptions AS s WHERE s.customer_id = waiting.customer_id AND s.id = waiting.subscription_id)
    LIMIT 1
"""
_SUBSCRIPTIONS = """
    SELECT id, event, events, target_url, created_at FROM webhook_subscriptions
    WHERE customer_id = $1 AND environment = $2
    ORDER BY created_at DESC, id
"""
# BETWEEN, and the sort order that begins with the subscription, make the planner read only its deliveries.
# Otherwise it would read all of the customer's deliveries for a subscription that has none.
_SUBSCRIPTIONS_WITH_STATE = """
    SELECT s.id, event, events, target_url, s.created_at, CASE WHEN previous_until > clock_now() THEN previous_until END AS rotates_until, coalesce(failing, false) AS is_failing, state AS last_state,
           newest.created_at AS last_at
    FROM webhook_subscriptions s
    LEFT JOIN subscription_queues q ON q.customer_id = s.customer_id AND q.subscription_id = s.id
    LEFT JOIN LATERAL (
        SELECT state, created_at FROM deliveries d
        WHERE d.customer_id = s.customer_id AND d.subscription_id BETWEEN s.id AND s.id
        ORDER BY d.subscription_id DESC, d.id DESC LIMIT 1
    ) AS newest ON true
    WHERE s.customer_id = $1 AND s.environment = $2
    ORDER BY s.created_at DESC, s.id
"""
_ROTATE = """
    UPDATE webhook_subscriptions
    SET previous_secret = $7, previous_until = clock_now() + $5 * interval '1 second', sealed_secret = $4
    WHERE id = $1 AND customer_id = $2 AND environment = $3 AND sealed_secret = $6 RETURNING previous_until
"""
_CURRENT = """
    SELECT sealed_secret, CASE WHEN previous_until > clock_now() THEN previous_secret END AS previous_secret
    FROM webhook_subscriptions WHERE id = $1 AND customer_id = $2 AND environment = $3
"""
_FIND = "SELECT customer_id, environment FROM webhook_subscriptions WHERE id = $1"
_OF_USER = """
    SELECT target_url, environment FROM webhook_subscriptions WHERE customer_id = $1 AND user_id = $2
    ORDER BY environment, created_at, id
"""
_EVERY = """
    SELECT s.id, c.key AS customer, environment, event, events, target_url, s.created_at, previous_until
    FROM webhook_subscriptions s JOIN customers c ON c.id = s.customer_id
    WHERE $1::text IS NULL OR c.key = $1 ORDER BY c.key, environment, s.created_at, s.id
"""


class Subscription(msgspec.Struct, frozen=True):
    """A subscription as its customer sees it."""

    id: UUID
    event: str | None
    events: Sequence[str] | None
    target_url: str
    created_at: datetime


class CreatedSubscription(Confidential, frozen=True):
    """A new subscription with its signing secret, which is shown only once."""

    id: UUID
    event: str | None
    events: Sequence[str] | None
    target_url: str
    secret: str


class RotatedSecret(Confidential, frozen=True):
    """The new secret of a subscription, which is shown only once. Until `previous_until`, deliveries are signed with the previous ones too."""

    id: UUID
    previous_until: datetime
    secret: str


class SubscriptionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription with the state of its deliveries."""

    id: UUID
    event: str | None
    events: list[str] | None
    target_url: str
    created_at: datetime
    rotates_until: datetime | None  # the time until which previous secrets sign too
    is_failing: bool  # whether the last attempt failed
    last_state: str | None  # the state of its newest delivery; None if it has none
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
        await own_events(connection, LOCK_OWN, principal, subscription_id)
        await end_subscription(connection, principal.customer_id, subscription_id)


async def own_events(connection: Connection, query: str, principal: Principal, subscription_id: UUID) -> Selection:
    """Returns the events of a subscription of the principal's customer and environment. Raises NotFound for any other.

    `query` is `OWN`; `HOLD_OWN`, which prevents its deletion until the transaction ends; or `LOCK_OWN`, which locks it.
    """
    row = existing(
        await connection.fetchrow(query, subscription_id, *principal.place), "There is no subscription with that id."
    )
    return Selection(*row)


async def end_subscription(connection: Connection, customer_id: int, subscription_id: UUID) -> None:
    """Deletes a subscription and cancels its pending deliveries. Call it inside a transaction.

    Deletes first, as that waits for current fan-outs, so that their deliveries are cancelled too. None is attempted any more: the
    queue is deleted too. Of more than CANCELLED_AT_ONCE, `cancel_rest` cancels the others.
    """
    await connection.execute(_DELETE, customer_id, subscription_id)
    await connection.execute(_CANCEL_PENDING, customer_id, subscription_id, CANCELLED_AT_ONCE)


async def cancel_rest(connection: Connection) -> bool:
    """Cancels up to CANCELLED_AT_ONCE pending deliveries of one deleted subscription. Returns whether there were any."""
    async with connection.transaction():
        await plan_by_index(connection)
        row = await connection.fetchrow(_DELETED_WITH_PENDING)
        if row is not None:
            await connection.execute(_CANCEL_PENDING, *row, CANCELLED_AT_ONCE)
    return row is not None


async def list_subscriptions(connection: Connection, principal: Principal) -> list[Subscription]:
    """Returns the customer's subscriptions in the principal's environment, newest first."""
    rows = await connection.fetch(_SUBSCRIPTIONS, *principal.place)
    return [Subscription(**row) for row in rows]


def secret_context(subscription_id: UUID) -> bytes:
    """Returns the encryption context of a signing secret, so that it decrypts only for its own subscription."""
    return b"webhook-secret/" + subscription_id.bytes


async def list_subscription_records(connection: Connection, principal: Principal) -> list[SubscriptionRecord]:
    """Returns the customer's subscriptions in the principal's environment, newest first, with their newest delivery."""
    async with connection.transaction():
        await plan_in_order(connection)
        rows = await connection.fetch(_SUBSCRIPTIONS_WITH_STATE, *principal.place)
    return [SubscriptionRecord(**row) for row in rows]


async def rotate_secret(connection: Connection, vault: Vault, place: Place, subscription_id: UUID) -> RotatedSecret:
    """Sets a new secret for a subscription. For ROTATION_S, the previous one signs too, and so do those that still sign, MOST_PREVIOUS in all.

    Receivers may have any of them: a caller who gets no answer rotates again. Raises NotFound, and StateConflict if another rotation happens at the
    same time.
    """
    row = existing(
        await connection.fetchrow(_CURRENT, subscription_id, *place), "There is no subscription with that id."
    )
    secrets, context = vault.webhooks, secret_context(subscription_id)
    known = [one for sealed in row if sealed is not None for one in _open(vault, sealed, context)]
    secret, previous = new_secret(), b" ".join(known[:MOST_PREVIOUS])
    sealed = [secrets.seal(one, context) for one in (secret.encode(), previous)]
    until = await connection.fetchval(
        _ROTATE, subscription_id, *place, sealed[0], ROTATION_S, row["sealed_secret"], sealed[1]
    )
    if until is None:
        raise StateConflict("The secret was rotated, or the subscription deleted, at the same time.")
    return RotatedSecret(subscription_id, until, secret)


def _open(vault: Vault, sealed: bytes, context: bytes) -> list[bytes]:
    """Returns the secrets of a column. Returns none if they cannot be decrypted, as rotating also replaces such a secret."""
    try:
        return vault.webhooks.open(sealed, context).split()
    except DecryptionFailed:
        return []


async def find_subscription(connection: Connection, subscription_id: UUID) -> tuple[int, str]:
    """Returns the customer and the environment of a subscription, for an operator. Raises NotFound."""
    row = existing(await connection.fetchrow(_FIND, subscription_id), "There is no subscription with that id.")
    return row["customer_id"], row["environment"]


async def list_of_user(database: Database, customer_id: int, user_id: int) -> list[Row]:
    """Returns the address and the environment of the subscriptions that a member created, in both environments."""
    places = [(customer_id, environment) for environment in ENVIRONMENTS]
    async with database.connection(for_customers(places)) as connection:
        return await connection.fetch(_OF_USER, customer_id, user_id)


async def list_every_subscription(connection: Connection, customer: str | None) -> list[Row]:
    """Returns the subscriptions of all customers, or of the one with that key, for an operator."""
    return await connection.fetch(_EVERY, customer)
