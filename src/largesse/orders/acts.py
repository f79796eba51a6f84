"""Operations on placed orders: cancels an order or one of its recipients, and reads its codes again."""

import asyncio
from collections.abc import Sequence
from datetime import datetime

import msgspec

from largesse.budgets.store import give_back
from largesse.customers.access import require_own
from largesse.customers.actor import Actor
from largesse.customers.principal import Principal
from largesse.customers.restrictions import CODES, require_scope
from largesse.customers.roles import Right
from largesse.customers.staff_roles import StaffRight
from largesse.db.pool import Connection, Row, commit_as_one, is_distributed
from largesse.db.statements import read_now
from largesse.encryption.chain import Chain
from largesse.encryption.vault import Vault
from largesse.jobs.outbox import hold_mail_back
from largesse.ledger.own_accounts import own_accounts
from largesse.ledger.payment_sources import payment_source
from largesse.ledger.posting import NEXT_TRANSFER_ID, Entry, lock_accounts, post
from largesse.lines.codes import CODES_AT_ONCE, DrawnCode, IssuedCode, give_codes, open_code
from largesse.lines.states import lock_issued, record_cancelled
from largesse.lines.store import find_recipient_lines
from largesse.orders.history import NewAct, record_act, record_reading
from largesse.orders.lookup import find_order, find_own_order
from largesse.orders.order import SendResponse, is_of_campaign, new_receipt, order_row

_OPEN_LINES = """
    SELECT l.number FROM lines l JOIN orders o ON o.customer_id = l.customer_id AND o.id = l.order_id
    WHERE l.customer_id = $1 AND l.order_id = $2 AND l.number = ANY($3::int[])
      AND (o.scheduled_for IS NULL OR o.scheduled_for <= (SELECT clock_now()))
      AND l.number NOT IN (SELECT number FROM line_states WHERE customer_id = $1 AND order_id = $2)
"""
_CANCELLATION = """
    SELECT count(*) FILTER (WHERE state = 'cancelled') AS cancelled,
           count(*) FILTER (WHERE state <> 'cancelled') AS claimed
    FROM line_states WHERE customer_id = $1 AND order_id = $2
"""
_CODES = """
    SELECT number, sealed FROM lines
    WHERE customer_id = $1 AND order_id = $2 AND ($3::int[] IS NULL OR number = ANY($3)) ORDER BY number
"""


class Cancellation(msgspec.Struct, frozen=True, kw_only=True):
    """An order after its cancellation. Repeating the cancellation changes nothing but `voided_count`."""

    reference: str
    code_count: int
    cancelled_count: int  # codes voided by this cancellation and earlier ones
    voided_count: int  # codes voided by this cancellation
    claimed_count: int  # codes that cannot be voided, as they were claimed before
    refunded_minor: int  # the refunds by this cancellation and earlier ones
    currency: str

    @property
    def returned_minor(self) -> int:
        """The amount that this cancellation refunded, in minor units."""
        return self.refunded_minor // self.cancelled_count * self.voided_count if self.voided_count else 0


async def cancel_order(actor: Actor, principal: Principal, reference: str) -> Cancellation:
    """Cancels the codes of an order that nobody has claimed, and refunds them.

    Raises NotFound for an order of another customer or environment, OtherServiceAccount for one of another service account.
    """
    async with actor.transaction(Right.SEND) as transaction:
        address = actor.acting.who.address
        done = await void_unclaimed(transaction.connection, principal, transaction.entries, reference, address=address)
        if done.voided_count:
            after = {"cancelled": done.voided_count, "refunded_minor": done.returned_minor}
            await transaction.record("order.cancelled", f"order {reference}", after=after)
    return done


async def cancel_recipient(actor: Actor, reference: str, number: int) -> Cancellation:
    """Cancels the unclaimed codes of the recipient who has line `number`, and refunds them. Of a code batch, cancels that code.

    Raises as `cancel_order` does, and NotFound for a number that no line of the order has.
    """
    async with actor.transaction(Right.SEND, StaffRight.DELIVERIES) as transaction:
        done = await void_unclaimed(
            transaction.connection,
            actor.principal,
            transaction.entries,
            reference,
            number=number,
            address=actor.acting.who.address,
        )
        if done.voided_count:
            after = {"line": number, "cancelled": done.voided_count, "refunded_minor": done.returned_minor}
            await transaction.record("order.cancelled", f"order {reference}", after=after)
    return done


async def read_receipt(
    actor: Actor, principal: Principal, vault: Vault, public_url: str, reference: str
) -> SendResponse:
    """Returns the receipt of an order again, with the codes of a batch. Raises as `read_order` does."""
    async with actor.transaction(Right.READ_CODES) as transaction:
        address = actor.acting.who.address
        receipt = await read_order(transaction.connection, principal, vault, public_url, reference, address=address)
        if receipt.codes:
            await transaction.record("codes.read", f"order {reference}")
    return receipt


async def read_recipient_codes(
    actor: Actor, vault: Vault, public_url: str, reference: str, number: int
) -> list[IssuedCode]:
    """Returns the codes, PINs and links that the recipient who has line `number` has not claimed. The reading is recorded.

    Returns none before a scheduled order leaves, and none of a campaign, as only its visitors get codes. Raises NotFound, OtherServiceAccount, and ScopeRequired.
    """
    principal = actor.principal
    async with actor.transaction(Right.READ_CODES) as transaction:
        connection = transaction.connection
        require_scope(principal, CODES)
        order = await find_own_order(connection, principal, reference)
        if is_of_campaign(order):
            return []
        numbers = await find_recipient_lines(connection, order["customer_id"], order["id"], number)
        open_lines = await connection.fetch(_OPEN_LINES, order["customer_id"], order["id"], list(numbers))
        codes = await _read_codes(connection, vault, order, [line["number"] for line in open_lines])
        whose = principal.customer_id if is_distributed(connection) else None
        given = await give_codes(codes, vault, public_url, whose)
        if given:
            await record_reading(connection, principal, actor.acting.who.address, order["id"], number)
            await transaction.record("codes.read", f"order {reference}", after={"line": number})
    return given


