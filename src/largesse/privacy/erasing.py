"""Erasing a recipient: who it was is gone, what was ordered, paid, sent and claimed stays, and so do all counts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from largesse.db.pool import Connection, Database, commit_as_one
from largesse.db.scope import OPERATOR
from largesse.drafts.store import drop_drafts_with
from largesse.encryption.chain import Chain
from largesse.fulfilment.tasks import erase_addresses
from largesse.lines.tasks import erase_recipients
from largesse.mail.tasks import ErasedMail, erase_from_requeues, erase_mail
from largesse.orders.erasing import Texts, erase_mentions
from largesse.orders.marks import changing_orders
from largesse.privacy.lookup import Found, OrderKey
from largesse.reports.updates import forget_recipient, forget_texts
from largesse.webhooks.tasks import erase_from_answers


class Receipt(msgspec.Struct, frozen=True):
    """What an erasure took out, by number: it names nobody."""

    number: int
    at: datetime
    orders: int
    lines: int
    messages: int  # that no longer say whom they went to
    cancelled: int  # of those: will not leave any more
    captured: int  # copies in the captured mailbox
    parcels: int
    texts: int  # orders whose texts or reference held the address
    drafts: int  # that were dropped


class ErasedOrder(msgspec.Struct, frozen=True):
    """What was taken out of one order."""

    lines: int
    mail: ErasedMail
    parcels: int


async def erase_lines(connection: Connection, order: OrderKey, numbers: Sequence[int]) -> ErasedOrder:
    """Erases the recipients of those lines of an order; call it inside a transaction."""
    erased = await erase_recipients(connection, order, numbers)
    mail = await erase_mail(connection, order, set(numbers), erased.stand_ins)
    customer_id, order_id = order
    await forget_recipient(connection, customer_id, [order_id], erased.told)
    return ErasedOrder(len(numbers), mail, await erase_addresses(connection, order, numbers))


async def forget_written(connection: Connection, customer_id: int, texts: Texts) -> None:
    """Has an order no longer found by what was written on it; call it inside the transaction that erases that."""
    await forget_texts(connection, customer_id, texts.order_id, texts.external_reference, texts.written)


async def erase(database: Database, chain: Chain, email: str, found: Found, customer_id: int | None = None) -> Receipt:
    """Erases the address where it was found, an order at a time, and keeps the receipt; `chain` marks the orders anew.

    Broken off, it may be repeated: what is erased is not found again.
    """
    orders = []
    for order, numbers in found.lines.items():
        async with database.transaction(OPERATOR) as connection:
            await commit_as_one(connection)
            async with changing_orders(connection, chain, order[0], [order[1]], waits=True):
                orders.append(await erase_lines(connection, order, numbers))
    for order in found.mentions:
        async with database.transaction(OPERATOR) as connection:
            await commit_as_one(connection)
            async with changing_orders(connection, chain, order[0], [order[1]], waits=True):
                texts = await erase_mentions(connection, order, email)
            if texts is not None:
                await forget_written(connection, order[0], texts)
    async with database.transaction(OPERATOR) as connection:
        if customer_id is None:
            await erase_from_requeues(connection, email)
            await erase_from_answers(connection, email)
        dropped = await drop_drafts_with(connection, email, customer_id)
        return await keep_receipt(
            connection,
            orders,
            count=len({*found.lines, *found.mentions}),
            texts=len(found.mentions),
            drafts=dropped,
            customer_id=customer_id,
        )


async def keep_receipt(
    connection: Connection,
    orders: Sequence[ErasedOrder],
    *,
    count: int,
    texts: int,
    drafts: int = 0,
    customer_id: int | None,
    retention_days: int | None = None,
) -> Receipt:
    """Keeps what was taken out, of `count` orders; `retention_days` where that came by itself."""
    counts = {
        "orders": count,
        "lines": sum(order.lines for order in orders),
        "messages": sum(order.mail.messages for order in orders),
        "cancelled": sum(order.mail.cancelled for order in orders),
        "captured": sum(order.mail.captured for order in orders),
        "parcels": sum(order.parcels for order in orders),
        "texts": texts,
        "drafts": drafts,
    }
    row = await connection.fetchrow(
        """
        INSERT INTO erasures (at, customer_id, orders, lines, messages, cancelled, captured, parcels, texts, drafts,
            retention_days)
        VALUES (clock_now(), $1, $2, $3, $4, $5, $6, $7, $8, $9, $10) RETURNING id, at
        """,
        customer_id,
        *counts.values(),
        retention_days,
    )
    assert row is not None, "an INSERT returns its row"
    return Receipt(number=row["id"], at=row["at"], **counts)
