"""Wrong API keys, counted by the network address they come from.

Nobody guesses 256 bits. But who tries must not cost the database a look-up each time, and must be seen. Only wrong keys
are ever refused for it: behind one address an office shares, right ones go on working.
"""

from __future__ import annotations

from collections.abc import Callable

import structlog
from prometheus_client import Counter

from largesse.base import clock
from largesse.base.errors import TooManyRequests
from largesse.base.throttle import Rate, Throttle, network_of

# Wrong keys from one address (an IPv4 address, or the /64 of an IPv6 one), all of them at once or one after another.
WRONG_KEYS_A_MINUTE = 200
MOST_WRONG = Rate(WRONG_KEYS_A_MINUTE, 60.0)
_LINES_OF_AN_ADDRESS = Rate(1, 60.0)
_LINES = Rate(10, 60.0)

_FAILED = Counter("largesse_failed_authentications", "Requests with a wrong API key, by why.", ["reason"])
MALFORMED = _FAILED.labels("malformed")
UNKNOWN = _FAILED.labels("unknown")
_LIMITED = _FAILED.labels("limited")

_log = structlog.get_logger(__name__)


class WrongKeys:
    """How many wrong keys each address may still send."""

    def __init__(self, rate: Rate = MOST_WRONG, *, now_s: Callable[[], float] = clock.passed_s) -> None:
        self._most = rate.most
        self._left: Throttle[bytes] = Throttle(rate, now_s=now_s)
        self._lines_of: Throttle[bytes] = Throttle(_LINES_OF_AN_ADDRESS, now_s=now_s)
        self._lines: Throttle[None] = Throttle(_LINES, now_s=now_s)

    def are_too_many(self, address: str | None) -> bool:
        """Whether the next wrong key from there is one too many."""
        return bool(self._left) and self._left.wait_s(network_of(address or "")) > 0

    def count(self, address: str | None) -> None:
        """Counts one from there. Raises TooManyRequests when it is one too many, which is logged now and then."""
        network = network_of(address or "")
        wait_s = self._left.take(network)
        if not wait_s:
            return
        _LIMITED.inc()
        if not self._lines_of.take(network) and not self._lines.take(None):
            _log.warning("wrong_keys_limited", address=address, a_minute=self._most)
        raise TooManyRequests(
            f"The API key is not known here, and {self._most:g} wrong ones came from this address within a minute.",
            retry_after_s=wait_s,
        )
