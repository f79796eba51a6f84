"""The language that a browser is to read: the one its user chose, else the best of those it asks for."""

from __future__ import annotations

from starlette.requests import Request

from largesse.base.i18n.languages import Language, chosen_language
from largesse.web.kit.query import Line, query_of

LANGUAGE_COOKIE = "language"
_SWITCH = "lang"  # the query parameter by which a page's switch chooses


def chosen_by_switch(request: Request) -> str:
    """The tag that the address names; empty where it names none."""
    return query_of(request, {_SWITCH: Line(20)}).text(_SWITCH)


def chosen(request: Request) -> Language | None:
    """The language somebody chose or asks for; None where they want none that we speak."""
    return chosen_language(
        chosen_by_switch(request) or None,
        request.cookies.get(LANGUAGE_COOKIE),
        request.headers.get("accept-language", ""),
    )


def chosen_tag(request: Request) -> str | None:
    """The tag of that language, as it is kept with a line."""
    language = chosen(request)
    return language.tag if language else None
