"""Errors over HTTP: one table with the status, title and explanation of each `Problem` that rooms raise (RFC 9457).

Rooms raise `largesse.base.errors.Problem`s and know nothing of HTTP. `web` and `largesse.connections` raise the errors of HTTP itself:

    Problem
    ├── MethodNotAllowed    405
    ├── SlowRequest         408
    ├── TooLarge            413
    ├── UnsupportedBody     415
    ├── Misdirected         421
    ├── HeadersTooLarge     431
    └── InternalError       500

A new kind of error is a class there or here, a row of `PROBLEMS` and its explanation. Programs get a problem body; pages for people show the same
`Problem` in their own words (`largesse.web.kit.pages`).
"""

import math
import re
from collections.abc import Collection, Mapping

import msgspec
import structlog
from starlette.exceptions import HTTPException

from largesse.base import errors
from largesse.base.errors import FieldError, NotFound, Problem
from largesse.base.timeouts import TimedOut
from largesse.db.pool import DATABASE_AWAY, LOCKED, OUT_OF_RESOURCES, CommitLost
from largesse.web.kit.asgi import Reply, Scope, encode_json


class MethodNotAllowed(Problem, slug="method-not-allowed"):
    """The address has other methods. `allow` lists them for the `Allow` header, with HEAD, which is answered as GET is (RFC 9110, 9.3.2)."""

    def __init__(self, method: str, others: Collection[str]) -> None:
        has = sorted({*others} - {"HEAD"})
        super().__init__(
            f"{method} is not allowed here. Use {' or '.join(filter(None, (', '.join(has[:-1]), has[-1])))}."
        )
        self.allow = ", ".join(sorted({*has, "HEAD"} if "GET" in has else has))


class SlowRequest(Problem, slug="slow-request"):
    """A request took too long to arrive."""


class TooLarge(Problem, slug="too-large"):
    """A body has more bytes than the limit."""


class UnsupportedBody(Problem, slug="unsupported-body"):
    """The headers declare a body that is not JSON."""


class Misdirected(Problem, slug="misdirected"):
    """A request used a host name that is not ours."""


class HeadersTooLarge(Problem, slug="headers-too-large"):
    """The headers have more bytes than the limit."""


class InternalError(Problem, slug="internal-error"):
    """A bug, which the log describes."""


class ProblemType(msgspec.Struct, frozen=True):
    """The status, title and explanation of all errors of a class. The documentation has a page for each."""

    raised: type[Problem]
    status: int
    title: str
    explanation: str

    @property
    def name(self) -> str:
        """The name of the class, which also names components of the OpenAPI document."""
        return self.raised.__name__

    @property
    def slug(self) -> str:
        """The last part of its `type` address, by which programs recognise it."""
        return self.raised.slug


