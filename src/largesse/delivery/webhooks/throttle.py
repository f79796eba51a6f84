"""How often a caller may have something delivered on request: a sample, or a delivery once more.

Each request makes the worker dial an address of the caller's choice. Each serving process counts for itself.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from largesse.base import clock
from largesse.base.errors import TooManyRequests
from largesse.base.throttle import Rate, Throttle

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
            customer_id,
            f"A customer asks for at most {REQUESTED_A_MINUTE} samples and redeliveries a minute.",
        )
