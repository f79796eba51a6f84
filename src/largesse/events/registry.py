"""All types of events, by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from largesse.events.kinds import ORDER_CREATED, EventType

_ALL: tuple[EventType[Any], ...] = (ORDER_CREATED,)

EVENTS: Mapping[str, EventType[Any]] = MappingProxyType({event.name: event for event in _ALL})
