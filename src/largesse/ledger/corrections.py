"""Corrections of balances: one member of staff proposes a correction, and another approves it, which posts it.

Nobody decides about their own correction. A decision locks the correction, so that it is posted only once.
docs/decisions/0083-corrections-by-two-people.md says what is posted.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import msgspec

from largesse.base.errors import InsufficientBalance, InvalidRequest, NotFound
from largesse.base.money import MAX_AMOUNT, label, to_minor
from largesse.customers.actor import Actor, Transaction
from largesse.customers.staff_roles import StaffRight
from largesse.db.pool import Connection, Row
from largesse.db.statements import read_now
from largesse.events.store import record_changes
from largesse.ledger import corrections_store as store
from largesse.ledger.corrections_store import CorrectableAccount, Correction, find_correctable, find_correction
from largesse.ledger.own_accounts import own_accounts
from largesse.ledger.payment_sources import payment_source
from largesse.ledger.posting import NEXT_TRANSFER_ID, Entry, lock_accounts, post
from largesse.staff.store import hold_right

WAITS_FOR = timedelta(days=14)
MAX_WAITING = 500
LONGEST_REASON = 500
KINDS = ("credit", "debit", "refund")


class OwnCorrection(InvalidRequest, rule="Nobody approves or declines their own correction."):
    """The member of staff proposed the correction, so somebody else must decide."""


class ProposerLeft(
    InvalidRequest, rule="Who proposed the correction may no longer correct balances. Decline it, and propose it again."
):
    """The member of staff who proposed the correction was deactivated or lost the right."""


class CorrectionEnded(InvalidRequest):
    """The correction no longer waits: it was decided, withdrawn, or has expired. `state` says which."""

    def __init__(self, state: str) -> None:
        super().__init__(f"The correction is {state}.")
        self.state = state


class MoreThanOrder(InvalidRequest):
    """The refund is above what is left to refund of the claimed codes of its order, `left_minor`."""

    def __init__(self, left_minor: int, currency: str) -> None:
        super().__init__(
            f"At most {label(left_minor, currency)} of the order can be refunded. Cancel gifts that nobody has claimed instead."
        )
        self.left_minor = left_minor


class PaidElsewhere(InvalidRequest, rule="The order was paid from another account."):
    """The order to refund was paid from another account."""


class NoSuchOrder(NotFound, rule="The customer has no order with that reference."):
    """The customer has no order with the reference."""


class AccountClosed(InvalidRequest, rule="The account is closed: open it again first."):
    """The account is closed, and takes no money."""


class TooManyWaiting(InvalidRequest, rule=f"{MAX_WAITING} corrections wait already. Decide some first."):
    """The highest number of corrections waits already."""


class NewCorrection(msgspec.Struct, frozen=True):
    """A correction to propose. A refund names the order."""

    account_id: int
    kind: str
    amount_minor: int
    reason: str
    order_reference: str | None = None


async def propose_correction(actor: Actor, new: NewCorrection) -> Correction:
    """Proposes a correction; nothing is posted.

    Raises NotFound for an account, NoSuchOrder, PaidElsewhere, MoreThanOrder, AccountClosed, TooManyWaiting, and InvalidRequest for an amount that
    is not positive or too large, a reason that is missing or too long, and a refund without an order.
    """
    async with actor.transaction(StaffRight.MONEY) as begun:
        connection = begun.connection
        account = await find_correctable(connection, new.account_id)
        _require_sound(new, account)
        # A customer's corrections run one at a time, so that two refunds together are not more than an order cost.
        await connection.fetch(store.LOCK_CUSTOMER, account.customer_id)
        if await store.count_waiting(connection) >= MAX_WAITING:
            raise TooManyWaiting
        if new.order_reference is not None:
            await _require_refundable(connection, account, new.order_reference, new.amount_minor)
        correction_id: int = await connection.fetchval(
            store.INSERT,
            account.customer_id,
            account.environment,
            new.account_id,
            new.kind,
            new.amount_minor,
            new.order_reference,
            new.reason,
            _member(actor),
            WAITS_FOR,
        )
        correction = await find_correction(connection, correction_id)
        transaction = begun.on_behalf_of(account.customer_id, account.environment)
        await _record(transaction, "correction.proposed", correction)
    return correction


async def approve_correction(actor: Actor, correction_id: int) -> Correction:
    """Posts a correction that another member of staff proposed.

    Raises NotFound, OwnCorrection, CorrectionEnded, ProposerLeft, and AccountClosed. Raises InsufficientBalance for a debit of more than the
    account holds. Raises MoreThanOrder if codes of the order were cancelled since the proposal.
    """
    async with _deciding(actor, correction_id) as (transaction, correction):
        if not await hold_right(transaction.connection, correction.proposed_by, StaffRight.MONEY):
            raise ProposerLeft
        transfer_id = await _post(transaction, correction)
        return await _decide(transaction, correction, "approved", transfer_id)


async def decline_correction(actor: Actor, correction_id: int) -> Correction:
    """Declines a correction that another member of staff proposed. Raises NotFound, OwnCorrection and CorrectionEnded."""
    async with _deciding(actor, correction_id) as (transaction, correction):
        return await _decide(transaction, correction, "declined")


async def withdraw_correction(actor: Actor, correction_id: int) -> Correction:
    """Withdraws a correction of the member's own. Raises NotFound, also for another's, and CorrectionEnded."""
    async with _deciding(actor, correction_id, own=True) as (transaction, correction):
        return await _decide(transaction, correction, "withdrawn")


@asynccontextmanager
async def _deciding(
    actor: Actor, correction_id: int, *, own: bool = False
) -> AsyncIterator[tuple[Transaction, Correction]]:
    """Locks a waiting correction, of another member or of the actor's own, and yields it with the transaction of its customer."""
    async with actor.transaction(StaffRight.MONEY) as begun:
        correction = await _lock(begun.connection, correction_id)
        is_own = correction.proposed_by == _member(actor)
        if own and not is_own:
            raise NotFound("You have no such correction.")
        if is_own and not own:
            raise OwnCorrection
        _require_waiting(correction)
        yield begun.on_behalf_of(correction.customer_id, correction.environment), correction


