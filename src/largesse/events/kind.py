"""What makes a type of event."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, NamedTuple, TypeVar

import msgspec

Payload = TypeVar("Payload", bound=msgspec.Struct)

_NAME = re.compile(r"[a-z]+(?:\.[a-z]+(?:_[a-z]+)*)+")
_encode = msgspec.json.Encoder().encode


class Sampled(NamedTuple):
    """For whom and when a sample is made."""

    customer_id: int
    service_account_id: int | None
    at: datetime


@dataclass(frozen=True, slots=True)
class EventType(Generic[Payload]):
    """A type of event. Its payload is a struct with an `event` member, which holds the name.

    `sample` makes a payload that nothing in the database stands behind. Raises ValueError for a name of another form than
    `thing.happened`, and for a payload that does not tell its event.
    """

    name: str
    summary: str  # what happened: "An order was placed"
    description: str  # for receivers: how often it comes, what tells duplicates apart
    payload: type[Payload]
    sample: Callable[[Sampled], Payload]

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"an event is called thing.happened, not {self.name!r}")
        if "event" not in self.payload.__struct_fields__:
            raise ValueError(f"{self.payload.__name__} lacks the member `event`")

    @property
    def operation_id(self) -> str:
        """The name as documents spell it: `orderCreated`."""
        first, *more = re.split(r"[._]", self.name)
        return first + "".join(word.capitalize() for word in more)

    @property
    def shape(self) -> str:
        """The payload's name in documents."""
        return self.payload.__name__

    def body(self, payload: Payload) -> bytes:
        """A payload as receivers get it, and as the signature covers it: JSON."""
        return _encode(payload)

    def sample_body(self, sampled: Sampled) -> bytes:
        """The body of a sample."""
        return self.body(self.sample(sampled))
