"""All types of events, by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from largesse.events.accounts import ACCOUNT_LOW
from largesse.events.gifts import GIFT_EVENTS
from largesse.events.kinds import ORDER_CREATED, EventType

_ALL: tuple[EventType[Any], ...] = (ORDER_CREATED, *GIFT_EVENTS, ACCOUNT_LOW)

EVENTS: Mapping[str, EventType[Any]] = MappingProxyType({event.name: event for event in _ALL})
