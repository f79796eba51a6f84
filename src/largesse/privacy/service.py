"""Finds, exports and erases a recipient. Erasing removes the personal data. Orders, payments, mail, claims and counts stay.

Letter case of addresses is ignored.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import partial

import msgspec

from largesse.approvals.store import decisions_mentioning, erase_decisions_mentioning
from largesse.base.errors import NotFound, StateConflict
from largesse.campaigns.store import erase_people, find_people, forget_people
from largesse.campaigns.visiting import find_order_id, forget_asks, list_asks
from largesse.contacts.store import count_contacts_with, drop_contacts_with
from largesse.customers.actor import Actor, Transaction
from largesse.customers.customers import erase_notes_mentioning, notes_mentioning
from largesse.db.pool import Connection, Row, commit_as_one
from largesse.drafts.store import count_drafts_with, drop_drafts_with
from largesse.encryption.vault import Vault
from largesse.events.store import erase_recipients_of_lines
from largesse.fulfilment.tasks import erase_addresses, find_lines_with_left_email
from largesse.lines.states import LineKey
from largesse.lines.tasks import (
    erase_from_lifecycle,
    erase_from_messages,
    erase_recipients,
    find_messages_mentioning,
    find_readdressed,
    find_recipient_lines,
)
from largesse.mail.tasks import (
    ErasedMail,
    count_codes_to,
    drop_copies,
    drop_copies_to,
    erase_codes_to,
    erase_from_reasons,
    erase_from_requeues,
    erase_mail,
    find_notified_lines,
)
from largesse.notes.store import erase_notes
from largesse.orders.erasing import Texts, erase_mentions, find_orders_mentioning
from largesse.orders.marks import changing_orders
from largesse.privacy import store
from largesse.privacy.store import Json, OrderKey, Receipt
from largesse.reports.updates import forget_recipient, forget_texts
from largesse.staff.model import StaffRight
from largesse.webhooks.tasks import erase_from_answers


class Occurrences(msgspec.Struct, frozen=True):
    """Where an address occurs: lines by order, orders whose texts contain it, and counts of everything else."""

    lines: Mapping[OrderKey, Sequence[int]]
    addressed: Collection[LineKey]  # those of the lines that are sent to it
    mentions: Sequence[OrderKey]
    drafts: int
    contacts: int
    campaigns: int
    customer_notes: int  # notes of staff about customers
    approval_notes: int  # notes that approvers wrote

    def __bool__(self) -> bool:
        others = self.drafts + self.contacts + self.campaigns + self.customer_notes + self.approval_notes
        return bool(self.lines or self.mentions or others)


async def _find(connection: Connection, vault: Vault, email: str, customer_id: int | None = None) -> Occurrences:
    """Returns where an address occurs, for one customer or all: as a recipient, as an address that a recipient gave, and in texts.

    Reads all orders, lines and messages, without a lock.
    """
    campaigns = await find_people(connection, email, customer_id)
    addressed = set(await find_recipient_lines(connection, email))
    keys = {
        *addressed,
        *await find_notified_lines(connection, email),
        *await find_lines_with_left_email(connection, vault, email),
        *await _find_gifts(connection, campaigns),
    }
    lines: dict[OrderKey, list[int]] = defaultdict(list)
    for key in sorted(keys):
        if customer_id in (None, key.customer_id):
            lines[key.customer_id, key.order_id].append(key.number)
    mentions = {
        *await find_orders_mentioning(connection, email, customer_id),
        *await find_messages_mentioning(connection, email, customer_id),
    }
    drafts = await count_drafts_with(connection, email, customer_id)
    contacts = await count_contacts_with(connection, email, customer_id)
    asked = len(await list_asks(connection, email, customer_id)) + await count_codes_to(connection, email, customer_id)
    noted = len(await notes_mentioning(connection, email, customer_id))
    decided = len(await decisions_mentioning(connection, email, customer_id))
    return Occurrences(
        lines, addressed, sorted(mentions), drafts, contacts, len(campaigns) or min(asked, 1), noted, decided
    )


async def _find_gifts(connection: Connection, campaigns: Sequence[Row]) -> list[LineKey]:
    """Returns the lines that were given to a mailbox in campaigns, under any spelling of its address."""
    found = []
    for row in campaigns:
        order_id = await find_order_id(connection, row["customer_id"], row["order_reference"])
        if row["number"] is not None and order_id is not None:
            found.append(LineKey(row["customer_id"], order_id, row["number"]))
    return found


class ErasedOrder(msgspec.Struct, frozen=True):
    """What was removed from one order."""

    lines: int
    mail: ErasedMail
    parcels: int


async def erase_lines(connection: Connection, order: OrderKey, numbers: Sequence[int]) -> ErasedOrder:
    """Erases the recipients of some lines of an order. Call it inside a transaction."""
    erased = await erase_recipients(connection, order, numbers)
    await erase_recipients_of_lines(connection, order, numbers)
    await erase_notes(connection, order, numbers)
    await erase_people(connection, order, numbers)
    mail = await erase_mail(connection, order, set(numbers), erased.stand_ins)
    customer_id, order_id = order
    await forget_recipient(connection, customer_id, [order_id], erased.removed)
    return ErasedOrder(len(numbers), mail, await erase_addresses(connection, order, numbers))


async def forget_written(connection: Connection, customer_id: int, texts: Texts) -> None:
    """Removes an order's texts from the search. Call it inside the transaction that erases them."""
    await forget_texts(connection, customer_id, texts.order_id, texts.external_reference, texts.written)


