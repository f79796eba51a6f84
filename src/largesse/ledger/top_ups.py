"""Operations on top-ups: customers request and cancel them, operators confirm them when the money has come.

A top-up waits until it is confirmed or cancelled. After its time it counts as expired; money that comes late can still be confirmed.
"""

from __future__ import annotations

from datetime import timedelta

from largesse.base.errors import InvalidRequest, NotFound, OperatorError
from largesse.base.money import label
from largesse.customers.actor import Actor, Transaction
from largesse.customers.roles import Right
from largesse.db.pool import Row
from largesse.ledger import posting
from largesse.ledger.posting import Credit
from largesse.ledger.top_ups_store import (
    CANCEL,
    CONFIRM,
    COUNT_WAITING,
    HAS_OPEN_ACCOUNT,
    INSERT,
    LOCK,
    LOCK_REQUESTS,
    TopUp,
    find_top_up,
)
from largesse.ledger.transfer_references import new_transfer_reference, spelled_reference
from largesse.staff.model import StaffRight

WAITS_FOR = timedelta(days=30)
MAX_WAITING = 20  # of a customer in an environment
_TRIES = 5


async def request_top_up(actor: Actor, account_id: int, amount_minor: int) -> TopUp:
    """Requests a top-up of a funding account.

    Raises NotFound for an account that is closed or not the customer's in this environment, and InvalidRequest for an amount that is not
    positive and when too many top-ups wait.
    """
    if amount_minor <= 0:
        raise InvalidRequest("`amount` must be greater than zero.")
    own = actor.customer_id, actor.environment
    async with actor.transaction(Right.MOVE_FUNDS) as transaction:
        connection = transaction.connection
        await connection.execute(LOCK_REQUESTS, actor.customer_id)
        if not await connection.fetchval(HAS_OPEN_ACCOUNT, *own, account_id):
            raise NotFound("There is no such funding account.")
        if await connection.fetchval(COUNT_WAITING, *own) >= MAX_WAITING:
            raise InvalidRequest(
                f"{MAX_WAITING} top-ups wait already, and no more may: cancel one that will not be paid."
            )
        for _ in range(_TRIES):
            new = (account_id, new_transfer_reference(), amount_minor, actor.user_id, WAITS_FOR)
            if reference := await connection.fetchval(INSERT, *own, *new):
                return await _record(transaction, "top_up.requested", reference)
    raise RuntimeError("every new reference was taken")


async def cancel_top_up(actor: Actor, reference: str) -> TopUp:
    """Cancels a waiting top-up; a cancelled one stays as it is. Raises NotFound, and InvalidRequest for a confirmed one."""
    async with actor.transaction(Right.MOVE_FUNDS) as transaction:
        connection = transaction.connection
        if await connection.fetchval(CANCEL, actor.customer_id, actor.environment, reference):
            return await _record(transaction, "top_up.cancelled", reference)
        top_up = await _find(transaction, reference)
    if top_up.state == "confirmed":
        raise InvalidRequest("The money has come: this top-up is confirmed and cannot be cancelled.")
    return top_up


async def confirm_top_up(
    actor: Actor, reference: str, amount_minor: int | None = None, *, bank_line: bytes | None = None
) -> TopUp:
    """Credits the account of a top-up once, with the amount received if it differs from the requested one. For operators.

    Repeating it with the same amount changes nothing. `bank_line` identifies the line of a bank's file that confirms it. Raises
    OperatorError for an unknown top-up, a cancelled one, and one that was confirmed with another amount.
    """
    async with actor.transaction(StaffRight.MONEY) as begun:
        connection = begun.connection
        row = await connection.fetchrow(LOCK, reference)
        if row is None:
            raise OperatorError(f"there is no top-up {spelled_reference(reference)}")
        transaction = begun.on_behalf_of(row["customer_id"], row["environment"])
        top_up = await _find(transaction, reference)
        amount_minor = _amount_to_credit(top_up, amount_minor)
        if top_up.state == "confirmed":
            return top_up
        await posting.top_up(connection, transaction.entries, top_up.account_id, amount_minor, reference)
        await connection.execute(CONFIRM, top_up.customer_id, reference, amount_minor, bank_line)
        return await _record(transaction, "top_up.confirmed", reference)


async def credit_account(actor: Actor, account: Row, amount_minor: int, reference: str | None) -> Credit:
    """Credits an account that `find_funding_account` returned with money that came without a request. For operators.

    Raises OperatorError as `posting.top_up` does.
    """
    async with actor.on_behalf_of(account["customer_id"], account["environment"]).transaction(
        StaffRight.MONEY
    ) as transaction:
        credit = await posting.top_up(
            transaction.connection, transaction.entries, account["id"], amount_minor, reference
        )
        if credit.is_new:
            subject = f"account {account['customer']}/{account['key']}"
            after = {"amount_minor": amount_minor, "reference": reference, "balance_minor": credit.balance_minor}
            await transaction.record("account.topped_up", subject, after=after)
    return credit


async def _find(transaction: Transaction, reference: str) -> TopUp:
    return await find_top_up(transaction.connection, *transaction.actor.place, reference)


async def _record(transaction: Transaction, act: str, reference: str) -> TopUp:
    """Records an act in the audit log, and returns the top-up as it is after it."""
    top_up = await _find(transaction, reference)
    after = {
        "account_id": top_up.account_id,
        "amount_minor": top_up.amount_minor,
        "credited_minor": top_up.credited_minor,
        "currency": top_up.currency,
    }
    await transaction.record(act, f"top-up {reference}", after=after)
    return top_up


def _amount_to_credit(top_up: TopUp, amount_minor: int | None) -> int:
    """Returns the amount to credit. Raises OperatorError if none may be credited."""
    named = spelled_reference(top_up.reference)
    if top_up.state == "cancelled":
        raise OperatorError(f"top-up {named} was cancelled: if the money came anyway, credit it with `largesse top-up`")
    if amount_minor is None:
        return top_up.amount_minor
    if top_up.credited_minor not in {None, amount_minor}:
        credited = label(top_up.credited_minor, top_up.currency)
        raise OperatorError(f"top-up {named} was confirmed with {credited} already")
    return amount_minor
