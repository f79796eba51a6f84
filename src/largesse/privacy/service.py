"""Finds and exports a recipient, and erases recipients of orders. Erasing removes the personal data. Orders, payments, mail, claims and counts stay.

Letter case of addresses is ignored.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

import msgspec

from largesse.approvals.store import decisions_mentioning
from largesse.base.errors import NotFound
from largesse.campaigns.store import erase_people, find_people, forget_people
from largesse.campaigns.visiting import find_order_id, forget_asks, list_asks
from largesse.contacts.store import count_contacts_with
from largesse.customers.actor import Actor
from largesse.customers.customers import notes_mentioning
from largesse.customers.staff_roles import StaffRight
from largesse.db.pool import Connection, Row
from largesse.drafts.store import count_drafts_with
from largesse.encryption.vault import Vault
from largesse.events.store import erase_recipients_of_lines
from largesse.fulfilment.tasks import erase_addresses, find_lines_with_left_email
from largesse.lines.states import LineKey
from largesse.lines.tasks import erase_recipients, find_messages_mentioning, find_recipient_lines
from largesse.mail.tasks import ErasedMail, count_codes_to, erase_codes_to, erase_mail, find_notified_lines
from largesse.notes.store import erase_notes
from largesse.orders.erasing import Texts, find_orders_mentioning
from largesse.privacy import store
from largesse.privacy.store import Json, OrderKey
from largesse.reports.updates import forget_recipient, forget_texts


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


async def find(connection: Connection, vault: Vault, email: str, customer_id: int | None = None) -> Occurrences:
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
        found = await find(connection, vault, email, customer_id)
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


async def forget_visitor(connection: Connection, email: str, customer_id: int | None) -> int:
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
