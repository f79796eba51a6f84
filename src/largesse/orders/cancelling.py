"""Cancelling: the lines of an order that nobody has claimed are voided and refunded, each once."""

from __future__ import annotations

from datetime import datetime

import msgspec

from largesse.customers.principal import Principal
from largesse.db.pool import Connection, Row, commit_as_one
from largesse.encryption.chain import Chain
from largesse.jobs.outbox import hold_mail_back
from largesse.ledger.payment_sources import payment_source
from largesse.ledger.posting import Entry, lock_accounts, own_accounts, post
from largesse.lines.states import lock_issued, record_cancelled
from largesse.orders.lookup import find_own_order
from largesse.orders.order_acts import record_cancel


class Cancellation(msgspec.Struct, frozen=True, kw_only=True):
    """How an order stands after its cancellation; the same however often that is repeated, but for `has_voided`."""

    reference: str
    code_count: int
    cancelled_count: int  # by this cancellation and earlier ones
    has_voided: bool  # whether this cancellation did any of it
    claimed_count: int  # before: they stay their recipients'
    refunded_minor: int  # in all
    currency: str


async def cancel_order(
    connection: Connection, principal: Principal, chain: Chain, reference: str, *, address: str | None = None
) -> Cancellation:
    """Voids every line of the order that nobody has claimed and refunds it to where the order was paid from.

    Claims and this lock the same rows of `lines`, so a line is either claimed or refunded. Mail that has not left goes
    out without the voided codes, or not at all. Who did it, from `address`, is kept. Call it inside a transaction.

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
    return await _standing(connection, order, has_voided=bool(issued))


async def _refund(connection: Connection, chain: Chain, order: Row, count: int, at: datetime) -> None:
    """Moves what `count` lines cost out of sales, back to where the order was paid from."""
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


async def _standing(connection: Connection, order: Row, *, has_voided: bool) -> Cancellation:
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