_EXPLANATIONS: Mapping[type[Problem], str] = {
    errors.InvalidRequest: "A member of the body or a parameter breaks a rule; the detail names it and the limit.",
    errors.Unauthorized: "Send an API key as `Authorization: Bearer …` or `X-Api-Key: …`. "
    "A key works in one environment only, and a deleted key in none.",
    errors.InsufficientBalance: "Nothing was placed and no codes were issued. Top the account up or send less.",
    errors.PlanRequired: "The API is available on the Pro plan and above.",
    errors.BudgetExceeded: "The detail names the budget and what is left of it, or the most that a gift may cost. Nothing was placed or charged. "
    "An administrator of the customer sets budgets; cancelled gifts give back what they cost.",
    errors.DailyLimit: "The service account may order only so much in a day (UTC). The detail gives the limit and what it has ordered. Nothing was "
    "placed or charged. The operator of this service sets the limit.",
    errors.Inactive: "The key is valid, but the service account it acts as has been switched off.",
    errors.NetworkNotAllowed: "The key may be used from certain networks only, and the request came from another address.",
    errors.OrderLimit: "The service account may order only so much at once. The detail gives the limit. Nothing was placed or charged. The operator "
    "of this service sets the limit.",
    errors.OtherServiceAccount: "Only a key of the service account that placed an order can read its codes again, cancel it or mail it again.",
    errors.ScopeRequired: "A key may be limited to some scopes, such as `read` or `send`. The detail names the scope that it lacks.",
    NotFound: "Nothing here is available to this key under that address.",
    MethodNotAllowed: "The address exists, but not with this method; `Allow` lists those it has.",
    SlowRequest: "The head of a request must arrive whole within 10 seconds, its body within 30 and without a pause of 10. "
    "The connection is closed.",
    errors.QuoteChanged: "The request or its price is no longer what the `quote` was given for. Nothing was placed: ask for a new quote.",
    errors.QuoteExpired: "A quote is valid until its `expiresAt`. Nothing was placed: ask for a new one.",
    errors.ReferenceUsed: "An order of this customer has that `externalReference`; `instance` is its address. Nothing was placed again.",
    errors.StateConflict: "It was done before, or comes too early or too late; the detail says which. Nothing was changed.",
    TooLarge: "A request body may have at most 4 MiB.",
    UnsupportedBody: "Send `Content-Type: application/json`, UTF-8, without a content encoding.",
    Misdirected: "The captured mailbox is for the user of the machine it runs on. It answers to that machine's names alone, so that "
    "no web page elsewhere can read it under a name of its own.",
    errors.TooManyRequests: "Wait for the seconds in `Retry-After` and try again.",
    HeadersTooLarge: "The headers of a request may have at most 32 KiB in all.",
    InternalError: "The failure was logged under the request id in `X-Request-Id`.",
    errors.Unavailable: "Try again after the seconds in `Retry-After`. With an `externalReference` a repeated order is never placed twice.",
}
# By status, then by slug.
PROBLEMS = tuple(
    ProblemType(raised, status, title, _EXPLANATIONS[raised])
    for status, raised, title in (
        (400, errors.InvalidRequest, "The request is not valid"),
        (401, errors.Unauthorized, "No valid API key"),
        (402, errors.InsufficientBalance, "The funding account cannot cover the order"),
        (402, errors.PlanRequired, "The plan does not include API access"),
        (403, errors.BudgetExceeded, "The order exceeds a budget"),
        (403, errors.DailyLimit, "The service account has ordered too much today"),
        (403, errors.Inactive, "The service account is not active"),
        (403, errors.NetworkNotAllowed, "The API key may not be used from there"),
        (403, errors.OrderLimit, "The order is larger than the service account may place"),
        (403, errors.OtherServiceAccount, "Another service account placed the order"),
        (403, errors.ScopeRequired, "The API key may not be used for that"),
        (404, NotFound, "Not found"),
        (405, MethodNotAllowed, "Method not allowed"),
        (408, SlowRequest, "The request took too long to arrive"),
        (409, errors.QuoteChanged, "The order is not what was quoted"),
        (409, errors.QuoteExpired, "The quote has expired"),
        (409, errors.ReferenceUsed, "The external reference is already used"),
        (409, errors.StateConflict, "It cannot be done as things stand"),
        (413, TooLarge, "The request body is too large"),
        (415, UnsupportedBody, "The request body must be JSON"),
        (421, Misdirected, "This service does not answer to that host name"),
        (429, errors.TooManyRequests, "Too many requests"),
        (431, HeadersTooLarge, "The request headers are too large"),
        (500, InternalError, "Something went wrong on our side"),
        (503, errors.Unavailable, "The service cannot answer just now"),
    )
)
_BY_CLASS = {one.raised: one for one in PROBLEMS}


def problem_type(raised: type[Problem]) -> ProblemType:
    """Returns the type of a class of errors; a subclass without one has the type of its base."""
    return next(_BY_CLASS[one] for one in raised.__mro__ if one in _BY_CLASS)


def instance_of(problem: Problem) -> str | None:
    """Returns the address of the resource that the error is about; None without one."""
    return f"/orders/{problem.holder}" if isinstance(problem, errors.ReferenceUsed) else None


