"""When a request is sent again, and when not any more: only the rules, step by step."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from largesse_client import errors
from largesse_client.answers import Answer
from largesse_client.asking import Asker, RetryPolicy, Send, Wait
from largesse_client.calls import Call, get, post
from largesse_client.models import Identity, Order

ME = b'{"customerId":1,"customerName":"Acme","serviceAccountId":1,"serviceAccountName":"HR","environment":"new"}'
QUESTION = get("/me", Identity)
JSON = {"content-type": "application/json"}


def problem(status: int, slug: str = "unavailable", **headers: str) -> Answer:
    body = f'{{"type":"/problems/{slug}","title":"No","status":{status},"detail":"No.","instance":null}}'
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, {"content-type": "application/problem+json", **named}, body.encode())


def html(status: int) -> Answer:
    return Answer(status, {"content-type": "text/html"}, b"<h1>Bad gateway</h1>")


GOOD = Answer(200, JSON, ME)
HALF = Answer(200, JSON, ME[:40])
NOTHING = errors.NoAnswer("nothing came")
NOBODY = errors.Unreachable("nobody there")


class Talk:
    """A call that gets these answers one after another. The last one repeats."""

    def __init__(self, call: Call[Any], *heard: Any, attempts: int = 8, total_s: float = 60.0) -> None:
        self.now_s = 0.0
        self.waits: list[float] = []
        self.sent: list[Send] = []
        steps = Asker("http://x", RetryPolicy(attempts, total_s), lambda: self.now_s).converse(call)
        told: Any = None
        left = list(heard)
        while True:
            try:
                step = steps.send(told)
            except StopIteration as end:
                self.value = end.value
                return
            except errors.LargesseError as error:
                self.error = error
                return
            if isinstance(step, Wait):
                self.waits.append(step.seconds)
                self.now_s += step.seconds
                told = None
            else:
                self.sent.append(step)
                told = left.pop(0) if len(left) > 1 else left[0]


@pytest.mark.parametrize(
    "first", [NOTHING, NOBODY, HALF, html(502), html(504), *(problem(s) for s in (408, 429, 500, 503))]
)
def test_what_may_pass_is_tried_again(first: Any) -> None:
    talk = Talk(QUESTION, first, first, GOOD)
    assert talk.value.customer_name == "Acme"
    assert talk.value.environment == "new"
    assert len(talk.sent) == 3
    assert len({send.request_id for send in talk.sent}) == 3
    assert 0.05 <= talk.waits[0] <= 0.1 <= talk.waits[1] <= 0.2


@pytest.mark.parametrize("first", [html(200), html(404), *(problem(s) for s in (400, 401, 402, 403, 404, 413))])
def test_what_will_not_is_not(first: Any) -> None:
    talk = Talk(QUESTION, first, GOOD)
    assert len(talk.sent) == 1
    assert isinstance(talk.error, errors.LargesseError)


@pytest.mark.parametrize("first", [NOTHING, NOBODY, HALF, html(502), problem(429), problem(503)])
def test_without_a_reference_nothing_is_repeated_whatever_the_answer(first: Any) -> None:
    talk = Talk(post("/send/gift", Order, {}, is_repeatable=False), first, GOOD)
    assert len(talk.sent) == 1
    assert talk.waits == []


def test_attempts_are_counted() -> None:
    talk = Talk(QUESTION, problem(503), attempts=4)
    assert isinstance(talk.error, errors.Unavailable)
    assert len(talk.sent) == 4
    assert talk.error.__notes__ == ["It was tried 4 times."]
    assert len(Talk(QUESTION, NOTHING, attempts=1).sent) == 1


def test_waits_grow_and_are_bounded() -> None:
    talk = Talk(QUESTION, NOTHING, attempts=20, total_s=1000)
    assert all(wait_s <= 8 for wait_s in talk.waits)
    assert talk.waits[-1] >= 4
    assert len(talk.waits) == 19


def test_retry_after_is_kept_to() -> None:
    talk = Talk(QUESTION, problem(429, "too-many-requests", retry_after="7"), GOOD)
    assert talk.waits == [7.0]
    at = format_datetime(datetime.now(UTC) + timedelta(seconds=20), usegmt=True)
    (wait_s,) = Talk(QUESTION, problem(503, retry_after=at), GOOD).waits
    assert 10 < wait_s <= 20


@pytest.mark.parametrize("after", ["61", "9" * 70, "Fri, 01 Jan 2100 00:00:00 GMT"])
def test_a_retry_after_beyond_patience_ends_it_at_once(after: str) -> None:
    talk = Talk(QUESTION, problem(429, "too-many-requests", retry_after=after), GOOD)
    assert isinstance(talk.error, errors.TooManyRequests)
    assert talk.waits == []
    assert talk.error.retry_after_s > 60


@pytest.mark.parametrize(
    "after", ["", "soon", "-5", "1.5", "\u0663", "Fri, 99 Jan 2100", f"Mon, 30 Nov {10**19} 09:00:00 GMT"]
)
def test_a_retry_after_that_is_none(after: str) -> None:
    (wait_s,) = Talk(QUESTION, problem(503, retry_after=after), GOOD).waits
    assert wait_s <= 0.1


def test_time_is_counted_too() -> None:
    talk = Talk(QUESTION, problem(503, retry_after="9"), attempts=100, total_s=30)
    assert talk.waits == [9.0] * 3
    assert isinstance(talk.error, errors.Unavailable)


def test_nobody_there_after_an_attempt_that_may_have_arrived_is_unclear() -> None:
    assert type(Talk(QUESTION, NOTHING, NOBODY, attempts=3).error) is errors.NoAnswer
    assert type(Talk(QUESTION, NOBODY, attempts=3).error) is errors.Unreachable


@pytest.mark.parametrize(
    ("first", "is_done"), [(NOTHING, True), (problem(500, "internal-error"), True), (NOBODY, False)]
)
def test_gone_after_an_attempt_that_may_have_arrived_is_done(first: Any, is_done: bool) -> None:
    call = Call("DELETE", "/webhooks/1", lambda _: None, ends=True)
    talk = Talk(call, first, problem(404, "not-found"))
    assert hasattr(talk, "value") is is_done
    assert isinstance(Talk(call, problem(404, "not-found")).error, errors.NotFound)


def test_a_proxy_says_when_to_ask_again() -> None:
    busy = Answer(503, {"content-type": "text/html", "retry-after": "7"}, b"busy")
    talk = Talk(QUESTION, busy, GOOD)
    assert talk.waits == [7.0]
    assert talk.value.customer_name == "Acme"
