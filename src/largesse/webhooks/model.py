"""The events that a subscription names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from largesse.base.errors import InvalidRequest
from largesse.events.kinds import EVENTS


class Selection(NamedTuple):
    """The events that a subscription names: one in `event`, or several in `events`."""

    event: str | None
    events: Sequence[str] | None

    @property
    def names(self) -> Sequence[str]:
        """Returns all of them."""
        return self.events or [self.event or ""]


def select_events(events: str | Sequence[str]) -> Selection:
    """Returns what a subscription stores for one or several events. Raises InvalidRequest for no event, an unknown one or a repeated one."""
    if isinstance(events, str):
        if events not in EVENTS:
            raise InvalidRequest(f"`event` must be one of: {', '.join(EVENTS)}.")
        return Selection(events, None)
    if not events:
        raise InvalidRequest("`events` must name at least one event.")
    for at, event in enumerate(events):
        if event not in EVENTS:
            raise InvalidRequest(f"`events[{at}]` must be one of: {', '.join(EVENTS)}.")
        if event in events[:at]:
            raise InvalidRequest(f"`events[{at}]` is named twice.")
    return Selection(None, events)
