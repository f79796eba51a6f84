"""What every page of recipients stands in: its language, its headers and cookies, and how it tells what went wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from largesse.base.errors import NotFound, Problem, TooManyRequests, Unavailable
from largesse.base.i18n.languages import DEFAULT, language_of_country
from largesse.base.settings import Settings
from largesse.lines.store import Line
from largesse.web.claim.rendering import HEADERS, LANGUAGE_COOKIE, Renderer, chosen, chosen_by_switch
from largesse.web.claim.session import COOKIE, LASTS, Session
from largesse.web.kit.assets import Assets
from largesse.web.kit.pages import page, public_path, see
from largesse.web.kit.problems import headers_of, problem_type
from largesse.web.kit.sessions import give_cookie

_YEAR_S = 365 * 24 * 3600
_RETRY_AFTER_S = 5  # people are asked back less soon than programs
_TEMPLATES: dict[type[Problem], str] = {NotFound: "unknown.html", TooManyRequests: "slowed.html"}


class Layout:
    """The frame of one installation's pages."""

    def __init__(self, settings: Settings) -> None:
        self._base = public_path(settings.public_url)
        self._is_secure = settings.public_url.startswith("https://")
        self.assets = Assets(Path(__file__).parent / "assets", "/claim/assets")
        self._renderer = Renderer(self._base, settings.environment, self.assets)

    def page(self, request: Request, template: str, *, status: int = 200, **values: Any) -> Response:
        """The page of a template, in the language of the request, else that of the country of the `line` among the values."""
        line: Line | None = values.get("line")
        language = chosen(request) or (language_of_country(line.country) if line else DEFAULT)
        response = page(self._renderer.render(template, language, values), HEADERS, status=status)
        response.headers["Content-Language"] = language.tag
        response.headers["Vary"] = "Accept-Language, Cookie"
        if chosen_by_switch(request) == language.tag:
            give_cookie(
                response,
                LANGUAGE_COOKIE,
                language.tag,
                lasts_s=_YEAR_S,
                path=f"{self._base}/claim",
                is_secure=self._is_secure,
                same_site="lax",
            )
        return response

    def gift_address(self, handle: str) -> str:
        """Where the pages of a claimed gift are."""
        return f"{self._base}/claim/gift/{handle}"

    def see_gift(self, handle: str, part: str = "") -> Response:
        """Sends the browser to that gift's page, or a part of it such as `#open`."""
        return see(self.gift_address(handle) + part, HEADERS)

    def remember(self, response: Response, session: Session) -> None:
        """Has the browser keep the session, for the pages of its gift."""
        give_cookie(
            response,
            COOKIE,
            session.cookie,
            lasts_s=int(LASTS.total_seconds()),
            path=self.gift_address(session.handle),
            is_secure=self._is_secure,
            same_site="strict",
        )

    def ended(self, request: Request) -> Response:
        """For who has no session here, or sent what no page of ours sends."""
        return self.page(request, "ended.html", status=403)

    def wrong(self, request: Request, problem: Problem) -> Response:
        """The page that tells a problem."""
        template = _TEMPLATES.get(type(problem), "trouble.html")
        response = self.page(request, template, status=problem_type(type(problem)).status)
        response.headers.update(headers_of(problem))
        if isinstance(problem, Unavailable):
            response.headers["Retry-After"] = str(_RETRY_AFTER_S)
        return response
