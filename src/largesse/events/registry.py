"""All types of events, by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from largesse.events.kind import EventType
from largesse.events.order_created import ORDER_CREATED

_ALL: tuple[EventType[Any], ...] = (ORDER_CREATED,)

EVENTS: Mapping[str, EventType[Any]] = MappingProxyType({event.name: event for event in _ALL})
