"""Corrects a recipient's address, and sends their mail to it."""

from __future__ import annotations

from largesse.base.email import email_key
from largesse.base.errors import InvalidRequest
from largesse.customers.principal import Principal
from largesse.db.pool import Connection, commit_as_one
from largesse.encryption.chain import Chain
from largesse.jobs.outbox import lock_mail_job, withdraw_reminders
from largesse.lines.store import readdress_lines
from largesse.mail import resending_store
from largesse.mail.resending import resend
from largesse.orders.history import NewAct, record_act
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
    """Changes the address of an order's recipient from `email` to `corrected`, which is in normal form, and of their mail.

    Mail that was sent is sent again with the same codes. Other mail goes to the new address. The audit log records who corrected it, from
    `address`. `chain` marks the order again. Call it inside a transaction.

    Raises NotFound for an unknown order, OtherServiceAccount for one that another placed, TooManyRequests as `resend`, and
    InvalidRequest if no recipient has `email`, one has `corrected`, a gift was claimed, or the mail is being sent.
    """
    await commit_as_one(connection)
    order = await find_own_order(connection, principal, reference)
    key = (order["customer_id"], order["id"])
    async with changing_orders(connection, chain, key[0], [key[1]], waits=True):
        number, has_left = await _correct(connection, key, email, corrected)
    await record_act(connection, principal, address, NewAct(key[1], "correct", line_number=number))
    await forget_recipient(connection, order["customer_id"], [order["id"]], [(email, None)])
    if has_left:
        await resend(connection, principal, reference, corrected, address=address)


async def _correct(connection: Connection, key: tuple[int, int], email: str, corrected: str) -> tuple[int, bool]:
    """Changes the address of lines and messages. Returns the first line, and whether the mail was sent."""
    # Locks lines before the mail job, in the same order as a cancellation and an erasure.
    lines = await connection.fetch(resending_store.LOCK_LINES, *key)
    await lock_mail_job(connection, key)
    own = [line for line in lines if _is_at(line["recipient_email"], email)]
    numbers = [line["number"] for line in own]
    if not own:
        raise InvalidRequest("`email` is no recipient of this order.")
    if any(_is_at(line["recipient_email"], corrected) for line in lines):
        raise InvalidRequest("Somebody at that address is a recipient of this order already.")
    if await connection.fetchval(resending_store.HAS_CLAIMED, *key, numbers):
        raise InvalidRequest("This recipient has claimed the gift.")
    await withdraw_reminders(connection, key, numbers)
    has_left = await _move_mail(connection, key, email, corrected)
    await readdress_lines(connection, *key, numbers, own[0]["recipient_email"], corrected)
    return numbers[0], has_left


async def _move_mail(connection: Connection, order: tuple[int, int], email: str, corrected: str) -> bool:
    """Changes the address of the recipient's messages. Returns whether the last of them was sent."""
    rows = await connection.fetch(resending_store.LOCK_MESSAGES, *order)
    own = [row for row in rows if _is_at(row["email"], email)]
    if any(row["is_leaving"] and row["waits"] for row in own):
        raise InvalidRequest("The mail to this recipient is just leaving. Try again in a minute.")
    await connection.execute(resending_store.READDRESS, order[0], [row["id"] for row in own], corrected)
    return bool(own) and not own[-1]["waits"]


def _is_at(email: str | None, asked: str) -> bool:
    return email is not None and email_key(email) == email_key(asked.strip())
