from __future__ import annotations

from uuid import uuid4

import pytest

from largesse.base.errors import TooManyRequests
from largesse.webhooks.service import DeliveryThrottle

ACME, GLOBEX = 1, 2


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def throttle(clock: Clock) -> DeliveryThrottle:
    return DeliveryThrottle(now_s=clock)


def test_a_subscription_is_sent_10_samples_a_minute_and_no_11th(throttle: DeliveryThrottle, clock: Clock) -> None:
    subscription, another = uuid4(), uuid4()
    for _ in range(10):
        throttle.count_sample(ACME, subscription)
    with pytest.raises(TooManyRequests, match="10 samples") as refused:
        throttle.count_sample(ACME, subscription)
    assert refused.value.retry_after_s == 6
    throttle.count_sample(ACME, another)
    throttle.count_sample(GLOBEX, subscription)  # who only guesses the id uses nothing up
    clock.now_s += 6
    throttle.count_sample(ACME, subscription)
    with pytest.raises(TooManyRequests):
        throttle.count_sample(ACME, subscription)


def test_a_customer_asks_for_60_a_minute_and_no_61st(throttle: DeliveryThrottle, clock: Clock) -> None:
    for _ in range(5):
        throttle.count_sample(ACME, uuid4())
    for _ in range(55):
        throttle.count_redelivery(ACME)
    for ask in (lambda: throttle.count_redelivery(ACME), lambda: throttle.count_sample(ACME, uuid4())):
        with pytest.raises(TooManyRequests, match="60 samples and redeliveries") as refused:
            ask()
        assert refused.value.retry_after_s == 1
    throttle.count_redelivery(GLOBEX)
    clock.now_s += 60
    for _ in range(60):
        throttle.count_redelivery(ACME)


def test_what_is_refused_is_not_counted(throttle: DeliveryThrottle, clock: Clock) -> None:
    subscription = uuid4()
    for _ in range(10):
        throttle.count_sample(ACME, subscription)
    for _ in range(100):
        with pytest.raises(TooManyRequests):
            throttle.count_sample(ACME, subscription)
    for _ in range(50):
        throttle.count_redelivery(ACME)
    with pytest.raises(TooManyRequests):
        throttle.count_redelivery(ACME)
