"""The help page: explanations of the pages' words, and links to the API's documentation."""

from __future__ import annotations

from starlette.responses import Response

from largesse.web.console.context import RequestContext
from largesse.web.console.words import WORDS


async def show(context: RequestContext) -> Response:
    """Shows the help page."""
    return context.page("help.html", explained=WORDS)
