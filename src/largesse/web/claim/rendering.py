"""Renders claim pages: their language, headers and cookies, the wrapping of a gift, and the pages of errors."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import msgspec
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from largesse.base.errors import NotFound, Problem, TooManyRequests, Unavailable
from largesse.base.i18n.languages import DEFAULT, LANGUAGES, Language, chosen_language, language_of_country
from largesse.branding.model import NO_BRAND, Brand, OwnWrapping
from largesse.branding.service import read_brand
from largesse.catalogue.pictures import picture_path
from largesse.db.scope import for_customer
from largesse.lines.store import Line
from largesse.mail.rendering import apart
from largesse.orders.options import known_wrapping
from largesse.web.kit import query
from largesse.web.kit.assets import Assets
from largesse.web.kit.page_services import PageServices
from largesse.web.kit.pages import page, page_templates, public_path, qr_code, see
from largesse.web.kit.problems import TooLarge, headers_of, problem_type
from largesse.web.kit.security import OF_FORMS, named_style, with_styles
from largesse.web.kit.sessions import give_cookie, read_cookie

LANGUAGE_COOKIE = "language"
_SWITCH = "lang"  # the query parameter of a page's language switch


def chosen_by_switch(request: Request) -> str:
    """Returns the language tag in the address; empty without one."""
    return query.query_of(request, {_SWITCH: query.Line(20)}).text(_SWITCH)


def chosen(request: Request) -> Language | None:
    """Returns the language that the reader chose or their browser accepts; None if we have none of them."""
    return chosen_language(
        chosen_by_switch(request) or None,
        read_cookie(request, LANGUAGE_COOKIE) or None,
        request.headers.get("accept-language", ""),
    )


def chosen_tag(request: Request) -> str | None:
    """Returns the tag of the language that `chosen` returns. It is stored with a line."""
    language = chosen(request)
    return language.tag if language else None


class Theme(msgspec.Struct, frozen=True):
    """A wrapping with a `pattern` on its paper. Its colours are in the style sheet under `key`; those of a customer's wrapping are in `own`."""

    key: str
    pattern: str
    own: OwnWrapping | None = None


_PATTERNS = {
    "default": "dots",
    "confetti": "confetti",
    "birthday": "balloons",
    "thank-you": "hearts",
    "winter": "snow",
    "elegant": "pinstripes",
    "stars": "stars",
    "gold": "diamonds",
    "garden": "leaves",
}
THEMES = {key: Theme(key, pattern) for key, pattern in _PATTERNS.items()}


def theme(key: str, brand: Brand = NO_BRAND) -> Theme:
    """Returns the theme of a wrapping: the customer's own with that key, else one that all customers have."""
    if own := brand.wrapping(key):
        return Theme("own", own.pattern, own)
    return THEMES[known_wrapping(key)]


def brand_styles(brand: Brand, wrapping: str | None) -> str:
    """Returns a style sheet with the colours of a brand and of its wrapping with that key; empty without any."""
    own, colours = brand.wrapping(wrapping), brand.colours
    ribbon = f":root:root{{--ribbon:{own.ribbon};--print-1:{own.paper}}}" if own else ""
    if colours is None:
        return ribbon
    return ribbon + (
        f":root:root{{--accent:{colours.fill};--accent-ink:{colours.ink};--link:{colours.link}}}"
        f"@media screen and (prefers-color-scheme:dark){{:root:root{{--link:{colours.dark_link}}}}}"
        "button:not(.quiet),.button{border-color:currentcolor}"
    )


TEMPLATES = Path(__file__).parent / "templates"


@cache
def draw_wrapping(key: str) -> Markup:
    """Returns the present of a wrapping as SVG, with the colours of `wrappings.css`. Its ids are unique, so that a page can hold several."""
    return _drawn(theme(key), key, "")


def draw_own_wrapping(own: OwnWrapping, base: str) -> Markup:
    """Returns the present of a customer's own wrapping as SVG. `base` is the path of the public address."""
    return _drawn(Theme("own", own.pattern, own), own.key, base)


def _drawn(shown: Theme, key: str, base: str) -> Markup:
    present = _templates(DEFAULT.tag).get_template("present.html").module.present  # type: ignore[attr-defined]
    picture = base + picture_path(shown.own.picture) if shown.own and shown.own.picture else ""
    drawn = re.sub(r">\s+<", "><", str(present(shown, f"-{key}", picture)).strip())
    return Markup('<span class="wrap-{}">{}</span>').format(shown.key, Markup(drawn))  # noqa: S704 - our own template


HEADERS = OF_FORMS


class Renderer:
    """Renders templates for one installation. `base` is the path of its public address."""

    def __init__(self, base: str, environment: str, assets: Assets) -> None:
        self._base = base
        self._assets = assets
        self._environment = environment
        self._cache: dict[tuple[str, str], str] = {}  # rendered pages that have no values, by template and language

    def render(self, template: str, language: Language, values: Mapping[str, Any]) -> str:
        """Returns the page of a template. The value `wrapping` is a key, or empty for the default one."""
        if values:
            return self._render(template, language, values)
        # Error pages are requested often and have no values.
        key = (template, language.tag)
        if key not in self._cache:
            self._cache[key] = self._render(template, language, values)
        return self._cache[key]

    def _render(self, template: str, language: Language, values: Mapping[str, Any]) -> str:
        brand: Brand = values.get("brand", NO_BRAND)
        shown = theme(values.get("wrapping") or "default", brand)
        paper = shown.own.picture if shown.own else None
        return (
            _templates(language.tag)
            .get_template(template)
            .render(
                values,
                base=self._base,
                language=language,
                languages=LANGUAGES.values(),
                theme=shown,
                brand=brand,
                brand_styles=Markup(brand_styles(brand, values.get("wrapping"))),  # noqa: S704 - colours that were checked
                paper_picture=self._base + picture_path(paper) if paper else "",
                is_staging=self._environment == "staging",
                is_preview=values.get("is_preview", False),
                asset=lambda name: self._base + self._assets.address_of(name),
                picture_address=lambda name: self._base + picture_path(name),
            )
        )


def grouped(number: str) -> list[str]:
    """Splits a long number of letters and digits into groups of four, as people read it aloud. Leaves others whole."""
    if len(number) > 8 and number.isalnum():
        return [number[start : start + 4] for start in range(0, len(number), 4)]
    return [number]


@cache
def _templates(tag: str) -> jinja2.Environment:
    return page_templates(TEMPLATES, tag, qr_code=qr_code, grouped=grouped, apart=apart)


_YEAR_S = 365 * 24 * 3600
_RETRY_AFTER_S = 5  # longer than for programs, because people wait longer
_PROBLEMS: dict[type[Problem], str] = {NotFound: "unknown", TooLarge: "long", TooManyRequests: "slowed"}


class Layout:
    """The claim pages of an installation: each with its language, headers and cookies."""

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
        status = problem_type(type(problem)).status
        response = self.page(request, "problem.html", status=status, problem=_PROBLEMS.get(type(problem)))
        response.headers.update(headers_of(problem))
        if isinstance(problem, Unavailable):
            response.headers["Retry-After"] = str(_RETRY_AFTER_S)
        return response
