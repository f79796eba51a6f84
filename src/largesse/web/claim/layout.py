"""The layout of every page for recipients: its language, headers and cookies, and the pages of errors."""

from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from largesse.base.errors import NotFound, Problem, TooManyRequests, Unavailable
from largesse.base.i18n.languages import DEFAULT, language_of_country
from largesse.branding.model import NO_BRAND
from largesse.branding.service import read_brand
from largesse.db.scope import for_customer
from largesse.lines.store import Line
from largesse.web.claim.rendering import HEADERS, LANGUAGE_COOKIE, Renderer, brand_styles, chosen, chosen_by_switch
from largesse.web.kit.assets import Assets
from largesse.web.kit.page_services import PageServices
from largesse.web.kit.pages import page, public_path, see
from largesse.web.kit.problems import headers_of, problem_type
from largesse.web.kit.security import named_style, with_styles
from largesse.web.kit.sessions import give_cookie

_YEAR_S = 365 * 24 * 3600
_RETRY_AFTER_S = 5  # longer than for programs, because people wait longer
_TEMPLATES: dict[type[Problem], str] = {NotFound: "unknown.html", TooManyRequests: "slowed.html"}


class Layout:
    """The layout of all claim pages of an installation."""

    def __init__(self, services: PageServices) -> None:
        settings = services.settings
        self._services = services
        self.base = public_path(settings.public_url)
        self.is_secure = settings.public_url.startswith("https://")
        self.assets = Assets(Path(__file__).parent / "assets", "/claim/assets")
        self._renderer = Renderer(self.base, settings.environment, self.assets)

    def page(self, request: Request, template: str, *, status: int = 200, **values: Any) -> Response:
        """Returns the page of a template, in the language of the request, or else of the country in `line` or `country`."""
        line: Line | None = values.get("line")
        country = line.country if line else values.get("country")
        language = chosen(request) or (language_of_country(country) if country else DEFAULT)
        sheet = brand_styles(values.get("brand", NO_BRAND), values.get("wrapping"))
        headers = with_styles(named_style(sheet)) if sheet else HEADERS
        response = page(self._renderer.render(template, language, values), headers, status=status)
        response.headers["Content-Language"] = language.tag
        response.headers["Vary"] = "Accept-Language, Cookie"
        if chosen_by_switch(request) == language.tag:
            give_cookie(
                response,
                LANGUAGE_COOKIE,
                language.tag,
                lasts_s=_YEAR_S,
                path=f"{self.base}/claim",
                is_secure=self.is_secure,
                same_site="lax",
            )
        return response

    async def page_of(
        self, request: Request, template: str, line: Line, *, status: int = 200, **values: Any
    ) -> Response:
        """Returns the page of a line's gift with the brand of its customer."""
        return await self.page_for(request, template, line.key.customer_id, status=status, line=line, **values)

    async def page_for(
        self, request: Request, template: str, customer_id: int, *, status: int = 200, **values: Any
    ) -> Response:
        """Returns a page with the brand of a customer."""
        scope = for_customer(customer_id, self._services.settings.environment)
        async with self._services.database.connection(scope) as connection:
            brand = await read_brand(connection, customer_id)
        return self.page(request, template, status=status, brand=brand, **values)

    def gift_address(self, handle: str) -> str:
        """Returns the address of a claimed gift."""
        return f"{self.base}/claim/gift/{handle}"

    async def see_entrance(self, _: Request) -> Response:
        """Redirects to the page on which a code is typed."""
        return see(f"{self.base}/claim", HEADERS)

    def see_gift(self, handle: str, part: str = "") -> Response:
        """Redirects to the page of a gift. `part` is added to the address, such as `#open`."""
        return see(self.gift_address(handle) + part, HEADERS)

    def ended(self, request: Request) -> Response:
        """Returns the page for a browser without a session, or with a form that is not ours. It shows what was typed."""
        return self.page(request, "ended.html", status=403, typed=getattr(request.state, "typed", ""))

    def wrong(self, request: Request, problem: Problem) -> Response:
        """Returns the page of a problem."""
        template = _TEMPLATES.get(type(problem), "trouble.html")
        response = self.page(request, template, status=problem_type(type(problem)).status)
        response.headers.update(headers_of(problem))
        if isinstance(problem, Unavailable):
            response.headers["Retry-After"] = str(_RETRY_AFTER_S)
        return response