async def export(actor: Actor, vault: Vault, email: str, customer_id: int | None = None) -> Json:
    """Returns everything stored about an address, for one customer or all. Raises NotFound if there is nothing."""
    async with actor.transaction(StaffRight.PRIVACY) as transaction:
        connection = transaction.connection
        await connection.execute(store.TAKE_TIME)
        found = await _find(connection, vault, email, customer_id)
        orders = [
            await store.read_order(connection, vault, order, found.lines.get(order, ()))
            for order in sorted({*found.lines, *found.mentions})
        ]
        contacts = await store.read_contacts(connection, vault, email, customer_id)
        taken_part = ("customer", "environment", "name", "taken_at")
        people = await find_people(connection, email, customer_id)
        campaigns = [{name: row[name] for name in taken_part} for row in people]
        asked = [dict(row) for row in await list_asks(connection, email, customer_id)]
        members = await store.read_members(connection, email, customer_id)
        customer_notes = await notes_mentioning(connection, email, customer_id)
        approval_notes = await decisions_mentioning(connection, email, customer_id)
        # The audit log must not say whose data it is.
        await transaction.record("privacy.exported", "a recipient's data", after={"orders": len(found.lines)})
    if not found and not members:
        raise NotFound("nothing is held about that address")
    return {
        "email": email,
        "orders": orders,
        "drafts": found.drafts,
        "contacts": contacts,
        "campaigns": campaigns,
        "code_requests": asked,
        "people": members,
        "customer_notes": customer_notes,
        "approval_notes": approval_notes,
    }


async def erase(
    actor: Actor, vault: Vault, email: str, customer_id: int | None = None, *, request_id: int | None = None
) -> Receipt:
    """Erases an address for one customer or all, one order at a time, and returns the receipt. Raises NotFound if there is nothing.

    Also finishes the request `request_id`. Raises StateConflict if another erasure finished it meanwhile. Can be repeated after an interruption:
    the receipt then counts what was left.
    """
    async with actor.transaction(StaffRight.PRIVACY) as transaction:
        await transaction.connection.execute(store.TAKE_TIME)
        found = await _find(transaction.connection, vault, email, customer_id)
    async with actor.transaction(StaffRight.PRIVACY) as transaction:
        # First come the places that `_find` does not search: after an interruption, nothing else may be left to find.
        connection = transaction.connection
        await commit_as_one(connection)
        await connection.execute(store.TAKE_TIME)
        copies = await drop_copies_to(connection, email, customer_id)
        erased = copies + await erase_from_lifecycle(connection, email, customer_id)
        erased += await erase_from_reasons(connection, email, customer_id)
        erased += await erase_from_answers(connection, email, customer_id)
        if customer_id is None:
            erased += await erase_from_requeues(connection, email)
    if not (found or erased):
        raise NotFound("nothing is held about that address as a recipient")
    steps = [
        *(partial(_erase_lines_to, found, order, email) for order in found.lines),
        *(partial(_erase_mentions, order, email) for order in found.mentions),
    ]
    orders = []
    for step in steps[:-1]:
        async with actor.transaction(StaffRight.PRIVACY) as transaction:
            await commit_as_one(transaction.connection)
            orders.append(await step(transaction))
    async with actor.transaction(StaffRight.PRIVACY) as transaction:
        await commit_as_one(transaction.connection)
        await transaction.connection.execute(store.TAKE_TIME)
        # The last order, with the receipt: after an interruption there is something to find, so the repeat has a receipt.
        orders += [await step(transaction) for step in steps[-1:]]
        await erase_from_messages(transaction.connection, email, customer_id)
        await erase_decisions_mentioning(transaction.connection, email, customer_id)
        counts = count_erased(
            orders,
            count=len({*found.lines, *found.mentions}),
            texts=len(found.mentions),
            copies=copies,
            drafts=await drop_drafts_with(transaction.connection, email, customer_id),
            contacts=await drop_contacts_with(transaction.connection, email, customer_id),
            campaigns=await _forget_visitor(transaction.connection, email, customer_id),
            customer_notes=await erase_notes_mentioning(transaction.connection, email, customer_id),
        )
        return await _add_receipt(transaction, counts, customer_id, request_id)


