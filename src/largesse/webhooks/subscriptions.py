"""Webhook subscriptions: who hears of which event, and where.

How often a caller may have something delivered on request: a sample, or a delivery once more.

Each request makes the worker dial an address of the caller's choice. Each serving process counts for itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal
from uuid import UUID, uuid4

from largesse.base import clock
from largesse.base.errors import InvalidRequest, NotFound, TooManyRequests
from largesse.base.throttle import Rate, Throttle
from largesse.customers.principal import Principal
from largesse.db.pool import Connection
from largesse.encryption.vault import Vault
from largesse.events.registry import EVENTS
from largesse.webhooks.signing import new_secret
from largesse.webhooks.targets import Target

MAX_SUBSCRIPTIONS = 100  # of one customer, both environments together


@dataclass(frozen=True, slots=True)
class Subscription:
    """A subscription as its holder sees it."""

    id: UUID
    event: str
    target_url: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class CreatedSubscription:
    """A new subscription with its signing secret, which is shown this once."""

    id: UUID
    event: str
    target_url: str
    secret: str = field(repr=False)


async def create_subscription(
    connection: Connection, principal: Principal, vault: Vault, target: Target, event: str
) -> CreatedSubscription:
    """Subscribes a checked target. Raises InvalidRequest for an unknown event or one subscription too many."""
    if event not in EVENTS:
        raise InvalidRequest(f"`event` must be one of: {', '.join(EVENTS)}.")
    subscription_id = uuid4()
    secret = new_secret()
    async with connection.transaction():
        await _hold_to_limit(connection, principal.customer_id)
        await connection.execute(
            """
            INSERT INTO webhook_subscriptions
                (id, customer_id, environment, event, target_url, sealed_secret, service_account_id, user_id)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
            """,
            subscription_id,
            principal.customer_id,
            principal.environment,
            event,
            target.url,
            vault.webhooks.seal(secret.encode(), secret_context(subscription_id)),
            principal.service_account_id,
            principal.user_id,
        )
    return CreatedSubscription(subscription_id, event, target.url, secret)


async def delete_subscription(connection: Connection, principal: Principal, subscription_id: UUID) -> None:
    """Ends a subscription and cancels what is pending for it.

    Raises NotFound when the principal's customer has none of that id in its environment.
    """
    async with connection.transaction():
        await own_subscription(connection, principal, subscription_id, lock="FOR UPDATE")
        await end_subscription(connection, principal.customer_id, subscription_id)


async def own_subscription(
    connection: Connection,
    principal: Principal,
    subscription_id: UUID,
    *,
    lock: Literal["FOR KEY SHARE", "FOR UPDATE", ""] = "FOR KEY SHARE",
) -> str:
    """Returns the event of a subscription that the principal's customer has in its environment. Raises NotFound for any other.

    It stays until the transaction ends, unless no lock is asked for; FOR UPDATE keeps everybody else from it too.
    """
    event: str | None = await connection.fetchval(
        f"SELECT event FROM webhook_subscriptions WHERE id = $1 AND customer_id = $2 AND environment = $3 {lock}",  # noqa: S608 - one of three words
        subscription_id,
        principal.customer_id,
        principal.environment,
    )
    if event is None:
        raise NotFound("There is no subscription of that id.")
    return event


async def end_subscription(connection: Connection, customer_id: int, subscription_id: UUID) -> None:
    """Deletes a subscription and cancels what is pending for it; call it inside a transaction.

    In this order: the deletion waits for fan-outs under way, and the cancelling then sees what they made.
    """
    await connection.execute(
        "DELETE FROM webhook_subscriptions WHERE customer_id = $1 AND id = $2", customer_id, subscription_id
    )
    await connection.execute(
        """
        UPDATE deliveries SET state = 'cancelled', finished_at = clock_now()
        WHERE customer_id = $1 AND subscription_id = $2 AND state = 'pending'
        """,
        customer_id,
        subscription_id,
    )


async def list_subscriptions(connection: Connection, principal: Principal) -> list[Subscription]:
    """The customer's subscriptions in the principal's environment, newest first."""
    rows = await connection.fetch(
        """
        SELECT id, event, target_url, created_at FROM webhook_subscriptions
        WHERE customer_id = $1 AND environment = $2
        ORDER BY created_at DESC, id
        """,
        principal.customer_id,
        principal.environment,
    )
    return [Subscription(**row) for row in rows]


def secret_context(subscription_id: UUID) -> bytes:
    """What a signing secret is sealed with: it opens for its own subscription only."""
    return b"webhook-secret/" + subscription_id.bytes


async def _hold_to_limit(connection: Connection, customer_id: int) -> None:
    """Makes the customer's other creations wait, then counts: a statement after the lock sees what they committed."""
    await connection.execute("SELECT FROM customers WHERE id = $1 FOR NO KEY UPDATE", customer_id)
    held: int = await connection.fetchval(
        "SELECT count(*) FROM webhook_subscriptions WHERE customer_id = $1", customer_id
    )
    if held >= MAX_SUBSCRIPTIONS:
        raise InvalidRequest(f"A customer holds at most {MAX_SUBSCRIPTIONS} webhook subscriptions: delete one first.")


SAMPLES_A_MINUTE = 10  # of one subscription
REQUESTED_A_MINUTE = 60  # by one customer: samples and redeliveries together
_MINUTE_S = 60.0


class DeliveryThrottle:
    """Counts what customers ask for, and raises TooManyRequests where that is too much."""

    def __init__(self, *, now_s: Callable[[], float] = clock.passed_s) -> None:
        self._requested: Throttle[int] = Throttle(Rate(REQUESTED_A_MINUTE, _MINUTE_S), now_s=now_s)
        # With the customer, so that nobody uses up what is another's.
        self._samples: Throttle[tuple[int, UUID]] = Throttle(Rate(SAMPLES_A_MINUTE, _MINUTE_S), now_s=now_s)

    def count_sample(self, customer_id: int, subscription_id: UUID) -> None:
        """Counts a sample for a subscription. A refused one is not counted."""
        if wait_s := self._samples.wait_s((customer_id, subscription_id)):
            raise TooManyRequests(
                f"A subscription is sent at most {SAMPLES_A_MINUTE} samples a minute.", retry_after_s=wait_s
            )
        self.count_redelivery(customer_id)
        self._samples.take((customer_id, subscription_id))

    def count_redelivery(self, customer_id: int) -> None:
        """Counts a delivery that is asked for again. A refused one is not counted."""
        self._requested.spend(
            customer_id, f"A customer asks for at most {REQUESTED_A_MINUTE} samples and redeliveries a minute."
        )
