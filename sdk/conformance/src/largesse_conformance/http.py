"""Requests to the service: counted, limited, and read with exact numbers."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import httpx

from largesse_conformance.outcome import Failed, LimitReached

_TIMEOUT_S = 30.0
_LONGEST_WAIT_S = 30.0
_EXCERPT = 400


@dataclass(frozen=True)
class Answer:
    """A response: its status, headers and body, and the request it belongs to."""

    request: str
    status: int
    headers: httpx.Headers
    text: str

    def body(self) -> Any:
        """Returns the JSON of the body, with Decimal for numbers with a point. Raises Failed if it is not JSON."""
        try:
            return json.loads(self.text, parse_float=Decimal, parse_constant=_refuse_constant)
        except ValueError as error:
            raise Failed(f"{self.request} returned {self.status} with a body that is not JSON: {error}.") from error

    def described(self) -> str:
        """Returns the request and the status, and for an error the start of its body. Only successes contain codes and secrets."""
        shown = f": {self.text[:_EXCERPT]}" if self.status >= 400 else ""
        return f"{self.request} returned {self.status}{shown}"


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


class Service:
    """The service under test. Raises LimitReached when the run's requests or time are used up."""

    def __init__(self, url: str, max_requests: int, time_limit_s: float) -> None:
        self.url = url
        self.requests = 0
        self._max_requests = max_requests
        self._ends_at_s = time.monotonic() + time_limit_s
        self._client = httpx.Client(base_url=url, timeout=_TIMEOUT_S, follow_redirects=False)

    def close(self) -> None:
        """Closes all connections."""
        self._client.close()

    @property
    def left_s(self) -> float:
        """Returns how many seconds are left of the run's time."""
        return max(0.0, self._ends_at_s - time.monotonic())

    def allow_more(self, requests: int, seconds: float) -> None:
        """Raises the limits, so that the run can tidy up in any case."""
        self._max_requests = max(self._max_requests, self.requests + requests)
        self._ends_at_s = max(self._ends_at_s, time.monotonic() + seconds)

    def ask(self, method: str, path: str, **options: Any) -> Answer:
        """Sends one request and returns the answer. Waits and repeats it once after a 429. Raises Failed and LimitReached."""
        answer = self._ask(method, path, options)
        if answer.status == 429:
            time.sleep(min(float(answer.headers.get("Retry-After", "1")), _LONGEST_WAIT_S, self.left_s))
            answer = self._ask(method, path, options)
        return answer

    def _ask(self, method: str, path: str, options: dict[str, Any]) -> Answer:
        if self.requests >= self._max_requests:
            raise LimitReached(f"the {self._max_requests} requests of this run are used up (--max-requests)")
        if not self.left_s:
            raise LimitReached("the time of this run is used up (--time-limit)")
        self.requests += 1
        request = self._client.build_request(method, path, **options)
        shown = f"{method} {request.url.raw_path.decode()}"
        try:
            response = self._client.send(request)
        except httpx.HTTPError as error:
            raise Failed(f"{shown} got no answer: {type(error).__name__}.") from error
        return Answer(shown, response.status_code, response.headers, response.text)


@dataclass(frozen=True)
class Caller:
    """Sends requests with certain headers, such as the header with a key."""

    service: Service
    headers: tuple[tuple[str, str], ...] = ()

    def get(self, path: str, **parameters: Any) -> Answer:
        """GETs a path with query parameters."""
        return self.service.ask("GET", path, headers=list(self.headers), params=parameters or None)

    def post(self, path: str, body: Any = None) -> Answer:
        """POSTs a JSON body; without a body if it is None."""
        content = None if body is None else json.dumps(body, default=_encode)
        return self.post_raw(path, content)

    def post_raw(self, path: str, content: str | bytes | None) -> Answer:
        """POSTs these bytes as JSON, even if they are not JSON."""
        headers = [*self.headers, ("Content-Type", "application/json")]
        return self.service.ask("POST", path, headers=headers, content=content)

    def delete(self, path: str) -> Answer:
        """DELETEs a path."""
        return self.service.ask("DELETE", path, headers=list(self.headers))


def bearer(service: Service, key: str) -> Caller:
    """Returns a caller that sends a key in the Authorization header."""
    return Caller(service, (("Authorization", f"Bearer {key}"),))


def _encode(value: Any) -> Any:
    """Encodes an exact amount as a JSON number; its shortest form is exact for amounts of money."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    raise TypeError(f"{type(value).__name__} is not JSON")
