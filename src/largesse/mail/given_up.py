"""Lists mail that was given up or is held, newest first, for members of staff."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from largesse.base.email import masked
from largesse.db.pool import Connection
from largesse.mail import resending_store
from largesse.mail.requeue import RequeueFilter

NEWEST = datetime(9999, 1, 1, tzinfo=UTC), 0


@dataclass(frozen=True, slots=True)
class GivenUp:
    """A message that was given up or is held."""

    id: int
    customer_id: int
    customer: str
    environment: str
    reference: str  # of its order
    number: int  # the recipient's first line
    email: str
    name: str | None
    kind: str
    state: str
    reason: str | None
    fault: str | None
    given_up_at: datetime

    @property
    def masked(self) -> str:
        """Returns the address with most of its local part hidden."""
        return masked(self.email)

    @property
    def said(self) -> str:
        """Returns the mail server's answer, with the address masked."""
        return re.sub(re.escape(self.email), self.masked, self.reason or "", flags=re.IGNORECASE)


async def list_given_up(
    connection: Connection, wanted: RequeueFilter, *, past: tuple[datetime, int] = NEWEST, limit: int = 50
) -> list[GivenUp]:
    """Returns the newest messages that pass a filter, before a time and an id. Includes those without valid codes, which `requeue` does not send."""
    rows = await wanted.fetch(connection, resending_store.NEWEST_GIVEN_UP, past, limit)
    orders = await connection.fetch(
        resending_store.ORDERS_OF, [row["customer_id"] for row in rows], [row["order_id"] for row in rows]
    )
    known = {(row["customer_id"], row["id"]): row for row in orders}
    return [
        GivenUp(
            row["id"],
            row["customer_id"],
            known[row["customer_id"], row["order_id"]]["customer"],
            row["environment"],
            known[row["customer_id"], row["order_id"]]["reference"],
            min(row["line_numbers"], default=0),
            row["email"],
            row["name"],
            row["kind"],
            row["state"],
            row["reason"],
            row["fault"],
            row["given_up_at"],
        )
        for row in rows
    ]
