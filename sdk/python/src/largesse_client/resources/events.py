"""The stream of events."""

from __future__ import annotations

from collections.abc import Sequence

from largesse_client import arguments
from largesse_client.binding import M, Resource, listing, operation
from largesse_client.calls import Call, Pages, Query, get, pages
from largesse_client.models import StreamedEvent

_MAX_CURSOR = 64


class Events(Resource[M]):
    """The events of the last 30 days, the same that webhooks deliver."""

    @listing
    def list(self, *, after: str = "start", page_size: int = arguments.MAX_PAGE) -> Pages[StreamedEvent]:
        """Returns all events after `cursor`, oldest first. If you go on after the last `cursor`, you miss none."""

        def then(query: Query, page: Sequence[StreamedEvent]) -> Query:
            return {**query, "after": page[-1].cursor}

        start = arguments.text("after", after, _MAX_CURSOR)
        size = arguments.number("page_size", page_size, most=arguments.MAX_PAGE)
        return pages("/events", StreamedEvent, {"after": start}, size, then)

    @operation
    def newest(self, *, limit: int = 100) -> Call[tuple[StreamedEvent, ...]]:
        """Returns the newest events, newest first; at most 200."""
        query: Query = {"limit": arguments.number("limit", limit, most=arguments.MAX_PAGE)}
        return get("/events", tuple[StreamedEvent, ...], query)