async def _erase_lines_to(found: Occurrences, order: OrderKey, email: str, transaction: Transaction) -> ErasedOrder:
    connection, numbers = transaction.connection, found.lines[order]
    async with changing_orders(connection, transaction.entries, order[0], [order[1]], waits=True):
        # Somebody may have corrected the address since it was found. Then the line is another person's.
        addressed = [one for one in numbers if LineKey(*order, one) in found.addressed]
        others = await find_readdressed(connection, order, addressed, email)
        theirs = [one for one in numbers if one not in others]
        return await erase_lines(connection, order, theirs) if theirs else ErasedOrder(0, ErasedMail(0, 0, 0), 0)


async def _erase_mentions(order: OrderKey, email: str, transaction: Transaction) -> ErasedOrder:
    connection, copies = transaction.connection, 0
    async with changing_orders(connection, transaction.entries, order[0], [order[1]], waits=True):
        texts = await erase_mentions(connection, order, email)
    if texts is not None:
        await forget_written(connection, order[0], texts)
        copies = await drop_copies(connection, order)
    return ErasedOrder(0, ErasedMail(0, 0, copies), 0)


async def _add_receipt(
    transaction: Transaction, counts: dict[str, int], customer_id: int | None, request_id: int | None
) -> Receipt:
    """Adds and returns the receipt of an erasure, and finishes its request. Raises StateConflict if it has a receipt already."""
    receipt = await store.add_receipt(transaction.connection, counts, customer_id=customer_id)
    after = {"orders": receipt.orders, "lines": receipt.lines}
    if request_id is not None:
        after["request"] = request_id
        if not await store.finish_request(transaction.connection, request_id, "done", receipt.number):
            raise StateConflict("Somebody else carried out the request meanwhile.")
    await transaction.record("privacy.erased", f"erasure {receipt.number}", after=after)
    return receipt


async def _forget_visitor(connection: Connection, email: str, customer_id: int | None) -> int:
    """Erases an address from lists of campaigns and from code requests. Returns from how many lists."""
    await forget_asks(connection, email, customer_id)
    await erase_codes_to(connection, email, customer_id)
    return await forget_people(connection, email, customer_id)


def count_erased(
    orders: Sequence[ErasedOrder],
    *,
    count: int,
    texts: int,
    copies: int = 0,
    drafts: int = 0,
    contacts: int = 0,
    campaigns: int = 0,
    customer_notes: int = 0,
) -> dict[str, int]:
    """Returns the counts of a receipt, over `count` orders. `copies` counts captured mail to other addresses."""
    return {
        "orders": count,
        "lines": sum(order.lines for order in orders),
        "messages": sum(order.mail.messages for order in orders),
        "cancelled": sum(order.mail.cancelled for order in orders),
        "captured": sum(order.mail.captured for order in orders) + copies,
        "parcels": sum(order.parcels for order in orders),
        "texts": texts,
        "drafts": drafts,
        "contacts": contacts,
        "campaigns": campaigns,
        "customer_notes": customer_notes,
    }
