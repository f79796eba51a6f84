"""How errors are told over HTTP: each class in one table, of which rooms know nothing, and names as callers spell them."""

from collections.abc import Iterator

import asyncpg
import msgspec
import pytest

from largesse.base import errors
from largesse.base.decoding import Unreadable
from largesse.web.kit import problems


def subclasses(of: type[errors.Problem]) -> Iterator[type[errors.Problem]]:
    for one in of.__subclasses__():
        yield one
        yield from subclasses(one)


def test_every_error_has_one_line_in_the_table() -> None:
    told = [problem.raised for problem in problems.PROBLEMS]
    assert len(told) == len(set(told)) == len({problem.slug for problem in problems.PROBLEMS})
    ours = {one for one in subclasses(errors.Problem) if one.__module__.startswith("largesse.")}
    assert {problems.problem_type(one).raised for one in ours} == set(told)


def test_the_table_is_in_order() -> None:
    order = [(problem.status, problem.slug) for problem in problems.PROBLEMS]
    assert order == sorted(order)


def test_errors_of_rooms_know_no_http() -> None:
    for one in vars(errors).values():
        if isinstance(one, type) and issubclass(one, errors.Problem):
            assert not {"status", "title", "headers", "explanation"} & set(dir(one)), one


def test_a_case_of_another_is_told_as_that_one() -> None:
    assert problems.problem_type(Unreadable).raised is errors.InvalidRequest


@pytest.mark.parametrize(
    ("error", "status", "headers"),
    [
        (errors.NotFound("x"), 404, {}),
        (errors.Unauthorized("x"), 401, {"www-authenticate": 'Bearer realm="Largesse"'}),
        (problems.MethodNotAllowed("PUT", ["POST", "GET"]), 405, {"allow": "GET, HEAD, POST"}),
        (problems.SlowRequest("x"), 408, {"connection": "close"}),
        (errors.TooManyRequests("x", retry_after_s=0.01), 429, {"retry-after": "1"}),
        (errors.TooManyRequests("x", retry_after_s=59.1), 429, {"retry-after": "60"}),
        (errors.Unavailable("x"), 503, {"retry-after": "1"}),
        (errors.Unavailable("x", retry_after_s=3600), 503, {"retry-after": "3600"}),
    ],
)
def test_status_and_headers(error: errors.Problem, status: int, headers: dict[str, str]) -> None:
    reply = problems.problem_reply(error)
    assert (reply.status, dict(reply.headers)) == (status, headers)
    assert reply.media_type == "application/problem+json"
    assert msgspec.json.decode(reply.body)["status"] == status


def test_members_of_the_body() -> None:
    wrong = errors.FieldError("#/recipients/0/email", "no address")
    body = msgspec.json.decode(problems.problem_reply(errors.InvalidRequest("x", errors=[wrong])).body)
    assert body == {
        "type": "/problems/invalid-request",
        "title": "The request is not valid",
        "status": 400,
        "detail": "x",
        "instance": None,
        "errors": [{"pointer": "#/recipients/0/email", "detail": "no address"}],
    }


def test_a_used_reference_leads_to_its_order() -> None:
    body = msgspec.json.decode(problems.problem_reply(errors.ReferenceUsed("x", holder="0WBQK7M2PXR4D9VA1C3E")).body)
    assert body["instance"] == "/orders/0WBQK7M2PXR4D9VA1C3E"
    assert "errors" not in body


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("`account_id` is required.", "`accountId` is required."),
        (
            "One of `recipients` and `code_quantity` must be given.",
            "One of `recipients` and `codeQuantity` must be given.",
        ),
        ("`line_items[1].name` must not contain a tab.", "`lineItems[1].name` must not contain a tab."),
        ("`contacts[1].external_id`: Another has this id.", "`contacts[1].externalId`: Another has this id."),
        ("`productId` must be an integer.", "`productId` must be an integer."),
        ("The service account 'hr_bot' is not active.", "The service account 'hr_bot' is not active."),
        ("`event` must be one of: line.claimed_late.", "`event` must be one of: line.claimed_late."),
        ("`a_b c_d`", "`a_b c_d`"),
    ],
)
def test_names_in_backticks_are_spelled(written: str, told: str) -> None:
    assert problems.spell_detail(written) == told


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("#/recipients/1/email", "#/recipients/1/email"),
        ("#/external_reference", "#/externalReference"),
        ("#/line_items/2/first_name", "#/lineItems/2/firstName"),
    ],
)
def test_pointers_are_spelled(written: str, told: str) -> None:
    assert problems.spell_pointer(written) == told


@pytest.mark.parametrize("error", [asyncpg.DeadlockDetectedError(), asyncpg.LockNotAvailableError()])
def test_a_request_in_the_way_of_another_may_be_tried_again(error: Exception) -> None:
    problem = problems.problem_of(error, {})
    assert problems.problem_reply(problem).status == 503
    assert "Nothing was written: try again." in problem.detail
