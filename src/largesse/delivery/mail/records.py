"""How the mail of an order is doing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from largesse.base.email import address_key
from largesse.database import Connection
from largesse.identity import Principal
from largesse.lines.records import LineRecord, read_line_records
from largesse.orders.finding import find_order


class RecipientDelivery(msgspec.Struct, kw_only=True, rename="camel"):
    """How the mail to one recipient of an order is doing."""

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
        Annotated[
            str, Meta(description="What the mail server said, when it did not take it; or why it is held")
        ]
        | None
    )
    fault: (
        Annotated[
            str,
            Meta(
                description="Whose fault a refusal is: `recipient`, or `server` when the mail server cannot be talked to or "
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
        int, Meta(description="How often it was asked for again; the rest tells of the last one")
    ]
    lines: Annotated[list[LineRecord], Meta(description="What became of each code")] = msgspec.field(
        default_factory=list
    )


async def list_order_deliveries(
    connection: Connection, principal: Principal, reference: str, *, offset: int = 0, limit: int = 100
) -> list[RecipientDelivery]:
    """The recipients of an order in the order they were given, each with the state of its mail.

    An order that is not due yet has no messages: its recipients come from its lines. A code batch has an entry for
    each code. Raises NotFound for an order of another customer or environment.
    """
    order_id = (await find_order(connection, principal, reference))["id"]
    rows = await connection.fetch(
        """
        WITH latest AS (
            SELECT DISTINCT ON (email) *, max(edition) OVER (PARTITION BY email) AS resends,
                   min(line_numbers[1]) OVER (PARTITION BY email) AS place
            FROM messages WHERE order_id = $1 AND kind = 'gift' ORDER BY email, edition DESC)
        SELECT email, name, cardinality(line_numbers) AS code_count, state, reason, fault, due_at,
               CASE WHEN state IN ('sent', 'captured') THEN finished_at END AS sent_at, attempts, resends
        FROM latest ORDER BY place OFFSET $2 LIMIT $3
        """,
        order_id,
        offset,
        limit,
    )
    lines = await read_line_records(connection, order_id)
    if rows:
        return _with_lines([RecipientDelivery(**row) for row in rows], lines)
    job = await connection.fetchrow(
        "SELECT due_at, due_at > clock_now() AS scheduled FROM mail_jobs WHERE order_id = $1", order_id
    )
    if job is None:
        at = await connection.fetchval("SELECT created_at FROM orders WHERE id = $1", order_id)
        return [_handed_over(line, at) for _, _, line in lines[offset : offset + limit]]
    waiting = _not_fanned_out(lines, job["due_at"], "scheduled" if job["scheduled"] else "pending")
    return _with_lines(waiting[offset : offset + limit], lines)


_Lines = Sequence[tuple[str | None, str | None, LineRecord]]


def _not_fanned_out(lines: _Lines, due_at: datetime, state: str) -> list[RecipientDelivery]:
    """The recipients of an order whose mail job still waits, told apart as the fan-out will."""
    recipients: dict[str, RecipientDelivery] = {}
    for email, name, line in lines:
        if email is None:
            continue
        recipient = recipients.setdefault(address_key(email), _recipient(email, name, due_at, "cancelled"))
        recipient.code_count += 1
        if line.cancelled_at is None:
            recipient.state = state
    return list(recipients.values())


def _with_lines(recipients: list[RecipientDelivery], lines: _Lines) -> list[RecipientDelivery]:
    """The recipients, each with what became of their codes."""
    by_recipient: dict[str, list[LineRecord]] = defaultdict(list)
    for email, _, line in lines:
        by_recipient[address_key(email or "")].append(line)
    for recipient in recipients:
        recipient.lines = by_recipient[address_key(recipient.email or "")]
    return recipients


def _handed_over(line: LineRecord, at: datetime) -> RecipientDelivery:
    """A code of a batch: the caller has it, and no mail goes anywhere."""
    handed = _recipient(None, None, at, "manual")
    handed.code_count = 1
    handed.lines = [line]
    return handed


def _recipient(email: str | None, name: str | None, due_at: datetime, state: str) -> RecipientDelivery:
    return RecipientDelivery(
        email=email,
        name=name,
        code_count=0,
        state=state,
        reason=None,
        fault=None,
        due_at=due_at,
        sent_at=None,
        attempts=0,
        resends=0,
    )
