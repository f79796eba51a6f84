"""Logs each refused request on one line, so that a request id can be looked up.

A line names the address by its template and the caller by number. It holds no code, PIN, body or query value. The number of lines is limited
for each customer, for each network of unknown callers, and for all unknown callers together. A metric counts the lines left out.
"""

import structlog
from prometheus_client import Counter

from largesse.base import clock
from largesse.base.throttle import Rate, Throttle, network_of
from largesse.web.kit.asgi import Scope, client_address

ACTS_FOR = "largesse.acts_for"  # key in a request's scope: the principal or person it acts for, once known
PROBLEM = "largesse.problem"  # key in a request's scope: the kind of problem that answers it

_OF_ONE = Rate(120, 60.0)
_OF_ALL_UNKNOWN = Rate(1_200, 60.0)

NOT_LOGGED = Counter(
    "largesse_refusals_not_logged", "Refused requests without a line in the log, because there were too many."
)
_log = structlog.get_logger(__name__)


class RefusalLog:
    """Logs refused requests, within limits."""

    def __init__(self, now_s: clock.Seconds = clock.passed_s) -> None:
        self._now_s = now_s
        self._of_one: Throttle[int | bytes] = Throttle(_OF_ONE, now_s=now_s)
        self._of_all_unknown: Throttle[None] = Throttle(_OF_ALL_UNKNOWN, now_s=now_s)
        self._left_out = 0

    def refused(self, scope: Scope, request_id: bytes, route: str, status: int, began_s: float) -> None:
        """Logs a request that is answered with `status`. `route` is the template of its address."""
        took_s = self._now_s() - began_s
        self._write(
            "request_refused",
            scope,
            request_id,
            route,
            {"status": status, "problem": scope.get(PROBLEM), "duration_ms": round(took_s * 1000, 1)},
        )

    def ignored(self, scope: Scope, request_id: bytes, route: str, names: str) -> None:
        """Logs the names of ignored members or parameters, as in the answer's header."""
        self._write("names_ignored", scope, request_id, route, {"names": names})

    def _write(self, event: str, scope: Scope, request_id: bytes, route: str, details: dict[str, object]) -> None:
        who = scope.get(ACTS_FOR)
        address = client_address(scope)
        if who is None:
            is_limited = self._of_one.take(network_of(address or "")) or self._of_all_unknown.take(None)
        else:
            is_limited = self._of_one.take(getattr(who, "customer_id", 0))
        if is_limited:
            self._left_out += 1
            NOT_LOGGED.inc()
            return
        left_out, self._left_out = self._left_out, 0
        members = {
            "request_id": request_id.decode(),
            "method": scope["method"],
            "route": route,
            **details,
            "customer_id": getattr(who, "customer_id", None),
            "key_id": getattr(who, "key_id", None),
            "user_id": getattr(who, "user_id", None),
            "staff_id": getattr(who, "staff_id", None),
            "address": address,
            "not_logged_before": left_out or None,
        }
        _log.info(event, **{name: value for name, value in members.items() if value is not None})