async def void_unclaimed(
    connection: Connection,
    principal: Principal,
    chain: Chain,
    reference: str,
    *,
    number: int | None = None,
    address: str | None = None,
) -> Cancellation:
    """Voids each line of the order that nobody has claimed, and refunds it to the account that paid.

    With `number`, only lines of the recipient who has that line. Claims lock the same rows of `lines`, so a line is either claimed or
    refunded. Mail that has not left goes out without the voided codes, or not at all. Records who did it, from `address`. Call it
    inside a transaction.

    Raises NotFound for an order of another customer or environment, OtherServiceAccount for one of another service account.
    """
    await commit_as_one(connection)
    order = await find_own_order(connection, principal, reference)
    key = (order["customer_id"], order["id"])
    numbers = None if number is None else await find_recipient_lines(connection, *key, number)
    issued = await lock_issued(connection, *key, numbers)
    if issued:
        at: datetime = await read_now(connection)
        await void_lines(connection, chain, order, issued, at)
        await record_act(
            connection, principal, address, NewAct(key[1], "cancel", codes=len(issued), line_number=number)
        )
    return await _cancellation(connection, order, voided_count=len(issued))


async def void_lines(
    connection: Connection, chain: Chain, order: Row, numbers: Sequence[int], at: datetime, *, lapsed: bool = False
) -> None:
    """Voids issued lines of an order, and refunds them to the account that paid. Mail that has not left goes without them, or not at all.

    `lapsed` says that their claim-by date has passed. Call it inside a transaction that has locked the lines (`lock_issued`).
    """
    key = (order["customer_id"], order["id"])
    await record_cancelled(connection, *key, numbers, at, lapsed=lapsed)
    await _refund(connection, chain, order, len(numbers), at)
    await hold_mail_back(connection, *key)


async def _refund(connection: Connection, chain: Chain, order: Row, count: int, at: datetime) -> None:
    """Moves the price of `count` lines from sales back to the account that paid for the order."""
    customer_id = order["customer_id"]
    own = await own_accounts(connection, customer_id, order["environment"], order["currency"])
    payer_id = payment_source(order["account_id"]).payer_id(own["receivable"])
    locked = await lock_accounts(connection, customer_id, [payer_id, own["sales"]])
    transfer_id: int = await connection.fetchval(NEXT_TRANSFER_ID)
    amount_minor = order["total_minor"] // order["code_count"] * count
    await give_back(connection, customer_id, order["reference"], amount_minor)
    await post(
        connection,
        chain,
        locked,
        [
            Entry(
                customer_id,
                account_id,
                transfer_id,
                "refund",
                order["id"],
                change,
                locked[account_id].balance_minor + change,
                order_reference=order["reference"],
            )
            for account_id, change in ((payer_id, amount_minor), (own["sales"], -amount_minor))
        ],
        at,
    )


async def _cancellation(connection: Connection, order: Row, *, voided_count: int) -> Cancellation:
    row = await connection.fetchrow(_CANCELLATION, order["customer_id"], order["id"])
    assert row is not None, "an aggregate has a row"
    refunded_minor = order["total_minor"] // order["code_count"] * row["cancelled"]
    return Cancellation(
        reference=order["reference"],
        code_count=order["code_count"],
        cancelled_count=row["cancelled"],
        voided_count=voided_count,
        claimed_count=row["claimed"],
        refunded_minor=refunded_minor,
        currency=order["currency"],
    )


async def read_order(
    connection: Connection,
    principal: Principal,
    vault: Vault,
    public_url: str,
    reference: str,
    *,
    address: str | None = None,
) -> SendResponse:
    """Returns the receipt of an order again.

    The codes of a batch are included only for its own service account or person, and the reading is recorded with `address`: call it
    inside a transaction. Raises NotFound for an order of another customer or environment, OtherServiceAccount, and ScopeRequired for a
    key without the scope `codes`.
    """
    row = await find_order(connection, principal, reference)
    codes: list[DrawnCode] = []
    if row["delivery_mode"] == "manual" and not is_of_campaign(row):
        require_own(principal, row["service_account_id"], row["user_id"], row["reference"])
        require_scope(principal, CODES)
        codes = await _read_codes(connection, vault, row)
        await record_reading(connection, principal, address, row["id"])
    whose = row["customer_id"] if is_distributed(connection) else None
    return new_receipt(order_row(row), await give_codes(codes, vault, public_url, whose))


async def _read_codes(
    connection: Connection, vault: Vault, order: Row, numbers: Sequence[int] | None = None
) -> list[DrawnCode]:
    """Decrypts the codes of an order, or those of the lines `numbers`, in parts, so that other requests run in between."""
    lines = await connection.fetch(_CODES, order["customer_id"], order["id"], numbers)
    codes: list[DrawnCode] = []
    for start in range(0, len(lines), CODES_AT_ONCE):
        part = lines[start : start + CODES_AT_ONCE]
        codes += [open_code(vault, line["sealed"], order["reference"], line["number"]) for line in part]
        await asyncio.sleep(0)
    return codes
