"""Correcting a recipient's address, and sending the mail there.

Sending a recipient's mail once more, or the mail to all who have not claimed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from largesse.base.email import ERASED_DOMAIN, email_key, is_erased
from largesse.base.errors import InvalidRequest, TooManyRequests
from largesse.customers.principal import Principal
from largesse.db.pool import Connection, Row, commit_as_one
from largesse.encryption.chain import Chain
from largesse.events.order_changes import record_changes
from largesse.jobs.notifier import notify
from largesse.jobs.outbox import lock_mail_job
from largesse.lines.states import State
from largesse.lines.store import readdress_lines
from largesse.mail.messages import RANK_GAP_S, RANKED_TOGETHER
from largesse.mail.order_mail import RecipientDelivery
from largesse.orders.acts import record_resends
from largesse.orders.lookup import find_own_order
from largesse.orders.marks import changing_orders
from largesse.reports.updates import forget_recipient


async def correct_address(
    connection: Connection,
    chain: Chain,
    principal: Principal,
    reference: str,
    email: str,
    corrected: str,
    *,
    address: str | None = None,
) -> None:
    """Has the recipient of an order who is at `email` be at `corrected`, in its normal form, and their mail go there.

    Mail that has left is sent again, with the same codes; what has not left goes there at once. The audit log records who
    asked, from `address`. `chain` marks the order anew. Call it inside a transaction.

    Raises NotFound for an unknown order, OtherServiceAccount for one that another placed, TooManyRequests as `resend`, and
    InvalidRequest where nobody of the order is at `email`, somebody is at `corrected`, a gift was claimed, or the mail is just leaving.
    """
    await commit_as_one(connection)
    order = await find_own_order(connection, principal, reference)
    key = (order["customer_id"], order["id"])
    async with changing_orders(connection, chain, key[0], [key[1]], waits=True):
        has_left = await _correct(connection, key, email, corrected)
    await forget_recipient(connection, order["customer_id"], [order["id"]], [(email, None)])
    if has_left:
        await resend(connection, principal, reference, corrected, address=address)


async def _correct(connection: Connection, key: tuple[int, int], email: str, corrected: str) -> bool:
    """Changes the address of lines and messages; returns whether the mail has left."""
    # Lines before the mail job, as a cancellation and an erasure lock them.
    lines = await connection.fetch(
        "SELECT number, recipient_email FROM lines WHERE customer_id = $1 AND order_id = $2 ORDER BY number FOR UPDATE",
        *key,
    )
    await lock_mail_job(connection, key)
    numbers = [line["number"] for line in lines if _is_at(line["recipient_email"], email)]
    if not numbers:
        raise InvalidRequest("`email` is no recipient of this order.")
    if any(_is_at(line["recipient_email"], corrected) for line in lines):
        raise InvalidRequest("Somebody at that address is a recipient of this order already.")
    if await connection.fetchval(
        """
        SELECT EXISTS (
            SELECT FROM line_states
            WHERE customer_id = $1 AND order_id = $2 AND number = ANY($3::int[]) AND state <> 'cancelled')
        """,
        *key,
        numbers,
    ):
        raise InvalidRequest("This recipient has claimed the gift.")
    has_left = await _move_mail(connection, key, email, corrected)
    await readdress_lines(connection, *key, numbers, corrected)
    return has_left


async def _move_mail(connection: Connection, order: tuple[int, int], email: str, corrected: str) -> bool:
    """Has the recipient's messages be to the other address; whether the last of them has left."""
    rows = await connection.fetch(
        """
        SELECT id, email, edition, state IN ('pending', 'held') AS waits, leased_until > clock_now() AS is_leaving
        FROM messages WHERE customer_id = $1 AND order_id = $2 AND kind = 'gift' ORDER BY edition FOR UPDATE
        """,
        *order,
    )
    own = [row for row in rows if _is_at(row["email"], email)]
    if any(row["is_leaving"] and row["waits"] for row in own):
        raise InvalidRequest("The mail to this recipient is just leaving. Try again in a minute.")
    await connection.execute(
        "UPDATE messages SET email = $3 WHERE customer_id = $1 AND id = ANY($2::bigint[])",
        order[0],
        [row["id"] for row in own],
        corrected,
    )
    return bool(own) and not own[-1]["waits"]


def _is_at(email: str | None, asked: str) -> bool:
    return email is not None and email_key(email) == email_key(asked.strip())


