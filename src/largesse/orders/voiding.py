"""Voiding lines that nobody has claimed: their state, the refund, and their mail, for cancellations and claim-by dates alike."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from largesse.budgets.store import give_back
from largesse.db.pool import Connection, Row
from largesse.encryption.chain import Chain
from largesse.jobs.outbox import hold_mail_back
from largesse.ledger.own_accounts import own_accounts
from largesse.ledger.payment_sources import payment_source
from largesse.ledger.posting import NEXT_TRANSFER_ID, Entry, lock_accounts, post
from largesse.lines.states import record_cancelled


async def void_lines(
    connection: Connection, chain: Chain, order: Row, numbers: Sequence[int], at: datetime, *, lapsed: bool = False
) -> None:
    """Voids issued lines of an order, and refunds them to where the order was paid from. Mail that has not left goes without them, or not at all.

    `lapsed` says that their claim-by date has passed. Call it inside a transaction that has locked the lines (`lock_issued`).
    """
    key = (order["customer_id"], order["id"])
    await record_cancelled(connection, *key, numbers, at, lapsed=lapsed)
    await _refund(connection, chain, order, len(numbers), at)
    await hold_mail_back(connection, *key)


async def _refund(connection: Connection, chain: Chain, order: Row, count: int, at: datetime) -> None:
    """Moves the price of `count` lines from sales back to where the order was paid from."""
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
