"""The state of the mail of an order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

import msgspec

from largesse.base.email import email_key
from largesse.customers.principal import Principal
from largesse.db.pool import Connection
from largesse.lines.store import LineRecord, read_line_records
from largesse.mail import store
from largesse.orders.lookup import find_order


class RecipientDelivery(msgspec.Struct, kw_only=True):
    """The state of the mail to one recipient of an order."""

    email: str | None  # none in a code batch
    name: str | None
    code_count: int = 0
    state: str
    reason: str | None = None  # what the mail server said when it did not take it, or why it is held
    fault: str | None = None  # the cause of a refusal: recipient or server
    due_at: datetime
    sent_at: datetime | None = None
    attempts: int = 0
    resends: int = 0  # the rest is about the last one
    lines: list[LineRecord] = []


async def list_order_deliveries(
    connection: Connection, principal: Principal, reference: str, *, offset: int = 0, limit: int = 100
) -> list[RecipientDelivery]:
    """Returns the recipients of an order in the order they were given, each with the state of its mail.

    An order that is not due yet has no messages: its recipients come from its lines. A code batch has an entry for
    each code. Raises NotFound for an order of another customer or environment.
    """
    found = await find_order(connection, principal, reference)
    order = (found["customer_id"], found["id"])
    rows = await connection.fetch(store.LATEST_OF_ORDER, *order, offset, limit)
    lines = await read_line_records(connection, *order)
    if rows:
        return _with_lines([RecipientDelivery(**row) for row in rows], lines)
    job = await connection.fetchrow(store.JOB_OF_ORDER, *order)
    if job is None:
        return [_handed_over(line, found["created_at"]) for _, _, line in lines[offset : offset + limit]]
    waiting = _not_fanned_out(lines, job["due_at"], "scheduled" if job["scheduled"] else "pending")
    return _with_lines(waiting[offset : offset + limit], lines)


async def count_by_state(connection: Connection, customer_id: int, order_id: int) -> dict[str, int]:
    """Returns how many messages of an order are in each state. Each resend counts for itself."""
    rows = await connection.fetch(store.COUNT_BY_STATE, customer_id, order_id)
    return {row["state"]: row["count"] for row in rows}


_Lines = Sequence[tuple[str | None, str | None, LineRecord]]


def _not_fanned_out(lines: _Lines, due_at: datetime, state: str) -> list[RecipientDelivery]:
    """Returns the recipients of an order whose mail job still waits, grouped as the fan-out will group them."""
    recipients: dict[str, RecipientDelivery] = {}
    for email, name, line in lines:
        if email is None:
            continue
        new = RecipientDelivery(email=email, name=name, state="cancelled", due_at=due_at)
        recipient = recipients.setdefault(email_key(email), new)
        recipient.code_count += 1
        if line.cancelled_at is None:
            recipient.state = state
    return list(recipients.values())


def _with_lines(recipients: list[RecipientDelivery], lines: _Lines) -> list[RecipientDelivery]:
    """Returns the recipients, each with the state of their codes."""
    by_recipient: dict[str, list[LineRecord]] = defaultdict(list)
    for email, _, line in lines:
        by_recipient[email_key(email or "")].append(line)
    for recipient in recipients:
        recipient.lines = by_recipient[email_key(recipient.email or "")]
    return recipients


def _handed_over(line: LineRecord, at: datetime) -> RecipientDelivery:
    """Returns the entry for a code of a batch, which the caller has got and no mail contains."""
    return RecipientDelivery(email=None, name=None, code_count=1, state="manual", due_at=at, lines=[line])
