"""Operations of the test lab."""

from __future__ import annotations

import secrets
from typing import Any

import msgspec

from largesse.base.errors import InvalidRequest
from largesse.customers.actor import Actor
from largesse.customers.roles import Right
from largesse.db.statements import read_now
from largesse.events.kinds import Sampled
from largesse.events.registry import EVENTS
from largesse.events.store import record_event
from largesse.webhooks.service import DeliveryThrottle


class TriggeredEvent(msgspec.Struct, frozen=True):
    """An event that was made to happen, with its payload."""

    event: str
    data: Any


async def trigger_event(actor: Actor, throttle: DeliveryThrottle, event: str) -> TriggeredEvent:
    """Records a sample as an event: subscribers and readers of the stream get it as they do a real one.

    Raises InvalidRequest for an unknown event, and TooManyRequests.
    """
    if event not in EVENTS:
        raise InvalidRequest(f"`event` must be one of: {', '.join(EVENTS)}.")
    kind, principal = EVENTS[event], actor.principal
    throttle.count_redelivery(actor.customer_id)
    async with actor.transaction(Right.SETTINGS) as transaction:
        connection = transaction.connection
        at = await read_now(connection)
        payload = kind.sample(Sampled(principal.customer_id, principal.service_account_id, at))
        if isinstance(payload.id, str):  # the one of `order.created` is a number and stays 0
            payload = msgspec.structs.replace(payload, id=f"evt_{secrets.token_hex(12)}")
        await record_event(
            connection,
            kind,
            payload,
            order_id=None,
            customer_id=principal.customer_id,
            environment=principal.environment,
            at=at,
        )
    return TriggeredEvent(event, payload)
