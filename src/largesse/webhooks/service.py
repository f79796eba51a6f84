"""Operations on webhooks: subscribe, end a subscription, rotate a secret, send a sample, and deliver again."""

from collections.abc import Callable, Sequence
from uuid import UUID

from largesse.base import clock
from largesse.base.errors import TooManyRequests
from largesse.base.throttle import Rate, Throttle
from largesse.customers.actor import Actor, Transaction
from largesse.customers.roles import Right
from largesse.customers.staff_roles import StaffRight
from largesse.encryption.vault import Vault
from largesse.webhooks import delivery_store, store
from largesse.webhooks.delivery_store import DeliveryRecord
from largesse.webhooks.store import CreatedSubscription, RotatedSecret
from largesse.webhooks.targets import LookUp, Network, check_target, parse_target

SAMPLES_A_MINUTE = 10  # samples for one subscription
# For one customer, of each: samples with redeliveries, test events, and advances of the test clock.
REQUESTED_A_MINUTE = 60
_MINUTE_S = 60.0


class DeliveryThrottle:
    """Counts the deliveries that customers request, and raises TooManyRequests if there are too many.

    Each makes the worker connect to an address that the caller chose. Each serving process counts for itself.
    """

    def __init__(self, *, now_s: Callable[[], float] = clock.passed_s) -> None:
        # Counts by customer and kind of request, so that many advances of the clock do not use up the redeliveries.
        self._requested: Throttle[tuple[int, str]] = Throttle(Rate(REQUESTED_A_MINUTE, _MINUTE_S), now_s=now_s)
        # The key includes the customer, so that a customer cannot use up the allowance of another one's subscription.
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
        """Counts a redelivery. A refused one is not counted."""
        self._count(customer_id, "asks for at most {most} samples and redeliveries a minute")

    def count_test_event(self, customer_id: int) -> None:
        """Counts an event that is made to happen. A refused one is not counted."""
        self._count(customer_id, "makes at most {most} test events a minute")

    def count_advance(self, customer_id: int) -> None:
        """Counts an advance of the test clock. A refused one is not counted."""
        self._count(customer_id, "advances the test clock at most {most} times a minute")

    def _count(self, customer_id: int, what: str) -> None:
        self._requested.spend((customer_id, what), f"A customer {what.format(most=REQUESTED_A_MINUTE)}.")


async def create_subscription(
    actor: Actor, vault: Vault, url: str, events: str | Sequence[str], *, allowed: tuple[Network, ...], look_up: LookUp
) -> CreatedSubscription:
    """Subscribes an address to one or several events. Raises InvalidRequest for an address that `parse_target` or `check_target`
    refuses, for unknown events, and if there are too many subscriptions.
    """
    target = parse_target(url, allowed)
    await check_target(target, allowed, look_up, actor.customer_id)
    async with actor.transaction(Right.SETTINGS) as transaction:
        created = await store.insert_subscription(transaction.connection, actor.principal, vault, target, events)
        named = {"event": created.event} if created.events is None else {"events": created.events}
        after = {**named, "target_url": target.origin}
        await transaction.record("webhook.created", f"subscription {created.id}", after=after)
    return created


async def remove_subscription(actor: Actor, subscription_id: UUID) -> None:
    """Ends a subscription at once, and cancels its pending deliveries. Raises NotFound."""
    async with actor.transaction(Right.SETTINGS) as transaction:
        await store.delete_subscription(transaction.connection, actor.principal, subscription_id)
        await transaction.record("webhook.deleted", f"subscription {subscription_id}")


async def rotate_secret(actor: Actor, vault: Vault, subscription_id: UUID) -> RotatedSecret:
    """Rotates the secret of a subscription. For 24 hours deliveries are signed with the previous ones too. Raises NotFound, StateConflict."""
    async with actor.transaction(Right.SETTINGS) as transaction:
        rotated = await store.rotate_secret(transaction.connection, vault, actor.place, subscription_id)
        await transaction.record("webhook.secret_rotated", f"subscription {subscription_id}")
    return rotated


async def send_sample(
    actor: Actor, throttle: DeliveryThrottle, subscription_id: UUID, event: str | None = None
) -> DeliveryRecord:
    """Sends a signed sample of one of a subscription's events, the first by default.

    Raises NotFound, TooManyRequests, and InvalidRequest for an event that the subscription does not name or this release does not have.
    """
    throttle.count_sample(actor.customer_id, subscription_id)
    async with actor.transaction(Right.SETTINGS) as transaction:
        return await delivery_store.insert_sample(transaction.connection, actor.principal, subscription_id, event)


async def redeliver(
    actor: Actor, throttle: DeliveryThrottle, subscription_id: UUID, delivery_id: int
) -> DeliveryRecord:
    """Makes a delivery due now. If it had ended, it gets all its attempts again. Raises NotFound, TooManyRequests."""
    throttle.count_redelivery(actor.customer_id)
    async with actor.transaction(Right.SETTINGS) as transaction:
        delivery = await delivery_store.redeliver(transaction.connection, actor.principal, subscription_id, delivery_id)
        await _record_redelivered(transaction, subscription_id, 1)
    return delivery


async def redeliver_failed(actor: Actor, throttle: DeliveryThrottle, subscription_id: UUID) -> int:
    """Makes the newest failed deliveries due now, at most MOST_REDELIVERED. Returns how many. Raises NotFound, TooManyRequests."""
    throttle.count_redelivery(actor.customer_id)
    async with actor.transaction(Right.SETTINGS, StaffRight.DELIVERIES) as transaction:
        count = await delivery_store.redeliver_failed(transaction.connection, actor.principal, subscription_id)
        if count:
            await _record_redelivered(transaction, subscription_id, count)
    return count


async def _record_redelivered(transaction: Transaction, subscription_id: UUID, count: int) -> None:
    if transaction.actor.principal.key_id is None:  # redeliveries by API keys are not recorded, like their orders
        after = {"deliveries": count}
        await transaction.record("webhook.redelivered", f"subscription {subscription_id}", after=after)