def headers_of(problem: Problem) -> dict[str, str]:
    """Returns the headers of the answer to an error, with names in lower case."""
    match problem:
        case errors.Unauthorized():
            return {"www-authenticate": 'Bearer realm="Largesse"'}
        case MethodNotAllowed():
            return {"allow": problem.allow}
        case SlowRequest():
            return {"connection": "close"}
        case errors.TooManyRequests() | errors.Unavailable():
            return {"retry-after": str(max(1, math.ceil(problem.retry_after_s)))}
    return {}


_log = structlog.get_logger(__name__)


def problem_of(error: Exception, scope: Scope, **where: str) -> Problem:
    """Returns the problem that answers a failed request of that scope. Logs our own failures, with `where` they happened."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, HTTPException):
        return _router_problem(error, scope)
    if isinstance(error, (*DATABASE_AWAY, *LOCKED)):
        _log.warning("database_away", error=type(error).__name__, **where)
        return _unavailable(error)
    _log.error("request_failed", exc_info=error, **where)
    return InternalError("The failure was logged under the request id of this answer.")


def problem_reply(problem: Problem) -> Reply:
    """Returns the answer with the problem body (RFC 9457) of an error."""
    kind = problem_type(type(problem))
    body = {
        "type": f"/problems/{kind.slug}",
        "title": kind.title,
        "status": kind.status,
        "detail": spell_detail(problem.detail),
        "instance": instance_of(problem),
    }
    if problem.errors:
        body["errors"] = [
            FieldError(spell_pointer(error.pointer), spell_detail(error.detail)) for error in problem.errors
        ]
    headers = tuple(headers_of(problem).items())
    return Reply(encode_json(body), kind.status, "application/problem+json", headers)


def _router_problem(error: HTTPException, scope: Scope) -> Problem:
    """Returns the problem for an error that the router of pages raised."""
    if error.status_code == 405:  # its own header lists the methods of the first route only
        routes = [one for one in scope["router"].routes if one.path == scope["route"].path]
        return MethodNotAllowed(scope["method"], {method for one in routes for method in one.methods})
    if error.status_code == 404:
        return NotFound("There is nothing at this address.")
    return errors.InvalidRequest(str(error.detail))


def _unavailable(error: BaseException) -> errors.Unavailable:
    if isinstance(error, TimedOut):
        return errors.Unavailable(
            "The database did not answer in time. It is unknown whether anything was written: look, or repeat an order "
            "with the same `externalReference`.",
            retry_after_s=5,
            is_uncertain=True,
        )
    if isinstance(error, CommitLost):
        return errors.Unavailable(
            "The connection to the database broke before it confirmed this. It is unknown whether anything was written: look "
            "before you repeat it.",
            is_uncertain=True,
        )
    if isinstance(error, OUT_OF_RESOURCES):
        return errors.Unavailable(
            "The database has no room, memory or connections left for this. Nothing was written: try again later.",
            retry_after_s=10,
        )
    if isinstance(error, LOCKED):
        return errors.Unavailable("Somebody else is changing the same thing. Nothing was written: try again.")
    return errors.Unavailable("The database cannot be reached.")


_NAMED = re.compile(r"`(?:[a-z]+\[[0-9]+\]\.)?[a-z]+(?:_[a-z0-9]+)+(?=[`.\[])")
_POINTED = re.compile(r"/[a-z]+(?:_[a-z0-9]+)+(?=/|$)")
_JOINT = re.compile(r"_([a-z0-9])")


def spell_name(name: str) -> str:
    """Returns a name of the code as callers spell it."""
    return _JOINT.sub(lambda joint: joint[1].upper(), name)


def spell_detail(detail: str) -> str:
    """Returns a sentence with its names as callers spell them."""
    return _NAMED.sub(_in_camel_case, detail)


def spell_pointer(pointer: str) -> str:
    """Returns a JSON pointer with its members as callers spell them."""
    return _POINTED.sub(_in_camel_case, pointer)


def _in_camel_case(name: re.Match[str]) -> str:
    return spell_name(name[0])
