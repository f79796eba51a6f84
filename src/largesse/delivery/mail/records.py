"""How the mail of an order is doing, and sending one of them again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from largesse.base.email import MAX_EMAIL, address_key
from largesse.base.errors import InvalidRequest, TooManyRequests
from largesse.database import Connection
from largesse.delivery.queue import notify
from largesse.identity import Principal
from largesse.orders.acts import record_resend
from largesse.orders.finding import find_order, find_own_order
from largesse.orders.lines import LineRecord, read_line_records

MAX_RESENDS_A_DAY = 5  # of one recipient of one order
_DAY_S = 86_400


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


class Resend(msgspec.Struct, rename="camel"):
    """Body of POST /orders/{reference}/resend."""

    email: Annotated[
        str, Meta(max_length=MAX_EMAIL, description="A recipient of the order", examples=["sam@example.com"])
    ]


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


async def resend(
    connection: Connection,
    principal: Principal,
    reference: str,
    body: Resend,
    *,
    address: str | None = None,
) -> RecipientDelivery:
    """Sends a recipient's mail once more, as a message of its own. Who asked, from `address`, is kept.

    Call it inside a transaction.

    Raises NotFound for an unknown order, OtherServiceAccount for one that another placed, InvalidRequest when the address
    is no recipient of it or the first mail has not left yet, TooManyRequests after MAX_RESENDS_A_DAY in 24 hours.
    """
    order_id = (await find_own_order(connection, principal, reference))["id"]
    # The lock on the order's own message makes resends of one recipient wait for each other.
    rows = await connection.fetch(
        "SELECT id, email, name FROM messages WHERE order_id = $1 AND kind = 'gift' AND edition = 0", order_id
    )
    asked = address_key(body.email.strip())
    first = next((row for row in rows if address_key(row["email"]) == asked), None)
    if first is None:
        if await _is_scheduled(connection, order_id):
            raise InvalidRequest("The order's mail has not left yet.")
        raise InvalidRequest("`email` is no recipient of this order.")
    await connection.execute("SELECT FROM messages WHERE id = $1 FOR UPDATE", first["id"])
    await _hold_to_limits(connection, order_id, first["email"])
    row = await connection.fetchrow(
        """
        INSERT INTO messages (order_id, environment, edition, email, name, line_numbers, due_at, rank_at, created_at)
        SELECT order_id, environment, edition + 1, email, name, standing, now, now, now
        FROM messages, (SELECT clock_now()) AS clock (now), LATERAL (SELECT ARRAY(
            SELECT line FROM unnest(line_numbers) AS line WHERE NOT EXISTS (
                SELECT FROM line_states AS states
                WHERE states.order_id = $1 AND states.number = line AND states.state = 'cancelled')
            ORDER BY line)) AS uncancelled (standing)
        WHERE order_id = $1 AND email = $2 AND kind = 'gift' AND standing <> '{}' ORDER BY edition DESC LIMIT 1
        RETURNING id, due_at, edition, cardinality(line_numbers) AS code_count
        """,
        order_id,
        first["email"],
    )
    if row is None:
        raise InvalidRequest("The codes of this recipient were cancelled.")
    await record_resend(connection, principal, address, order_id, row["id"])
    await notify(connection)
    return RecipientDelivery(
        email=first["email"],
        name=first["name"],
        code_count=row["code_count"],
        state="pending",
        reason=None,
        fault=None,
        due_at=row["due_at"],
        sent_at=None,
        attempts=0,
        resends=row["edition"],
    )


async def _hold_to_limits(connection: Connection, order_id: int, email: str) -> None:
    row = await connection.fetchrow(
        """
        SELECT bool_or(state IN ('pending', 'held')) AS under_way,
               count(*) FILTER (WHERE edition > 0 AND created_at > now - interval '1 day') AS resends,
               ceil(extract(epoch FROM interval '1 day' + min(created_at)
                   FILTER (WHERE edition > 0 AND created_at > now - interval '1 day') - min(now)))::int AS wait_s
        FROM messages, (SELECT clock_now()) AS clock (now) WHERE order_id = $1 AND email = $2 AND kind = 'gift'
        """,
        order_id,
        email,
    )
    assert row is not None
    if row["under_way"]:
        raise InvalidRequest("The mail to this recipient has not left yet.")
    if row["resends"] >= MAX_RESENDS_A_DAY:
        raise TooManyRequests(
            f"A recipient's mail is sent again at most {MAX_RESENDS_A_DAY} times a day.",
            retry_after_s=min(row["wait_s"], _DAY_S),
        )


async def _is_scheduled(connection: Connection, order_id: int) -> bool:
    waits: bool = await connection.fetchval(
        "SELECT EXISTS (SELECT FROM mail_jobs WHERE order_id = $1 AND fanned_out_at IS NULL)", order_id
    )
    return waits


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
