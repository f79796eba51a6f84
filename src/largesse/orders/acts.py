"""What is done with an order after it was placed: cancelling it, reading its codes again, and the record of who did what."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from largesse.customers.access import require_own
from largesse.customers.actor import Actor
from largesse.customers.principal import Principal
from largesse.customers.restrictions import CODES, require_scope
from largesse.customers.roles import Right
from largesse.db.pool import Connection, Row, commit_as_one, is_distributed
from largesse.encryption.chain import Chain
from largesse.encryption.vault import Vault
from largesse.jobs.outbox import hold_mail_back
from largesse.ledger.payment_sources import payment_source
from largesse.ledger.posting import Entry, lock_accounts, own_accounts, post
from largesse.lines.codes import CODES_AT_ONCE, DrawnCode, give_codes, open_code
from largesse.lines.states import lock_issued, record_cancelled
from largesse.orders.lookup import find_order, find_own_order
from largesse.orders.order import SendResponse, new_receipt, order_row


class Cancellation(msgspec.Struct, frozen=True, kw_only=True):
    """An order after its cancellation. Repeating the cancellation changes nothing but `has_voided`."""

    reference: str
    code_count: int
    cancelled_count: int  # by this cancellation and earlier ones
    has_voided: bool  # whether this cancellation did any of it
    claimed_count: int  # before: they stay their recipients'
    refunded_minor: int  # in all
    currency: str


async def cancel_order(actor: Actor, principal: Principal, reference: str) -> Cancellation:
    """Cancels the codes of an order that nobody has claimed, and refunds them.

    Raises NotFound for an order of another customer or environment, OtherServiceAccount for one of another service account.
    """
    async with actor.transaction(Right.SEND) as transaction:
        address = actor.acting.who.address
        done = await void_unclaimed(transaction.connection, principal, transaction.entries, reference, address=address)
        if done.has_voided:
            after = {"cancelled": done.cancelled_count, "refunded_minor": done.refunded_minor}
            await transaction.record("order.cancelled", f"order {reference}", after=after)
    return done


async def read_receipt(
    actor: Actor, principal: Principal, vault: Vault, public_url: str, reference: str
) -> SendResponse:
    """Returns the receipt of an order again, with the codes of a batch. Raises as `read_order` does."""
    async with actor.transaction(Right.SEE_ORDERS) as transaction:
        address = actor.acting.who.address
        receipt = await read_order(transaction.connection, principal, vault, public_url, reference, address=address)
        if receipt.codes:
            await transaction.record("codes.read", f"order {reference}")
    return receipt


async def void_unclaimed(
    connection: Connection, principal: Principal, chain: Chain, reference: str, *, address: str | None = None
) -> Cancellation:
    """Voids each line of the order that nobody has claimed, and refunds it to where the order was paid from.

    Claims lock the same rows of `lines`, so a line is either claimed or refunded. Mail that has not left goes out without the voided
    codes, or not at all. Records who did it, from `address`. Call it inside a transaction.

    Raises NotFound for an order of another customer or environment, OtherServiceAccount for one of another service account.
    """
    await commit_as_one(connection)
    order = await find_own_order(connection, principal, reference)
    issued = await lock_issued(connection, order["customer_id"], order["id"])
    if issued:
        at: datetime = await connection.fetchval("SELECT clock_now()")
        await record_cancelled(connection, order["customer_id"], order["id"], issued, at)
        await _refund(connection, chain, order, len(issued), at)
        await hold_mail_back(connection, order["customer_id"], order["id"])
        await record_cancel(connection, principal, address, order["id"])
    return await _cancellation(connection, order, has_voided=bool(issued))


async def _refund(connection: Connection, chain: Chain, order: Row, count: int, at: datetime) -> None:
    """Moves the price of `count` lines from sales back to where the order was paid from."""
    customer_id = order["customer_id"]
    own = await own_accounts(connection, customer_id, order["environment"], order["currency"])
    payer_id = payment_source(order["account_id"]).payer_id(own["receivable"])
    locked = await lock_accounts(connection, customer_id, [payer_id, own["sales"]])
    transfer_id: int = await connection.fetchval("SELECT nextval('movements_id_seq')")
    amount_minor = order["total_minor"] // order["code_count"] * count
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


async def _cancellation(connection: Connection, order: Row, *, has_voided: bool) -> Cancellation:
    row = await connection.fetchrow(
        """
        SELECT count(*) FILTER (WHERE state = 'cancelled') AS cancelled,
               count(*) FILTER (WHERE state <> 'cancelled') AS claimed
        FROM line_states WHERE customer_id = $1 AND order_id = $2
        """,
        order["customer_id"],
        order["id"],
    )
    assert row is not None, "an aggregate has a row"
    refunded_minor = order["total_minor"] // order["code_count"] * row["cancelled"]
    return Cancellation(
        reference=order["reference"],
        code_count=order["code_count"],
        cancelled_count=row["cancelled"],
        has_voided=has_voided,
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
    if row["delivery_mode"] == "manual":
        require_own(principal, row["service_account_id"], row["user_id"], row["reference"])
        require_scope(principal, CODES)
        codes = await _read_codes(connection, vault, row)
        await record_reading(connection, principal, address, row["id"])
    whose = row["customer_id"] if is_distributed(connection) else None
    return new_receipt(order_row(row), await give_codes(codes, vault, public_url, whose))


async def _read_codes(connection: Connection, vault: Vault, order: Row) -> list[DrawnCode]:
    """Decrypts the codes of an order in parts, so that other requests run in between."""
    lines = await connection.fetch(
        "SELECT number, sealed FROM lines WHERE customer_id = $1 AND order_id = $2 ORDER BY number",
        order["customer_id"],
        order["id"],
    )
    codes: list[DrawnCode] = []
    for start in range(0, len(lines), CODES_AT_ONCE):
        part = lines[start : start + CODES_AT_ONCE]
        codes += [open_code(vault, line["sealed"], order["reference"], line["number"]) for line in part]
        await asyncio.sleep(0)
    return codes


@dataclass(frozen=True, slots=True)
class OrderAct:
    """What a person or service account did with an order after it was placed, and how often at once."""

    act: str  # cancel, resend, or read: its codes were read again
    at: datetime
    by: str  # a person or a service account
    times: int


async def record_reading(connection: Connection, principal: Principal, address: str | None, order_id: int) -> None:
    """Records that the codes of an order were read again."""
    await connection.execute(
        """
        INSERT INTO code_readings (customer_id, order_id, service_account_id, api_key_id, user_id, address)
        VALUES ($1, $2, $3, $4, $5, $6::text::inet)
        """,
        principal.customer_id,
        order_id,
        principal.service_account_id,
        principal.key_id,
        principal.user_id,
        address,
    )


async def list_acts(connection: Connection, customer_id: int, order_id: int, *, limit: int = 100) -> list[OrderAct]:
    """Returns what was done with an order after it was placed, newest first."""
    rows = await connection.fetch(
        """
        SELECT act, acted_at AS at, coalesce(u.name, s.name, '') AS by, count(*)::int AS times
        FROM (
            SELECT act, acted_at, user_id, service_account_id FROM order_acts
            WHERE customer_id = $1 AND order_id = $2
            UNION ALL
            SELECT 'read', read_at, user_id, service_account_id FROM code_readings
            WHERE customer_id = $1 AND order_id = $2
        ) AS acts
        LEFT JOIN users AS u ON u.id = user_id
        LEFT JOIN service_accounts AS s ON s.id = service_account_id
        GROUP BY 1, 2, 3 ORDER BY 2 DESC LIMIT $3
        """,
        customer_id,
        order_id,
        limit,
    )
    return [OrderAct(**row) for row in rows]


async def record_cancel(connection: Connection, principal: Principal, address: str | None, order_id: int) -> None:
    """Records that codes of an order were voided."""
    await _record(connection, principal, address, order_id, "cancel", [None])


async def record_resends(
    connection: Connection, principal: Principal, address: str | None, order_id: int, message_ids: Sequence[int]
) -> None:
    """Records that mail to recipients was sent again, with the ids of the new messages."""
    await _record(connection, principal, address, order_id, "resend", message_ids)


async def _record(
    connection: Connection,
    principal: Principal,
    address: str | None,
    order_id: int,
    act: str,
    message_ids: Sequence[int | None],
) -> None:
    who = (principal.service_account_id, principal.key_id, principal.user_id, address)
    await connection.executemany(
        """
        INSERT INTO order_acts
            (customer_id, order_id, act, message_id, service_account_id, api_key_id, user_id, address, acted_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8::text::inet, clock_now())
        """,
        [(principal.customer_id, order_id, act, message_id, *who) for message_id in message_ids],
    )
