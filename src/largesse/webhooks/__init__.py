"""Webhooks: subscriptions, the targets they may name, and the delivery of events to them."""

from largesse.webhooks.addresses import is_public
from largesse.webhooks.limits import DeliveryLimits
from largesse.webhooks.records import AttemptRecord, DeliveryRecord, list_deliveries, redeliver, send_sample
from largesse.webhooks.resolver import Resolver
from largesse.webhooks.subscriptions import (
    EVENTS,
    MAX_SUBSCRIPTIONS,
    CreatedSubscription,
    Subscription,
    create_subscription,
    delete_subscription,
    list_subscriptions,
)
from largesse.webhooks.targets import Target, check_target, parse_target

__all__ = [
    "EVENTS",
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
