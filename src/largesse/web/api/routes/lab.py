"""The test lab, `/test/…`, which only staging has."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from largesse.base.errors import NotFound, OtherServiceAccount, StateConflict
from largesse.customers.restrictions import SEND, WEBHOOKS
from largesse.events.kinds import EVENTS, GIFT_CLAIMED, Sampled
from largesse.jobs.registry import DueTimes
from largesse.lab.clock import MOST_ADVANCE, advance_clock, read_clock
from largesse.lab.service import claim_gift, trigger_event
from largesse.web.api.operation import Call, Operation
from largesse.web.api.shapes import in_shape, shaped
from largesse.web.kit.asgi import Reply, encode_json
from largesse.web.kit.query import INT32
from largesse.web.kit.services import Services

_MOST_SECONDS = 2 * int(MOST_ADVANCE.total_seconds())  # larger ones could overflow a timedelta
_ONLY_STAGING = "Only in staging."
_CLOCK: dict[str, Any] = {"now": "2030-01-02T09:00:00Z", "nextDueAt": "2030-01-02T09:00:04Z"}


class Trigger(msgspec.Struct, rename="camel"):
    """Body of POST /test/events."""

    event: Annotated[
        str,
        Meta(description="The event to record", examples=[GIFT_CLAIMED.name], extra_json_schema={"enum": list(EVENTS)}),
    ]


class TriggeredEventShape(msgspec.Struct, rename="camel"):
    """A triggered event."""

    event: Annotated[str, Meta(description="The name of the event")]
    data: Annotated[dict[str, Any], Meta(description="The payload, a sample")]


class Advance(msgspec.Struct, rename="camel"):
    """Body of POST /test/clock: one of the two members."""

    advance_seconds: Annotated[
        int | None,
        Meta(
            description="How many seconds pass, at most 3,660 days",
            examples=[21_600],
            extra_json_schema={"minimum": 0, "maximum": int(MOST_ADVANCE.total_seconds())},
        ),
    ] = None
    to: Annotated[
        datetime | None,
        Meta(
            description="What is due at this instant is due now; without an offset it is UTC",
            extra_json_schema={"format": "date-time"},
        ),
    ] = None


class ClockShape(msgspec.Struct, rename="camel"):
    """The time of the clock, and when something is next due."""

    now: Annotated[datetime, Meta(tz=True, description="The service's time")]
    next_due_at: (
        Annotated[datetime, Meta(tz=True, description="When the first of what waits is due; null when nothing waits")]
        | None
    )


class AdvancedClockShape(ClockShape, rename="camel"):
    """The clock after an advance."""

    advanced_seconds: Annotated[float, Meta(description="By how much all that waits came nearer")]
    moved: Annotated[int, Meta(description="How many deliveries, messages, schedules and gifts came nearer")]


class TestClaim(msgspec.Struct, rename="camel"):
    """Body of POST /test/claim."""

    order_reference: Annotated[str, Meta(min_length=1, max_length=40, description="`reference` of the order")]
    line_number: Annotated[int, Meta(ge=1, le=5000, description="The code of the order, counted from 1")] = 1
    product_id: (
        Annotated[
            int, Meta(ge=1, le=INT32, description="What the recipient chooses, of a collection; null: nothing yet")
        ]
        | None
    ) = None


class ClaimedGiftShape(msgspec.Struct, rename="camel"):
    """A gift after its claim."""

    order_reference: Annotated[str, Meta(description="`reference` of the order")]
    line_number: Annotated[int, Meta(description="The code of the order")]
    state: Annotated[str, Meta(description="`claimed`, `chosen` or `fulfilled`", examples=["fulfilled"])]
    claimed_at: Annotated[datetime, Meta(tz=True, description="When it was claimed")]
    expires_at: Annotated[datetime, Meta(tz=True, description="When the gift expires; null if never")] | None


def _due_times() -> Sequence[DueTimes]:
    """Returns the due times of all rooms. Imports them on use, because a serving process does not need the rooms' tasks otherwise."""
    from largesse.housekeeping import DUE_TIMES

    return DUE_TIMES


async def _clock(services: Services, call: Call) -> Reply:
    return Reply(in_shape(await read_clock(call.actor(services), _due_times()), ClockShape))


