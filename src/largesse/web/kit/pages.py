"""Pages for people: how a page is answered, and how an error becomes a page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from largesse.base.errors import Problem
from largesse.base.timeouts import Timeouts
from largesse.web.kit.problems import problem_of
from largesse.web.kit.query import require_fit_path
from largesse.web.kit.refusal_log import PROBLEM

Endpoint = Callable[[Request], Awaitable[Response]]


def public_path(public_url: str) -> str:
    """Returns the path of the public address without a slash at its end; usually empty."""
    return urlsplit(public_url).path.rstrip("/")


def page(html: str, headers: Mapping[str, str], *, status: int = 200) -> Response:
    """Returns a page with its headers (`largesse.web.kit.security`)."""
    return Response(html, status_code=status, media_type="text/html", headers=headers)


def see(address: str, headers: Mapping[str, str]) -> Response:
    """Redirects to another page after a posted form (303)."""
    return RedirectResponse(address, status_code=303, headers=headers)


def guarded(
    endpoint: Endpoint,
    timeouts: Timeouts,
    show: Callable[[Request, Problem], Response],
    expected: Mapping[type[Exception], Callable[[Request], Response]],
    *,
    name: str = "",
) -> Endpoint:
    """Returns `endpoint` with errors turned into pages: those `expected` by their own function, all others by `show`.

    The log names the page by `name`, otherwise by its endpoint. Addresses are not logged: they may hold tokens.
    """
    name = name or endpoint.__name__.strip("_")

    async def answer(request: Request) -> Response:
        try:
            with timeouts.wait():
                require_fit_path(request)
                return await endpoint(request)
        except Exception as error:  # noqa: BLE001 - each becomes a page
            request.scope[PROBLEM] = getattr(error, "slug", type(error).__name__)
            if type(error) in expected:
                return expected[type(error)](request)
            problem = problem_of(error, page=name, request_id=request.scope["request_id"])
            request.scope[PROBLEM] = problem.slug
            return show(request, problem)

    return answer
