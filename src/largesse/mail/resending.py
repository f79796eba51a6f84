"""Sends mail once more: to a recipient, to a few, to all who have not claimed, or to a recipient's corrected address."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from largesse.base.email import ERASED_DOMAIN, email_key, is_erased, typed_key
from largesse.base.errors import InvalidRequest, TooManyRequests
from largesse.customers.actor import Actor
from largesse.customers.principal import Principal
from largesse.customers.roles import Right
from largesse.db.pool import Connection, Row, commit_as_one
from largesse.encryption.chain import Chain
from largesse.events.store import record_changes
from largesse.jobs.notifier import notify
from largesse.jobs.outbox import lock_mail_job, withdraw_reminders
from largesse.lines.states import State, lock_issued
from largesse.lines.store import readdress_lines
from largesse.mail import resending_store
from largesse.mail.recipients import RecipientDelivery
from largesse.mail.store import RANK_GAP_S, RANKED_TOGETHER
from largesse.orders.history import NewAct, record_act, record_resends
from largesse.orders.lookup import find_own_order
from largesse.orders.marks import changing_orders
from largesse.orders.order import is_of_campaign
from largesse.reports.updates import forget_recipient

MAX_RESENDS_A_DAY = 5  # resends to one recipient of one order
MAX_CHOSEN = 100  # recipients who can be chosen at once
RESENT_TO_ALL_AFTER_H = 24  # hours between two mails to a recipient when an order is sent again to all
_DAY_S = 86_400
_UNDER_WAY = "The mail to this recipient has not left yet."
_SENT_MEANWHILE = "The mail to this recipient was sent again meanwhile."


class Unclaimed(msgspec.Struct, frozen=True):
    """The recipients of an order who have claimed nothing."""

    count: int  # recipients who can be mailed again now
    left_out: int  # recipients who cannot: their mail has not left, or they were mailed again recently
    last_at: datetime | None  # when the last of those who can was mailed
    again_at: datetime | None  # when the first of the others can be mailed again, if known


class SentMeanwhileError(InvalidRequest):
    """The mail was sent again once since it was seen. `delivery` is the state of the mail that was sent."""

    def __init__(self, detail: str, delivery: RecipientDelivery) -> None:
        super().__init__(detail)
        self.delivery = delivery


class Chosen(msgspec.Struct, frozen=True):
    """The result of a resend to chosen recipients."""

    count: int  # recipients who are mailed again
    left_out: int  # recipients who cannot be mailed again now


async def resend(
    connection: Connection,
    principal: Principal,
    reference: str,
    email: str,
    *,
    seen: int | None = None,
    address: str | None = None,
) -> RecipientDelivery:
    """Sends the mail of the recipient at `email` once more, as a new message. The audit log records who did it, from `address`.

    `seen` is how often it had been sent again when the person saw it. Call it inside a transaction.

    Raises NotFound for an unknown order, OtherServiceAccount for one that another placed, InvalidRequest if the address
    is not one of its recipients, the last mail has not left yet or is not the one that was seen (SentMeanwhileError if it is the next one),
    TooManyRequests after MAX_RESENDS_A_DAY in 24 hours.
    """
    await commit_as_one(connection)
    found = await find_own_order(connection, principal, reference)
    order = await _lock_mail(connection, found)
    first = await _own_message(connection, order, email)
    await _hold_to_limits(connection, order, first["email"], seen)
    cancelled, _ = await _moved_lines(connection, order)
    row = await connection.fetchrow(resending_store.RESEND, *order, first["email"], cancelled)
    if row is None:
        raise InvalidRequest("The codes of this recipient were cancelled.")
    await _note(connection, principal, address, order, [row])
    return RecipientDelivery(
        email=first["email"],
        name=first["name"],
        code_count=row["code_count"],
        state="pending",
        due_at=row["due_at"],
        resends=row["edition"],
    )


async def resend_unclaimed(
    connection: Connection, principal: Principal, reference: str, *, address: str | None = None
) -> int:
    """Sends the mail of every recipient who has claimed nothing once more, with the codes that were not voided. Returns how many.

    Skips recipients whose mail has not left yet, or was sent again within RESENT_TO_ALL_AFTER_H hours. The audit log records who did it, from
    `address`. Call it inside a transaction.

    Raises NotFound for an unknown order, OtherServiceAccount for one that another placed.
    """
    await commit_as_one(connection)
    found = await find_own_order(connection, principal, reference)
    order = await _lock_mail(connection, found)
    # `resend` locks one of these messages.
    await connection.execute(resending_store.LOCK_FIRST_MESSAGES, *order)
    rows = await connection.fetch(
        resending_store.RESEND_UNCLAIMED, *await _of_unclaimed(connection, order), RANKED_TOGETHER, RANK_GAP_S
    )
    await _note(connection, principal, address, order, rows)
    return len(rows)


async def resend_chosen(actor: Actor, reference: str, numbers: Mapping[int, int | None]) -> Chosen:
    """Sends the mail of several recipients once more, as `resend` does for one. `numbers` has a line of each, with the value of `seen` for it.

    Skips recipients who have claimed every code, or got MAX_RESENDS_A_DAY resends in 24 hours. Also skips recipients if their last mail has not
    left yet, or is not the one that was seen.

    Raises NotFound for an unknown order, OtherServiceAccount for one that another placed, and InvalidRequest for more than MAX_CHOSEN.
    """
    async with actor.transaction(Right.SEND) as transaction:
        if len(numbers) > MAX_CHOSEN:
            raise InvalidRequest(f"At most {MAX_CHOSEN} recipients are mailed again at once.")
        connection = transaction.connection
        await commit_as_one(connection)
        found = await find_own_order(connection, actor.principal, reference)
        order = await _lock_mail(connection, found)
        emails = await connection.fetch(resending_store.RECIPIENTS_CHOSEN, *order, list(numbers), f"%@{ERASED_DOMAIN}")
        wanted = {email_key(row["recipient_email"]): numbers[row["number"]] for row in emails}
        # `resend` locks one of these messages.
        rows = await connection.fetch(resending_store.LOCK_FIRST_MESSAGES, *order)
        editions = {row["email"]: row["edition"] for row in await connection.fetch(resending_store.EDITIONS, *order)}
        cancelled, claimed = await _moved_lines(connection, order)
        sent = await connection.fetch(
            resending_store.RESEND_CHOSEN,
            *order,
            [one for one in (row["email"] for row in rows) if wanted.get(email_key(one), -1) in {None, editions[one]}],
            cancelled,
            [*cancelled, *claimed],
            MAX_RESENDS_A_DAY,
            RANKED_TOGETHER,
            RANK_GAP_S,
        )
        await _note(connection, actor.principal, actor.acting.who.address, order, sent)
        if sent:
            await transaction.record("order.resent", f"order {reference}", after={"recipients": len(sent)})
    return Chosen(len(sent), len(wanted) - len(sent))


async def count_unclaimed(connection: Connection, principal: Principal, reference: str) -> Unclaimed:
    """Returns the recipients that `resend_unclaimed` would mail now. Raises as it does."""
    found = await find_own_order(connection, principal, reference)
    row = await connection.fetchrow(
        resending_store.COUNT_UNCLAIMED, *await _of_unclaimed(connection, (found["customer_id"], found["id"]))
    )
    assert row is not None, "it counts"
    return Unclaimed(**row)


# A customer and its order, by id.
_OrderKey = tuple[int, int]


async def _lock_mail(connection: Connection, order: Row) -> _OrderKey:
    """Returns the key of an order. Locks its mail job, or the lines of a campaign, whose mail has no job.

    A cancellation locks them too: either this sees the cancellation, or the cancellation sees the new mail.
    """
    key = (order["customer_id"], order["id"])
    if is_of_campaign(order):
        await lock_issued(connection, *key)
    else:
        await lock_mail_job(connection, key)
    return key


async def _note(
    connection: Connection, principal: Principal, address: str | None, order: _OrderKey, messages: Sequence[Row]
) -> None:
    """Records who sent messages again, and wakes the workers. Does nothing if there are no messages."""
    if messages:
        await record_resends(connection, principal, address, order[1], [row["id"] for row in messages])
        await record_changes(connection, [order])
        await notify(connection)


async def _of_unclaimed(connection: Connection, order: _OrderKey) -> tuple[object, ...]:
    """Returns the arguments of the statements about recipients who have claimed nothing."""
    cancelled, claimed = await _moved_lines(connection, order)
    return (*order, f"%@{ERASED_DOMAIN}", cancelled, claimed, RESENT_TO_ALL_AFTER_H)


async def _moved_lines(connection: Connection, order: _OrderKey) -> tuple[list[int], list[int]]:
    """Returns the numbers of the order's lines that were cancelled, and of those that were claimed."""
    rows = await connection.fetch(resending_store.LINE_STATES, *order)
    cancelled = {row["number"] for row in rows if row["state"] == State.CANCELLED}
    return list(cancelled), [row["number"] for row in rows if row["number"] not in cancelled]