MAX_RESENDS_A_DAY = 5  # of one recipient of one order
RESENT_TO_ALL_AFTER_H = 24  # hours between two mails to a recipient when an order is sent again to all
_DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Unclaimed:
    """The recipients of an order who have claimed nothing."""

    count: int  # who may be mailed again now
    left_out: int  # who may not: their mail has not left, or they were mailed again a short while ago
    last_at: datetime | None  # the last mail to who may
    again_at: datetime | None  # when the first of those left out may be, where that is known


async def resend(
    connection: Connection, principal: Principal, reference: str, email: str, *, address: str | None = None
) -> RecipientDelivery:
    """Sends the mail of the recipient at `email` once more, as a message of its own. The audit log records who asked, from `address`.

    Call it inside a transaction.

    Raises NotFound for an unknown order, OtherServiceAccount for one that another placed, InvalidRequest when the address
    is no recipient of it or the first mail has not left yet, TooManyRequests after MAX_RESENDS_A_DAY in 24 hours.
    """
    await commit_as_one(connection)
    found = await find_own_order(connection, principal, reference)
    order = (found["customer_id"], found["id"])
    first = await _own_message(connection, order, email)
    await _hold_to_limits(connection, order, first["email"])
    cancelled, _ = await _moved_lines(connection, order)
    row = await connection.fetchrow(
        """
        INSERT INTO messages
            (customer_id, order_id, environment, edition, email, name, line_numbers, due_at, rank_at, created_at)
        SELECT customer_id, order_id, environment, edition + 1, email, name, standing, now, now, now
        FROM messages, (SELECT clock_now()) AS clock (now), LATERAL (SELECT ARRAY(
            SELECT line FROM unnest(line_numbers) AS line WHERE line <> ALL ($4::int[]) ORDER BY line)) AS uncancelled (standing)
        WHERE customer_id = $1 AND order_id = $2 AND email = $3 AND kind = 'gift' AND standing <> '{}' ORDER BY edition DESC LIMIT 1
        RETURNING id, due_at, edition, cardinality(line_numbers) AS code_count
        """,
        *order,
        first["email"],
        cancelled,
    )
    if row is None:
        raise InvalidRequest("The codes of this recipient were cancelled.")
    await record_resends(connection, principal, address, found["id"], [row["id"]])
    await record_changes(connection, [order])
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


async def resend_unclaimed(
    connection: Connection, principal: Principal, reference: str, *, address: str | None = None
) -> int:
    """Sends the mail of every recipient who has claimed nothing once more, with the codes that were not voided; returns how many.

    Left out is whose mail has not left yet, and who was sent it again within RESENT_TO_ALL_AFTER_H hours. The audit log
    records who asked, from `address`. Call it inside a transaction.

    Raises NotFound for an unknown order, OtherServiceAccount for one that another placed.
    """
    await commit_as_one(connection)
    found = await find_own_order(connection, principal, reference)
    order = (found["customer_id"], found["id"])
    # As `resend`, which locks one of them.
    await connection.execute(
        """
        SELECT FROM messages WHERE customer_id = $1 AND order_id = $2 AND kind = 'gift' AND edition = 0
        ORDER BY id FOR UPDATE
        """,
        *order,
    )
    rows = await connection.fetch(
        f"""
        WITH {_UNCLAIMED}, wanted AS (
            SELECT *, row_number() OVER (ORDER BY line_numbers[1]) - 1 AS place FROM unclaimed WHERE may_go)
        INSERT INTO messages
            (customer_id, order_id, environment, edition, email, name, line_numbers, due_at, rank_at, created_at)
        SELECT $1, $2, environment, edition + 1, email, name, standing, now,
               now + (place / $7::int) * $8::float8 * interval '1 second', now
        FROM wanted, (SELECT clock_now()) AS clock (now) ORDER BY place
        RETURNING id
        """,  # noqa: S608 - a constant
        *await _of_unclaimed(connection, order),
        RANKED_TOGETHER,
        RANK_GAP_S,
    )
    if rows:
        await record_resends(connection, principal, address, found["id"], [row["id"] for row in rows])
        await record_changes(connection, [order])
        await notify(connection)
    return len(rows)


