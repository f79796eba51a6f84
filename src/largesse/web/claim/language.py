"""The language that a browser is to read: the one its user chose, else the best of those it asks for."""

from __future__ import annotations

from starlette.requests import Request

from largesse.base.i18n import Language, chosen_language

LANGUAGE_COOKIE = "language"
SWITCH = "lang"  # the query parameter by which a page's switch chooses


def chosen(request: Request) -> Language | None:
    """The language somebody chose or asks for; None where they want none that we speak."""
    return chosen_language(
        request.query_params.get(SWITCH),
        request.cookies.get(LANGUAGE_COOKIE),
        request.headers.get("accept-language", ""),
    )


def chosen_tag(request: Request) -> str | None:
    """The tag of that language, as it is kept with a line."""
    language = chosen(request)
    return language.tag if language else None
