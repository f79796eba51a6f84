"""Where a recipient occurs, by address. Letter case is ignored, as it is when recipients are counted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from largesse.db.pool import Connection
from largesse.drafts.store import count_drafts_with
from largesse.encryption.vault import Vault
from largesse.fulfilment.tasks import find_lines_with_left_email
from largesse.lines.tasks import find_recipient_lines
from largesse.mail.tasks import find_notified_lines
from largesse.orders.erasing import find_orders_mentioning

OrderKey = tuple[int, int]  # customer and id


class Found(msgspec.Struct, frozen=True):
    """The lines of a recipient by order, the orders whose texts hold the address, and how many drafts do."""

    lines: Mapping[OrderKey, Sequence[int]]
    mentions: Sequence[OrderKey]
    drafts: int

    def __bool__(self) -> bool:
        return bool(self.lines or self.mentions or self.drafts)


async def find(connection: Connection, vault: Vault, email: str, customer_id: int | None = None) -> Found:
    """Where the address occurs, with one customer or with all: as whom a gift was sent to, as what its recipient left, and in texts.

    Reads all orders, lines and messages, without a lock.
    """
    keys = {
        *await find_recipient_lines(connection, email),
        *await find_notified_lines(connection, email),
        *await find_lines_with_left_email(connection, vault, email),
    }
    lines: dict[OrderKey, list[int]] = defaultdict(list)
    for key in sorted(keys):
        if customer_id in (None, key.customer_id):
            lines[key.customer_id, key.order_id].append(key.number)
    mentions = await find_orders_mentioning(connection, email, customer_id)
    return Found(lines, mentions, await count_drafts_with(connection, email, customer_id))