async def count_unclaimed(connection: Connection, principal: Principal, reference: str) -> Unclaimed:
    """Returns whom `resend_unclaimed` would mail now. Raises as it does."""
    found = await find_own_order(connection, principal, reference)
    row = await connection.fetchrow(
        f"""
        WITH {_UNCLAIMED}
        SELECT count(*) FILTER (WHERE may_go) AS count, count(*) FILTER (WHERE NOT may_go) AS left_out,
               max(created_at) FILTER (WHERE may_go) AS last_at,
               min(created_at) FILTER (WHERE was_resent) + $6 * interval '1 hour' AS again_at
        FROM unclaimed
        """,  # noqa: S608 - a constant
        *await _of_unclaimed(connection, (found["customer_id"], found["id"])),
    )
    assert row is not None, "it counts"
    return Unclaimed(**row)


# A customer and its order, by id.
_OrderKey = tuple[int, int]

# The latest mail to each recipient who has claimed nothing: `standing` are their codes that were not voided, `was_resent` says that
# it was sent again a short while ago, `may_go` whether it may be sent again to all.
_UNCLAIMED = """
    latest AS (
        SELECT DISTINCT ON (email) environment, edition, email, name, state, line_numbers, created_at
        FROM messages WHERE customer_id = $1 AND order_id = $2 AND kind = 'gift' ORDER BY email, edition DESC
    ), standing AS (
        SELECT *, ARRAY(SELECT line FROM unnest(line_numbers) AS line WHERE line <> ALL ($4::int[]) ORDER BY line) AS standing,
               edition > 0 AND created_at > (SELECT clock_now()) - $6 * interval '1 hour' AS was_resent
        FROM latest WHERE NOT line_numbers && $5::int[] AND email NOT LIKE $3
    ), unclaimed AS (
        SELECT *, state NOT IN ('pending', 'held') AND NOT was_resent AS may_go FROM standing
        WHERE cardinality(standing) > 0)
"""


async def _of_unclaimed(connection: Connection, order: _OrderKey) -> tuple[object, ...]:
    """The values of _UNCLAIMED."""
    cancelled, claimed = await _moved_lines(connection, order)
    return (*order, f"%@{ERASED_DOMAIN}", cancelled, claimed, RESENT_TO_ALL_AFTER_H)


async def _moved_lines(connection: Connection, order: _OrderKey) -> tuple[list[int], list[int]]:
    """The numbers of the order's lines that were cancelled, and of those that were claimed."""
    rows = await connection.fetch(
        "SELECT number, state FROM line_states WHERE customer_id = $1 AND order_id = $2", *order
    )
    cancelled = {row["number"] for row in rows if row["state"] == State.CANCELLED}
    return list(cancelled), [row["number"] for row in rows if row["number"] not in cancelled]


async def _own_message(connection: Connection, order: _OrderKey, email: str) -> Row:
    """The order's own message to that address, locked: that makes resends of one recipient wait for each other."""
    rows = await connection.fetch(
        """
        SELECT id, email, name FROM messages
        WHERE customer_id = $1 AND order_id = $2 AND kind = 'gift' AND edition = 0
        """,
        *order,
    )
    asked = email_key(email.strip())
    first = next((row for row in rows if email_key(row["email"]) == asked), None)
    if first is None:
        if await _is_scheduled(connection, order):
            raise InvalidRequest("The order's mail has not left yet.")
        raise InvalidRequest("`email` is no recipient of this order.")
    if is_erased(first["email"]):
        raise InvalidRequest("`email` stands for a recipient whose data was erased.")
    await connection.execute(
        "SELECT FROM messages WHERE customer_id = $1 AND id = $2 FOR UPDATE", order[0], first["id"]
    )
    return first


async def _hold_to_limits(connection: Connection, order: _OrderKey, email: str) -> None:
    row = await connection.fetchrow(
        """
        SELECT bool_or(state IN ('pending', 'held')) AS under_way,
               count(*) FILTER (WHERE edition > 0 AND created_at > now - interval '1 day') AS resends,
               ceil(extract(epoch FROM interval '1 day' + min(created_at)
                   FILTER (WHERE edition > 0 AND created_at > now - interval '1 day') - min(now)))::int AS wait_s
        FROM messages, (SELECT clock_now()) AS clock (now)
        WHERE customer_id = $1 AND order_id = $2 AND email = $3 AND kind = 'gift'
        """,
        *order,
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


async def _is_scheduled(connection: Connection, order: _OrderKey) -> bool:
    waits: bool = await connection.fetchval(
        """
        SELECT EXISTS (SELECT FROM mail_jobs WHERE customer_id = $1 AND order_id = $2 AND fanned_out_at IS NULL)
        """,
        *order,
    )
    return waits
