"""Erasing a recipient: who it was is gone, what was ordered, paid, sent and claimed stays, and so do all counts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from largesse.database import OPERATOR, Connection, Database
from largesse.delivery.mail.erasing import ErasedMail, erase_from_requeues, erase_mail
from largesse.delivery.webhooks.erasing import erase_from_answers
from largesse.drafts.erasing import drop_drafts_with
from largesse.events import record_changes
from largesse.fulfilment.erasing import erase_addresses
from largesse.lines.erasing import erase_recipients
from largesse.orders.erasing import erase_mentions
from largesse.privacy.finding import Found, OrderKey
from largesse.reports import forget_recipient


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
    texts: int  # orders whose message, sender or reference held the address
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


async def erase(database: Database, email: str, found: Found, customer_id: int | None = None) -> Receipt:
    """Erases the address where it was found, an order at a time, and keeps the receipt.

    Broken off, it may be repeated: what is erased is not found again.
    """
    orders = []
    for order, numbers in found.lines.items():
        async with database.transaction(OPERATOR) as connection:
            orders.append(await erase_lines(connection, order, numbers))
    for order in found.mentions:
        async with database.transaction(OPERATOR) as connection:
            await erase_mentions(connection, order, email)
            await record_changes(connection, [order], texts=True)
    async with database.transaction(OPERATOR) as connection:
        if customer_id is None:
            await erase_from_requeues(connection, email)
            await erase_from_answers(connection, email)
        dropped = await drop_drafts_with(connection, email, customer_id)
        return await _keep_receipt(connection, orders, found, dropped, customer_id)


async def _keep_receipt(
    connection: Connection, orders: Sequence[ErasedOrder], found: Found, drafts: int, customer_id: int | None
) -> Receipt:
    counts = {
        "orders": len({*found.lines, *found.mentions}),
        "lines": sum(order.lines for order in orders),
        "messages": sum(order.mail.messages for order in orders),
        "cancelled": sum(order.mail.cancelled for order in orders),
        "captured": sum(order.mail.captured for order in orders),
        "parcels": sum(order.parcels for order in orders),
        "texts": len(found.mentions),
        "drafts": drafts,
    }
    row = await connection.fetchrow(
        """
        INSERT INTO erasures (at, customer_id, orders, lines, messages, cancelled, captured, parcels, texts, drafts)
        VALUES (clock_now(), $1, $2, $3, $4, $5, $6, $7, $8, $9) RETURNING id, at
        """,
        customer_id,
        *counts.values(),
    )
    assert row is not None, "an INSERT returns its row"
    return Receipt(number=row["id"], at=row["at"], **counts)
