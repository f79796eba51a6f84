"""What a receiver's answer means: the table of docs/contract.md, Webhooks, as plain rules."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from largesse.delivery.queue.schedule import Schedule

MAX_ATTEMPTS = 12
# Roughly 4 seconds, 16 seconds, a minute, and so on up to 6 hours (docs/contract.md, Webhooks).
SCHEDULE = Schedule(first_s=4.0, factor=4.0, cap_s=6 * 3600.0)


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """What came of one attempt: a status with the start of the body, or an error instead of a status."""

    status: int | None
    error: str | None
    retry_after: str | None
    body: bytes
    duration_s: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of the delivery. The states but `retry` and `gone` are those of the table `deliveries`."""

    outcome: (
        str  # delivered, dropped, exhausted; retry: pending, again in `delay_s`; gone: the subscription ends
    )
    delay_s: float = 0.0

    @property
    def failed(self) -> bool:
        """Whether the receiver is to be treated as failing."""
        return self.outcome in {"retry", "exhausted"}


def judge(result: AttemptResult, *, attempt: int, attempts_left: int, now: datetime) -> Verdict:
    """What becomes of a delivery after an attempt. `attempt` counts from 1 in this round; `attempts_left` includes this one."""
    status = result.status
    if status is not None and 200 <= status < 300:
        return Verdict("delivered")
    if status == 410:
        return Verdict("gone")
    if status is not None and 400 <= status < 500 and status != 429:
        return Verdict("dropped")
    if attempts_left <= 1:
        return Verdict("exhausted")
    asked_s = (
        read_retry_after(result.retry_after, now)
        if status is not None and (status == 429 or status >= 500)
        else 0.0
    )
    return Verdict("retry", SCHEDULE.delay_s(attempt, at_least_s=asked_s))


def read_retry_after(text: str | None, now: datetime) -> float:
    """The seconds a Retry-After header asks to wait (RFC 9110, 10.2.3: seconds or a date); 0 when it says nothing."""
    if text is None:
        return 0.0
    text = text.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return 0.0
    return max((at.replace(tzinfo=at.tzinfo or UTC) - now).total_seconds(), 0.0)
