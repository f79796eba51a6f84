"""What becomes of an error: the one handler, and the problem body that programs get of it.

Pages for people show the same `Problem` in their own words (`largesse.web.kit.pages`).
"""

from __future__ import annotations

import structlog
from starlette.exceptions import HTTPException

from largesse.base.errors import FieldError, InvalidRequest, NotFound, Problem, Unavailable
from largesse.base.patience import GivenUp
from largesse.database.pool import DATABASE_AWAY, OUT_OF_RESOURCES
from largesse.web.kit.problems import InternalError, MethodNotAllowed, headers_of, instance_of, problem_type
from largesse.web.kit.replies import Reply, encode_json
from largesse.web.kit.spelling import spell_detail, spell_pointer

_log = structlog.get_logger(__name__)


def problem_of(error: Exception, **where: str) -> Problem:
    """What a request is told whose handling ended with `error`.

    What is nobody's doing but ours is logged, with `where` it happened.
    """
    if isinstance(error, Problem):
        return error
    if isinstance(error, HTTPException):
        return _said_by_the_router(error)
    if isinstance(error, DATABASE_AWAY):
        _log.warning("database_away", error=type(error).__name__, **where)
        return _unavailable(error)
    _log.error("request_failed", exc_info=error, **where)
    return InternalError("The failure was logged under the request id of this answer.")


def problem_reply(problem: Problem) -> Reply:
    """The problem body (RFC 9457) of an error."""
    told = problem_type(type(problem))
    body = {
        "type": f"/problems/{told.slug}",
        "title": told.title,
        "status": told.status,
        "detail": spell_detail(problem.detail),
        "instance": instance_of(problem),
    }
    if problem.errors:
        body["errors"] = [
            FieldError(spell_pointer(error.pointer), spell_detail(error.detail)) for error in problem.errors
        ]
    headers = tuple(headers_of(problem).items())
    return Reply(encode_json(body), told.status, "application/problem+json", headers)


def _said_by_the_router(error: HTTPException) -> Problem:
    """What the router of pages says, in our words."""
    if error.status_code == 405:
        allow = ", ".join(sorted((error.headers or {}).get("Allow", "GET").split(", ")))  # it lists a set
        return MethodNotAllowed(f"Only {allow} is allowed here.", allow=allow)
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
    if isinstance(error, OUT_OF_RESOURCES):
        return Unavailable(
            "The database has no room, memory or connections left for this. Nothing was written: try again later.",
            retry_after_s=10,
        )
    return Unavailable("The database cannot be reached.")
