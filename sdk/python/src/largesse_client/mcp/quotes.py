"""Stores quoted requests, so that exactly the quoted request is sent."""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

# Longer than a quote is valid, because a send may be repeated later to learn its outcome.
_LONGEST_S = 24 * 3600.0
_MOST = 1_000


@dataclass(frozen=True, slots=True)
class Quoted:
    """A quoted request: how it is sent, its arguments, and the quoted cost."""

    kind: str  # gift, collection or template
    arguments: Mapping[str, Any]
    cost: Decimal
    currency: str
    quote: str

    @property
    def reference(self) -> str:
        """The order's external reference: one for each quote, so that it is placed once however often it is sent."""
        return reference_of(self.quote)


def reference_of(quote: str) -> str:
    """Returns the external reference of the order that a quote places."""
    return "mcp-" + hashlib.sha256(quote.encode()).hexdigest()[:40]


class QuoteStore:
    """The last quoted requests: at most 1,000, and none older than a day."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._quotes: OrderedDict[str, tuple[float, Quoted]] = OrderedDict()

    def add(self, quoted: Quoted) -> None:
        """Stores a request, and drops the oldest beyond the limit."""
        self._quotes[quoted.quote] = (self._clock(), quoted)
        while len(self._quotes) > _MOST:
            self._quotes.popitem(last=False)

    def find(self, quote: str) -> Quoted | None:
        """Returns the request of a quote; None if it is not stored, or too old."""
        at_s, quoted = self._quotes.get(quote, (0.0, None))
        return quoted if quoted is not None and self._clock() - at_s < _LONGEST_S else None
