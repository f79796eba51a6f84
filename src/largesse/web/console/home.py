"""The first page."""

from __future__ import annotations

from starlette.responses import Response

from largesse.web.console.visit import Visit


async def show(visit: Visit) -> Response:
    """Where to begin."""
    return visit.page("home.html")
