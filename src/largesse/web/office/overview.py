"""The first page of the back office: what waits for somebody, how things run, and today beside the same day last week."""

from __future__ import annotations

from starlette.responses import Response

from largesse.web.office.context import OfficeContext


async def show(context: OfficeContext) -> Response:
    """Shows the overview."""
    return context.page("overview.html")
