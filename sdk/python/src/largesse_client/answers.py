"""Reads answers: returns the value of a good one, and raises the error for any other."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

import msgspec

from largesse_client.calls import Call
from largesse_client.errors import PROBLEMS, FieldError, LargesseError, Problem, ReferenceUsed, UnreadableAnswer

T = TypeVar("T")

_JSON = frozenset({"application/json", "application/problem+json"})
_ORDER = re.compile(r"/orders/([0-9A-Za-z]{1,64})")
_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole HTTP response. The names of headers are looked up in any letter case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class _ProblemBody(msgspec.Struct):
    """The JSON of a problem. All members except `type` may be missing."""

    type: str
    title: str | None = None
    detail: str | None = None
    instance: str | None = None
    errors: tuple[FieldError, ...] = ()


_read_problem = msgspec.json.Decoder(_ProblemBody).decode


def read_answer(call: Call[T], answer: Answer, base_url: str) -> T:
    """Returns the value of a good answer. Raises Problem or UnreadableAnswer for any other."""
    if 200 <= answer.status < 300 or answer.status in call.also:
        if answer.status == 204 or _media_type(answer) == "application/json":
            try:
                return call.read(answer.body)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise _unreadable(call, answer, f"it cannot be understood: {error}") from error
        raise _unreadable(call, answer, _is_wrong(answer, base_url))
    raise _problem(answer) or _unreadable(call, answer, _is_wrong(answer, base_url))


def is_cut_short(error: LargesseError) -> bool:
    """Returns whether a good answer's JSON cannot be read, for example because half of it is missing."""
    return isinstance(error, UnreadableAnswer) and isinstance(error.__cause__, msgspec.DecodeError)


def _problem(answer: Answer) -> Problem | None:
    """Returns the problem that an answer describes; None if Largesse did not write it."""
    if _media_type(answer) != "application/problem+json":
        return None
    try:
        body = _read_problem(answer.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    slug = body.type.rpartition("/problems/")[2]
    problem = PROBLEMS.get(slug, Problem)(f"{body.detail or body.title or body.type} [{answer.status} {slug}]")
    problem.status, problem.type = answer.status, body.type
    problem.title, problem.detail, problem.instance = body.title, body.detail, body.instance
    problem.errors = body.errors
    problem.request_id = answer.headers.get("x-request-id")
    problem.retry_after_s = _retry_after_s(answer)
    if isinstance(problem, ReferenceUsed) and (found := _ORDER.fullmatch(body.instance or "")):
        problem.order_reference = found[1]
    return problem


def _unreadable(call: Call[Any], answer: Answer, why: str) -> UnreadableAnswer:
    what = _media_type(answer) or "no content type"
    error = UnreadableAnswer(
        f"{call.method} {call.path.partition('?')[0]} was answered {answer.status} with {what}, {len(answer.body)} bytes: {why}"
    )
    error.status = answer.status
    error.request_id = answer.headers.get("x-request-id")
    error.retry_after_s = _retry_after_s(answer)
    return error


def _is_wrong(answer: Answer, base_url: str) -> str:
    location = answer.headers.get("location", "")[:_SHOWN]
    what = f"a redirect to {location}" if location else "no answer of Largesse"
    return f"that is {what}. Is `base_url` right? It is {base_url}"


def _media_type(answer: Answer) -> str:
    return answer.headers.get("content-type", "").partition(";")[0].strip().lower()[:_SHOWN]


def _retry_after_s(answer: Answer) -> float | None:
    """Returns the seconds of a Retry-After header, which may be written as a date; None if it cannot be read."""
    text = answer.headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:_SHOWN])
    try:
        return max(0.0, (parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds())
    except (TypeError, ValueError, OverflowError):  # no date, a date without a zone, or a year with 20 digits
        return None
