"""Correcting a recipient's address, and sending the mail there."""

from __future__ import annotations

from largesse.base.email import email_key
from largesse.base.errors import InvalidRequest
from largesse.chains.chain import Chain
from largesse.database.pool import Connection, commit_as_one
from largesse.delivery.mail.resending import resend
from largesse.delivery.outbox import lock_mail_job
from largesse.identity.principal import Principal
from largesse.lines.writing import readdress_lines
from largesse.orders.finding import find_own_order
from largesse.orders.marks import changing_orders
from largesse.reports.keeping import forget_recipient


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

    Mail that has left is sent again, with the same codes; what has not left goes there at once. Who asked, from `address`, is
    kept. `chain` marks the order anew. Call it inside a transaction.

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
