"""The history of an order after it was placed: who did what, and which recipient it was about."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from largesse.base.email import is_erased
from largesse.customers.principal import Principal
from largesse.db.pool import Connection

MOST_ACTS = 100
_RECORD = """
    INSERT INTO order_acts
        (customer_id, order_id, act, message_id, line_number, codes, due_at, was_due_at, service_account_id, api_key_id,
         user_id, address, acted_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12::text::inet, clock_now())
"""
_RECORD_READING = """
    INSERT INTO code_readings
        (customer_id, order_id, line_number, service_account_id, api_key_id, user_id, address)
    VALUES ($1, $2, $3, $4, $5, $6, $7::text::inet)
"""


class OrderAct(msgspec.Struct, frozen=True):
    """An act of a person or service account on an order. `times` counts equal acts of the same moment.

    `recipient` is the name or address of the recipient that it was about; None if it was about the whole order, or the recipient was erased.
    """

    act: str  # cancel, resend, correct, schedule, or read (codes were read again)
    at: datetime
    by: str  # a person or a service account
    times: int
    recipient: str | None
    email: str | None  # the recipient's address now
    was_email: str | None  # for `correct`: the former address, masked
    codes: int | None  # for `cancel`: how many codes it voided, if that is known
    # For `schedule`: when the order leaves, None if at once; `was_due_at` is when it was to leave before.
    due_at: datetime | None
    was_due_at: datetime | None


class NewAct(msgspec.Struct, frozen=True):
    """An act to record."""

    order_id: int
    act: str
    message_id: int | None = None  # only for `resend`
    line_number: int | None = None  # the first line of the recipient it was about
    codes: int | None = None
    due_at: datetime | None = None
    was_due_at: datetime | None = None


async def record_act(connection: Connection, principal: Principal, address: str | None, act: NewAct) -> None:
    """Records what was done with an order, from a network address."""
    await _record(connection, principal, address, [act])


async def record_resends(
    connection: Connection, principal: Principal, address: str | None, order_id: int, message_ids: Sequence[int]
) -> None:
    """Records that mail to recipients was sent again, with the ids of the new messages."""
    acts = [NewAct(order_id, "resend", message_id) for message_id in message_ids]
    await _record(connection, principal, address, acts)


async def _record(connection: Connection, principal: Principal, address: str | None, acts: Sequence[NewAct]) -> None:
    who = (principal.service_account_id, principal.key_id, principal.user_id, address)
    await connection.executemany(
        _RECORD,
        [
            (
                principal.customer_id,
                act.order_id,
                act.act,
                act.message_id,
                act.line_number,
                act.codes,
                act.due_at,
                act.was_due_at,
                *who,
            )
            for act in acts
        ],
    )


async def record_reading(
    connection: Connection, principal: Principal, address: str | None, order_id: int, number: int | None = None
) -> None:
    """Records that the codes of an order were read again, or with `number` those of the recipient who has that line."""
    await connection.execute(
        _RECORD_READING,
        principal.customer_id,
        order_id,
        number,
        principal.service_account_id,
        principal.key_id,
        principal.user_id,
        address,
    )


async def list_acts(connection: Connection, customer_id: int, order_id: int) -> list[OrderAct]:
    """Returns what was done with an order after it was placed, newest first, at most one more than MOST_ACTS."""
    acts, corrected = [], set()
    for row in await connection.fetch(_ACTS, customer_id, order_id, MOST_ACTS + 1):
        columns = dict(row)
        number, email = columns.pop("line_number"), row["email"]
        if email is not None and is_erased(email):
            columns |= {"recipient": None, "email": None}
        if (
            row["act"] != "correct" or number in corrected
        ):  # the line stores only the address before the newest correction
            columns["was_email"] = None
        corrected.add(number if row["act"] == "correct" else None)
        acts.append(OrderAct(**columns))
    return acts


async def list_cancelled(connection: Connection, customer_id: int, order_id: int) -> list[datetime]:
    """Returns when people and service accounts cancelled codes of an order, earliest first. Unlike `list_acts`, it has no limit."""
    return [row["acted_at"] for row in await connection.fetch(_CANCELLED, customer_id, order_id)]


async def find_first_schedule(connection: Connection, customer_id: int, order_id: int) -> datetime | None:
    """Returns when an order was to leave before it was first moved; None if it never was."""
    at: datetime | None = await connection.fetchval(_FIRST_SCHEDULE, customer_id, order_id)
    return at


_FIRST_SCHEDULE = """
    SELECT was_due_at FROM order_acts WHERE customer_id = $1 AND order_id = $2 AND act = 'schedule' ORDER BY acted_at LIMIT 1
"""
_CANCELLED = """
    SELECT DISTINCT acted_at FROM order_acts WHERE customer_id = $1 AND order_id = $2 AND act = 'cancel' ORDER BY acted_at
"""
# Acts of the same moment, such as mail to many, are shown as one. `recipient` is then the first by name.
# Rows that may be on a node are read in their own part of the statement.
_ACTS = """
    WITH a AS MATERIALIZED (
        SELECT done.*, coalesce(u.name, s.name, '') AS by, l.recipient_name, l.recipient_email, l.was_email
        FROM (
            SELECT act, acted_at AS at, user_id, service_account_id, message_id, line_number, codes, due_at, was_due_at
            FROM order_acts WHERE customer_id = $1 AND order_id = $2
            UNION ALL
            SELECT 'read', read_at, user_id, service_account_id, NULL, line_number, NULL, NULL, NULL
            FROM code_readings WHERE customer_id = $1 AND order_id = $2) AS done
        LEFT JOIN lines AS l ON l.customer_id = $1 AND l.order_id = $2 AND l.number = done.line_number
        LEFT JOIN users AS u ON u.id = done.user_id
        LEFT JOIN service_accounts AS s ON s.id = done.service_account_id)
    SELECT a.act, a.at, a.by, count(*)::int AS times,
           min(coalesce(m.name, a.recipient_name, m.email, a.recipient_email)) AS recipient,
           min(coalesce(m.email, a.recipient_email)) AS email, min(a.was_email) AS was_email,
           sum(a.codes)::int AS codes, max(a.due_at) AS due_at, max(a.was_due_at) AS was_due_at, a.line_number
    FROM a LEFT JOIN messages AS m ON m.customer_id = $1 AND m.id = a.message_id
    GROUP BY a.act, a.at, a.by, a.user_id, a.service_account_id, a.line_number ORDER BY a.at DESC LIMIT $3
"""
