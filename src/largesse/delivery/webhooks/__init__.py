"""Webhooks: subscriptions, the targets they may name, and the delivery of events to them."""

from largesse.delivery.webhooks.addresses import is_public
from largesse.delivery.webhooks.limits import DeliveryLimits
from largesse.delivery.webhooks.records import (
    AttemptRecord,
    DeliveryRecord,
    list_deliveries,
    redeliver,
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

__all__ = [
    "MAX_SUBSCRIPTIONS",
    "AttemptRecord",
    "CreatedSubscription",
    "DeliveryLimits",
    "DeliveryRecord",
    "Resolver",
    "Subscription",
    "Target",
    "check_target",
    "create_subscription",
    "delete_subscription",
    "is_public",
    "list_deliveries",
    "list_subscriptions",
    "parse_target",
    "redeliver",
    "send_sample",
]
