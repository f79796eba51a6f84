"""Answers: what an error becomes, and how a reply is sent.

This is the one place where exceptions become problem bodies (RFC 9457).
"""

from __future__ import annotations

import structlog
from starlette.exceptions import HTTPException

from largesse.base.errors import (
    InternalError,
    InvalidRequest,
    MethodNotAllowed,
    NotFound,
    Problem,
    Unavailable,
)
from largesse.base.patience import GivenUp
from largesse.database import DATABASE_AWAY
from largesse.web.api.asgi import Send
from largesse.web.api.operation import Reply, encode_json

_log = structlog.get_logger(__name__)


def failure_reply(error: Exception, path: str, request_id: bytes) -> Reply:
    """What a request is answered whose handling ended with `error`; what is nobody's doing but ours is logged."""
    if isinstance(error, Problem):
        return problem_reply(error)
    if isinstance(error, HTTPException):
        return problem_reply(_problem_of(error))
    if isinstance(error, DATABASE_AWAY):
        _log.warning("database_away", error=type(error).__name__, path=path, request_id=request_id.decode())
        return problem_reply(_unavailable(error))
    _log.error("request_failed", path=path, request_id=request_id.decode(), exc_info=error)
    return problem_reply(InternalError("The failure was logged under the request id of this answer."))


def problem_reply(problem: Problem) -> Reply:
    """The problem body (RFC 9457) of an error."""
    body = {
        "type": f"/problems/{problem.slug}",
        "title": problem.title,
        "status": problem.status,
        "detail": problem.detail,
        "instance": problem.instance,
    }
    if problem.errors:
        body["errors"] = problem.errors
    headers = tuple((name.lower(), value) for name, value in problem.headers.items())
    return Reply(encode_json(body), problem.status, "application/problem+json", headers)


def _problem_of(error: HTTPException) -> Problem:
    """What the page router says, in our words."""
    if error.status_code == 405:
        allow = (error.headers or {}).get("Allow", "GET")
        return MethodNotAllowed(f"Only {allow} is allowed here.", headers={"Allow": allow})
    if error.status_code == 404:
        return NotFound("There is nothing at this address.")
    return InvalidRequest(str(error.detail))


def _unavailable(error: BaseException) -> Unavailable:
    if isinstance(error, GivenUp):
        return Unavailable(
            "The database did not answer in time. Whether anything was written is not known: look, or repeat an order "
            "with the same `externalReference`.",
            retry_after_s=5,
        )
    return Unavailable("The database cannot be reached.")


async def send_reply(reply: Reply, request_id: bytes, method: str, send: Send) -> None:
    """Sends an answer of the API; of one to HEAD the headers alone."""
    headers = [
        (b"content-length", str(len(reply.body)).encode()),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
        (b"x-request-id", request_id),
    ]
    if reply.body:
        headers.append((b"content-type", reply.media_type.encode()))
    for name, value in reply.headers:
        headers.append((name.encode("latin-1"), value.encode("latin-1")))
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if method == "HEAD" else reply.body})