async def _own_message(connection: Connection, order: _OrderKey, email: str) -> Row:
    """Locks and returns the order's first message to that address, so that resends to a recipient wait for each other."""
    rows = await connection.fetch(resending_store.FIRST_MESSAGES, *order)
    asked = typed_key(email)
    first = next((row for row in rows if email_key(row["email"]) == asked), None)
    if first is None:
        if await connection.fetchval(resending_store.IS_SCHEDULED, *order):
            raise InvalidRequest("The order's mail has not left yet.")
        # Who was cancelled before the mail left got no message.
        if any(
            _is_at(line["recipient_email"], email) for line in await connection.fetch(resending_store.LINES, *order)
        ):
            raise InvalidRequest("The codes of this recipient were cancelled.")
        raise InvalidRequest("`email` is not a recipient of this order.")
    if is_erased(first["email"]):
        raise InvalidRequest("`email` stands for a recipient whose data was erased.")
    await connection.execute(resending_store.LOCK_MESSAGE, order[0], first["id"])
    return first


async def _hold_to_limits(connection: Connection, order: _OrderKey, email: str, seen: int | None) -> None:
    row = await connection.fetchrow(resending_store.RESENDS, *order, email)
    assert row is not None
    if seen is not None and row["edition"] == seen + 1:
        sent = await connection.fetchrow(resending_store.LATEST, *order, email)
        assert sent is not None
        raise SentMeanwhileError(_UNDER_WAY if row["under_way"] else _SENT_MEANWHILE, RecipientDelivery(**sent))
    if row["under_way"]:
        raise InvalidRequest(_UNDER_WAY)
    if seen is not None and row["edition"] != seen:
        raise InvalidRequest(_SENT_MEANWHILE)
    if row["resends"] >= MAX_RESENDS_A_DAY:
        raise TooManyRequests(
            f"A recipient's mail is sent again at most {MAX_RESENDS_A_DAY} times a day.",
            retry_after_s=min(row["wait_s"], _DAY_S),
        )


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
        raise InvalidRequest("`email` is not a recipient of this order.")
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