async def _advance(services: Services, call: Call) -> Reply:
    wanted = call.read(Advance)
    by = None
    if wanted.advance_seconds is not None:
        by = timedelta(seconds=max(min(wanted.advance_seconds, _MOST_SECONDS), -1))
    to = wanted.to
    if to is not None and to.tzinfo is None:
        to = to.replace(tzinfo=UTC)
    advanced = await advance_clock(call.actor(services), services.delivery_throttle, _due_times(), by=by, to=to)
    by_s = advanced.by.total_seconds()
    answer = shaped(AdvancedClockShape, advanced.clock, advanced_seconds=by_s, moved=advanced.moved)
    return Reply(encode_json(answer))


async def _claim(services: Services, call: Call) -> Reply:
    wanted = call.read(TestClaim)
    claimed = await claim_gift(
        call.actor(services),
        services.vault,
        wanted.order_reference,
        wanted.line_number,
        product_id=wanted.product_id,
        default_expiry_days=services.settings.default_expiry_days,
    )
    order = {"order_reference": wanted.order_reference, "line_number": wanted.line_number}
    return Reply(encode_json(shaped(ClaimedGiftShape, claimed, **order, state=claimed.state.value)))


async def _trigger(services: Services, call: Call) -> Reply:
    event = call.read(Trigger).event
    triggered = await trigger_event(call.actor(services), services.delivery_throttle, event)
    return Reply(encode_json(triggered), 201)


_operation = partial(Operation, tag="Test lab")
OPERATIONS = (
    _operation(
        "POST",
        "/test/events",
        "triggerEvent",
        "Make an event happen",
        _trigger,
        scope=WEBHOOKS,
        status=201,
        shape=TriggeredEventShape,
        body=Trigger,
        description="Records a sample of an event: webhooks deliver it and the stream returns it, like a real one. There is no order, gift or "
        f"account behind it. A customer can make at most 60 a minute. {_ONLY_STAGING}",
        example={
            "event": GIFT_CLAIMED.name,
            "data": msgspec.to_builtins(GIFT_CLAIMED.sample(Sampled(1, 1, datetime(2030, 1, 2, 9, tzinfo=UTC)))),
        },
        body_examples={"claim": {"event": GIFT_CLAIMED.name}},
    ),
    _operation(
        "GET",
        "/test/clock",
        "getTestClock",
        "Read the test clock",
        _clock,
        scope=SEND,
        shape=ClockShape,
        description="Returns when the next thing of the customer is due: a scheduled order, a retry of a webhook or a mail, a "
        f"claim-by date, the expiry of a claimed gift. {_ONLY_STAGING}",
        example=_CLOCK,
    ),
    _operation(
        "POST",
        "/test/clock",
        "advanceTestClock",
        "Advance the test clock",
        _advance,
        scope=SEND,
        shape=AdvancedClockShape,
        body=Advance,
        problems=(StateConflict,),
        description="Lets time pass for the customer: whatever it waits for comes nearer by `advanceSeconds`, or by what is left until `to`, "
        "and what is due then happens at once. Times in answers stay those of the real clock, so a schedule of next week is one of today "
        "after six days. The clock only goes forward: going back is 409. At most 60 times a minute. " + _ONLY_STAGING,
        example={**_CLOCK, "advancedSeconds": 21600.0, "moved": 1},
        body_examples={"hours": {"advanceSeconds": 21600}, "schedule": {"to": "2030-01-09T09:00:00Z"}},
    ),
    _operation(
        "POST",
        "/test/claim",
        "claimTestGift",
        "Claim a gift as its recipient",
        _claim,
        scope=SEND,
        shape=ClaimedGiftShape,
        body=TestClaim,
        problems=(NotFound, OtherServiceAccount, StateConflict),
        description="Claims a gift as its recipient would, with the same events and the same fulfilment. Of a collection, `productId` chooses a "
        f"gift. One that was claimed or cancelled before, or has not left yet, is 409. {_ONLY_STAGING}",
        example={
            "orderReference": "0WBQK7M2PXR4D9VA1C3E",
            "lineNumber": 1,
            "state": "fulfilled",
            "claimedAt": "2030-01-02T09:00:00Z",
            "expiresAt": "2031-01-02T09:00:00Z",
        },
        body_examples={"first": {"orderReference": "0WBQK7M2PXR4D9VA1C3E"}},
    ),
)