def _member(actor: Actor) -> int:
    """Returns the id of the member of staff. A command is no member of staff, and cannot correct anything."""
    if actor.staff is None:
        raise InvalidRequest("Only two members of staff together can correct a balance, on pages of the back office.")
    member: int = actor.staff.person_id
    return member


def _require_sound(new: NewCorrection, account: CorrectableAccount) -> None:
    if new.kind not in KINDS or (new.kind == "refund") != (new.order_reference is not None):
        raise InvalidRequest("A correction is a credit, a debit, or the refund of an order.")
    if not 0 < new.amount_minor <= to_minor(MAX_AMOUNT, account.currency):
        raise InvalidRequest("The amount must be greater than zero, and no larger than the largest amount.")
    if not 0 < len(new.reason) <= LONGEST_REASON:
        raise InvalidRequest(f"The reason must have 1 to {LONGEST_REASON} characters.")
    if account.is_closed and new.kind != "debit":
        raise AccountClosed


async def _require_refundable(
    connection: Connection, account: CorrectableAccount, reference: str, amount_minor: int, correction_id: int = 0
) -> Row:
    """Returns the order of a refund. Raises NoSuchOrder, PaidElsewhere and MoreThanOrder."""
    order: Row | None = await connection.fetchrow(store.ORDER, account.customer_id, reference)
    if order is None or order["environment"] != account.environment:
        raise NoSuchOrder
    payer_id = payment_source(order["account_id"]).payer_id(account.account_id if account.kind == "receivable" else 0)
    if payer_id != account.account_id or order["currency"] != account.currency:
        raise PaidElsewhere
    given_back = await connection.fetchval(store.GIVEN_BACK, account.customer_id, reference, correction_id)
    if amount_minor > (left_minor := max(0, order["claimed_minor"] - given_back)):
        raise MoreThanOrder(left_minor, account.currency)
    return order


async def _lock(connection: Connection, correction_id: int) -> Correction:
    await connection.fetch(store.LOCK, correction_id)
    return await find_correction(connection, correction_id)


def _require_waiting(correction: Correction) -> None:
    if correction.state != "waiting":
        raise CorrectionEnded(correction.state)


async def _post(transaction: Transaction, correction: Correction) -> int:
    """Posts a correction as a transfer between its account and the customer's deposits, or sales for a refund; returns its id."""
    connection, customer_id = transaction.connection, correction.customer_id
    own = await own_accounts(connection, customer_id, correction.environment, correction.currency)
    other_id = own["sales" if correction.kind == "refund" else "deposits"]
    locked = await lock_accounts(connection, customer_id, [correction.account_id, other_id])
    account, order = await find_correctable(connection, correction.account_id), None
    if account.is_closed and correction.kind != "debit":
        raise AccountClosed
    if correction.order_reference is not None:
        order = await _require_refundable(
            connection, account, correction.order_reference, correction.amount_minor, correction.id
        )
    after_minor = account.balance_minor + correction.change_minor
    if account.kind == "funding" and after_minor < 0:
        raise InsufficientBalance(f"The account holds {label(account.balance_minor, account.currency)} only.")
    transfer_id: int = await connection.fetchval(NEXT_TRANSFER_ID)
    entries = [
        Entry(
            customer_id,
            account_id,
            transfer_id,
            "correction",
            None if order is None else order["id"],
            change,
            locked[account_id].balance_minor + change,
            order_reference=correction.order_reference,
        )
        for account_id, change in (
            (correction.account_id, correction.change_minor),
            (other_id, -correction.change_minor),
        )
    ]
    await post(connection, transaction.entries, locked, entries, await read_now(connection))
    if order is not None:
        await record_changes(connection, [(customer_id, order["id"])])
    return transfer_id


async def _decide(
    transaction: Transaction, correction: Correction, state: str, transfer_id: int | None = None
) -> Correction:
    connection, actor = transaction.connection, transaction.actor
    await connection.execute(store.DECIDE, correction.customer_id, correction.id, state, _member(actor), transfer_id)
    decided = await find_correction(connection, correction.id)
    await _record(transaction, f"correction.{state}", decided)
    return decided


async def _record(transaction: Transaction, act: str, correction: Correction) -> None:
    after = {
        "kind": correction.kind,
        "amount_minor": correction.amount_minor,
        "currency": correction.currency,
        "account_id": correction.account_id,
        "order": correction.order_reference,
        "reason": correction.reason,
        "transfer": correction.transfer_id,
    }
    await transaction.record(
        act, f"correction {correction.id}", after={k: v for k, v in after.items() if v is not None}
    )
