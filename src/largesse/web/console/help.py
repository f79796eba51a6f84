"""The help page: what the words of the pages mean, and where the API is documented."""

from __future__ import annotations

from starlette.responses import Response

from largesse.web.console.context import RequestContext
from largesse.web.console.words import WORDS


async def show(context: RequestContext) -> Response:
    """Shows what all words mean, and where the API is documented."""
    return context.page("help.html", explained=WORDS)
