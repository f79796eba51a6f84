"""The rules of a call: what to send, when to send it again, and when to give up.

They are one generator that neither sends nor waits itself. It yields the next step, `Send` or `Wait`, and receives the result: an `Answer`,
or `NoAnswer` if there was none. Two drivers carry out the steps, one that blocks and one that awaits (`largesse_client.driving`), so that
both clients do the same.

A request is sent again only if that does no harm (`Call.is_repeatable`): after no answer or half an answer, and after a status of a failure
that may pass. Waits double, and are drawn at random from their upper half. A `Retry-After` is followed.
"""

from __future__ import annotations

import logging
import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from largesse_client.answers import Answer, is_cut_short, read_answer
from largesse_client.calls import Call, Steps
from largesse_client.errors import (
    LargesseError,
    NoAnswer,
    NotFound,
    Problem,
    ReferenceUsed,
    Unreachable,
    UnreadableAnswer,
)

T = TypeVar("T")

_log = logging.getLogger("largesse_client")

_FIRST_WAIT_S = 0.1
_LONGEST_WAIT_S = 8.0
# Failures that may pass: the request was too slow, there were too many, the service failed, or a proxy could not reach it.
_PASSING = frozenset({408, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Send:
    """A step: send this request with this request id."""

    call: Call[Any]
    request_id: str


@dataclass(frozen=True, slots=True)
class Wait:
    """A step: wait."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Ignored:
    """Names of members or parameters that the service does not know and ignored: it may be older than this client."""

    method: str
    path: str
    names: tuple[str, ...]
    request_id: str | None


OnIgnored = Callable[[Ignored], object]


def log_ignored(ignored: Ignored) -> None:
    """Logs a warning."""
    _log.warning(
        "The service ignored %s of %s %s (request id %s). It may be older than this client.",
        ", ".join(ignored.names),
        ignored.method,
        ignored.path,
        ignored.request_id,
    )


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The most attempts of a request, and the time after the first one within which the last one must begin."""

    attempts: int
    total_s: float


class Asker:
    """Calls one service, with retries by its policy."""

    def __init__(
        self,
        base_url: str,
        policy: RetryPolicy,
        clock: Callable[[], float] = time.monotonic,
        on_ignored: OnIgnored = log_ignored,
    ) -> None:
        self._base_url = base_url
        self._policy = policy
        self._clock = clock
        self._on_ignored = on_ignored

    def converse(self, call: Call[T]) -> Steps[T]:
        """Yields the steps of a call, and returns the value of its answer. Raises LargesseError."""
        try:
            return (yield from self._ask(call))
        except ReferenceUsed as used:
            if call.recover is None:
                raise
            return (yield from call.recover(used, self._ask))

    def _ask(self, call: Call[T]) -> Steps[T]:
        began_s, attempt, is_unclear = self._clock(), 0, False
        while True:
            attempt += 1
            send = Send(call, os.urandom(8).hex())
            heard: Answer | NoAnswer = yield send
            try:
                return self._read(call, send, heard)
            except NotFound:
                if call.ends and is_unclear:
                    return cast("T", None)
                raise
            except LargesseError as error:
                wait_s = self._wait_s(call, error, attempt, self._clock() - began_s)
                if wait_s is None:
                    raise _told_after(call, error, attempt, is_unclear) from error.__cause__
                is_unclear |= not isinstance(error, Unreachable)
            yield Wait(wait_s)

    def _read(self, call: Call[T], send: Send, heard: Answer | NoAnswer) -> T:
        if isinstance(heard, NoAnswer):
            heard.request_id = send.request_id
            raise heard
        if names := heard.headers.get("x-ignored"):
            path, request_id = call.path.partition("?")[0], heard.headers.get("x-request-id")
            self._on_ignored(Ignored(call.method, path, tuple(map(str.strip, names.split(","))), request_id))
        return read_answer(call, heard, self._base_url)

    def _wait_s(self, call: Call[Any], error: LargesseError, attempt: int, passed_s: float) -> float | None:
        """Returns how long to wait before the next attempt; None if there is none."""
        if not call.is_repeatable or not _may_pass(error) or attempt >= self._policy.attempts:
            return None
        longest_s = min(_FIRST_WAIT_S * 2 ** (attempt - 1), _LONGEST_WAIT_S)
        wait_s = random.uniform(longest_s / 2, longest_s)  # noqa: S311 - no secret
        if isinstance(error, Problem | UnreadableAnswer) and error.retry_after_s is not None:
            wait_s = max(wait_s, error.retry_after_s)
        return wait_s if passed_s + wait_s <= self._policy.total_s else None


def _may_pass(error: LargesseError) -> bool:
    """Returns whether the same request may get another answer later."""
    if isinstance(error, Problem | UnreadableAnswer) and error.status in _PASSING:
        return True
    return isinstance(error, NoAnswer) or is_cut_short(error)


def _told_after(call: Call[Any], error: LargesseError, attempt: int, is_unclear: bool) -> LargesseError:
    """Returns the error of the last attempt, as callers see it.

    If an earlier attempt may have been carried out, Unreachable becomes NoAnswer: the last attempt did not arrive, but an earlier one may have.
    """
    if isinstance(error, Unreachable) and is_unclear:
        unclear = NoAnswer(*error.args)
        unclear.request_id = error.request_id
        error = unclear
    if isinstance(error, NoAnswer) and not isinstance(error, Unreachable) and call.method != "GET":
        error.add_note("It may have been carried out.")
    if attempt > 1:
        error.add_note(f"It was tried {attempt} times.")
    return error
