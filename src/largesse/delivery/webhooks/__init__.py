"""Webhooks: subscriptions, the targets they may name, and the delivery of events to them.

subscriptions.py  who hears of which event; targets.py, addresses.py and resolver.py judge where that may be
fan_out.py        deliveries are made of events; queues.py leases them, a subscription's queue at a time
delivery.py       the worker's side: turns of queues, attempts in flight
transport.py      POSTs over judged connections (channel.py), signed by signing.py
outcomes.py       what a receiver's answer means; recording.py writes it down
records.py        what a customer is told of deliveries, redelivery, samples; throttle.py how often
maintenance.py    what is old, and what waits; resealing.py brings secrets under the newest master key
erasing.py        takes an address out of what receivers answered
"""

from largesse.delivery.webhooks.addresses import is_public
from largesse.delivery.webhooks.records import (
    AttemptRecord,
    DeliveryRecord,
    SubscriptionRecord,
    list_deliveries,
    list_subscription_records,
    order_references,
    redeliver,
    redeliver_failed,
    send_sample,
)
from largesse.delivery.webhooks.resolver import Resolver
from largesse.delivery.webhooks.subscriptions import (
    MAX_SUBSCRIPTIONS,
    CreatedSubscription,
    Subscription,
    create_subscription,
    delete_subscription,
    list_subscriptions,
)
from largesse.delivery.webhooks.targets import Target, check_target, parse_target
from largesse.delivery.webhooks.throttle import DeliveryThrottle

__all__ = [
    "MAX_SUBSCRIPTIONS",
    "AttemptRecord",
    "CreatedSubscription",
    "DeliveryRecord",
    "DeliveryThrottle",
    "Resolver",
    "Subscription",
    "SubscriptionRecord",
    "Target",
    "check_target",
    "create_subscription",
    "delete_subscription",
    "is_public",
    "list_deliveries",
    "list_subscription_records",
    "list_subscriptions",
    "order_references",
    "parse_target",
    "redeliver",
    "redeliver_failed",
    "send_sample",
]
