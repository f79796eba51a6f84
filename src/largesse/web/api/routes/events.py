"""GET /events: the stream of events."""

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from largesse.customers.restrictions import READ
from largesse.events.kinds import EVENTS, GIFT_CLAIMED, Sampled
from largesse.events.store import DAYS, START, read_cursor, read_stream
from largesse.web.api.operation import Call, Operation
from largesse.web.kit.asgi import Reply, encode_json
from largesse.web.kit.services import Services

_EXAMPLE_CURSOR = "AAAAAAAAAAc"
_EXAMPLE_AT = "2030-01-02T09:00:00Z"


class EventsQuery(msgspec.Struct, frozen=True):
    """Which events to list: the newest `limit`, or those after a cursor."""

    after: (
        Annotated[
            str,
            Meta(
                max_length=64,
                description=f"The `cursor` of the last event you know, or `{START}`: gives those after it, oldest first",
                examples=[START],
                extra_json_schema={"pattern": f"^({START}|[A-Za-z0-9_-]{{11}})$"},
            ),
        ]
        | None
    ) = None
    limit: Annotated[int, Meta(ge=1, le=200, description="Events to return at most")] = 100


class EventShape(msgspec.Struct, kw_only=True, rename="camel"):
    """An event of the stream."""

    cursor: Annotated[str, Meta(description="Its place in the stream: give it as `after` to go on from here")]
    # No `enum`: generated clients would fail on a page with an event that a later release adds.
    event: Annotated[
        str,
        Meta(
            description="The name of the event; later releases may add some",
            extra_json_schema={"x-extensible-enum": list(EVENTS)},
        ),
    ]
    creation_date: Annotated[datetime, Meta(tz=True, description="When it was recorded")]
    data: Annotated[dict[str, Any], Meta(description="The payload, as webhooks deliver it")]


async def _events(services: Services, call: Call) -> Reply:
    query, principal = call.query, call.principal
    after = None if query.after is None else read_cursor(query.after)
    async with services.database.connection(principal.scope) as connection:
        found = await read_stream(connection, principal.place, after=after, limit=query.limit)
    listed = [
        {"cursor": one.cursor, "event": one.event, "creationDate": one.created_at, "data": msgspec.Raw(one.body)}
        for one in found
    ]
    return Reply(encode_json(listed))


OPERATIONS = (
    Operation(
        "GET",
        "/events",
        "listEvents",
        "Read the stream of events",
        _events,
        "Events",
        scope=READ,
        query=EventsQuery,
        description=f"Every event of the last {DAYS} days in the key's environment: the same that webhooks deliver, with or without a subscription. "
        "Without `after`, newest first. With `after`, the events after that `cursor`, oldest first: continue with the last `cursor`, and you miss none. "
        "The events of one gift come in the order in which they happened; if it is cancelled while its mail is on its way, either may come first.",
        shape=list[EventShape],
        example=[
            {
                "cursor": _EXAMPLE_CURSOR,
                "event": GIFT_CLAIMED.name,
                "creationDate": _EXAMPLE_AT,
                "data": msgspec.to_builtins(GIFT_CLAIMED.sample(Sampled(1, 1, datetime.fromisoformat(_EXAMPLE_AT)))),
            }
        ],
    ),
)
