"""The JSON of deliveries of webhooks and mail."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from largesse.base.email import MAX_EMAIL


class AttemptRecordShape(msgspec.Struct, kw_only=True, rename="camel"):
    """One attempt of a delivery."""

    number: int
    started_at: Annotated[datetime, Meta(tz=True)]
    duration_ms: int
    status: Annotated[int, Meta(description="The receiver's HTTP status")] | None
    error: (
        Annotated[
            str,
            Meta(
                description="Why there was no status: `timeout`, `dns`, `connect`, `tls`, `connection_lost`, `bad_answer`, "
                "`forbidden_address` or `forbidden_target`",
                examples=["timeout"],
            ),
        ]
        | None
    )
    answer: Annotated[str, Meta(description="The first 2 KiB of the receiver's answer")] | None


class DeliveryRecordShape(msgspec.Struct, kw_only=True, rename="camel"):
    """The delivery of one event to a subscription."""

    id: Annotated[int, Meta(extra_json_schema={"format": "int64"})]
    event: str
    order_id: (
        Annotated[
            int, Meta(description="The order record's `id`; null for a sample and for an event that is about no order")
        ]
        | None
    )
    state: Annotated[
        str,
        Meta(
            description="`pending`, `delivered` (2xx), `dropped` (another 4xx), `exhausted` (all attempts failed) or "
            "`cancelled` (the subscription ended)",
            examples=["delivered"],
        ),
    ]
    attempts: list[AttemptRecordShape]
    attempts_left: int
    next_attempt_at: Annotated[datetime, Meta(tz=True)] | None
    created_at: Annotated[datetime, Meta(tz=True)]
    finished_at: Annotated[datetime, Meta(tz=True)] | None


class LineRecordShape(msgspec.Struct, kw_only=True, rename="camel"):
    """The state of a line, and when each step happened; null for a step that has not."""

    number: Annotated[int, Meta(description="Counts the order's lines from 1", examples=[1])]
    state: Annotated[
        str,
        Meta(
            description="`issued` (nobody has claimed it), `claimed` (the recipient has yet to choose), `chosen` (waits for a "
            "voucher, an address or a parcel), `fulfilled`, `expired` or `cancelled`",
            examples=["claimed"],
        ),
    ]
    opened_at: Annotated[datetime, Meta(tz=True, description="When a person first used its link")] | None
    claimed_at: Annotated[datetime, Meta(tz=True)] | None
    chosen_at: Annotated[datetime, Meta(tz=True)] | None
    fulfilled_at: Annotated[datetime, Meta(tz=True)] | None
    expired_at: Annotated[datetime, Meta(tz=True)] | None
    cancelled_at: Annotated[datetime, Meta(tz=True)] | None


class RecipientDeliveryShape(msgspec.Struct, kw_only=True, rename="camel"):
    """The state of the mail to one recipient of an order."""

    email: Annotated[str, Meta(description="Null in a code batch")] | None
    name: str | None
    code_count: Annotated[int, Meta(description="Codes in the mail")]
    state: Annotated[
        str,
        Meta(
            description="`scheduled` (not due yet), `pending` (due, or to be tried again), `held` (until a mail server is set), "
            "`sent`, `captured` (staging), `bounced` (refused for good), `exhausted` (given up: not taken for three days) or `cancelled` (with its codes); `manual` in a code batch, whose codes went to the caller",
            examples=["sent"],
        ),
    ]
    reason: (
        Annotated[str, Meta(description="What the mail server said, when it did not take it; or why it is held")] | None
    )
    fault: (
        Annotated[
            str,
            Meta(
                description="Who caused the refusal: `recipient`, or `server` when the mail server cannot be talked to or "
                "refuses whatever it is given, which is tried again",
                examples=["server"],
            ),
        ]
        | None
    )
    due_at: Annotated[datetime, Meta(tz=True, description="When it was, or is, due first")]
    sent_at: Annotated[datetime, Meta(tz=True)] | None
    attempts: int
    resends: Annotated[
        int, Meta(description="How often the mail was sent again. The other members are about the last one")
    ]
    lines: Annotated[list[LineRecordShape], Meta(description="The state of each code")] = msgspec.field(
        default_factory=list
    )


class Resend(msgspec.Struct, rename="camel"):
    """Body of POST /orders/{reference}/resend."""

    email: Annotated[
        str, Meta(max_length=MAX_EMAIL, description="A recipient of the order", examples=["sam@example.com"])
    ]
