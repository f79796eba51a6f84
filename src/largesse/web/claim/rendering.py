"""Renders claim pages: their language, and the wrapping of a gift."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import msgspec
from markupsafe import Markup
from starlette.requests import Request

from largesse.base.i18n.languages import LANGUAGES, Language, chosen_language
from largesse.branding.model import NO_BRAND, Brand, OwnWrapping
from largesse.catalogue.pictures import picture_path
from largesse.mail.rendering import apart
from largesse.orders.options import known_wrapping
from largesse.web.kit.assets import Assets
from largesse.web.kit.pages import page_templates, qr_code
from largesse.web.kit.query import Line, query_of
from largesse.web.kit.security import OF_FORMS

LANGUAGE_COOKIE = "language"
_SWITCH = "lang"  # the query parameter of a page's language switch


def chosen_by_switch(request: Request) -> str:
    """Returns the language tag in the address; empty without one."""
    return query_of(request, {_SWITCH: Line(20)}).text(_SWITCH)


def chosen(request: Request) -> Language | None:
    """Returns the language that the reader chose or their browser accepts; None if we have none of them."""
    return chosen_language(
        chosen_by_switch(request) or None,
        request.cookies.get(LANGUAGE_COOKIE),
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
        f"@media (prefers-color-scheme:dark){{:root:root{{--link:{colours.dark_link}}}}}"
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
    present = page_templates(TEMPLATES).get_template("present.html").module.present  # type: ignore[attr-defined]
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
