"""Notifications: mail that fulfilment makes due. They go out with the orders' own mail."""

from datetime import datetime

from largesse.base.email import is_erased
from largesse.db.pool import Connection
from largesse.encryption.vault import Vault
from largesse.fulfilment import store
from largesse.jobs.outbox import add_notification
from largesse.lines.states import LineKey

VOUCHER_READY = "voucher_ready"
SHIPPED = "shipped"
RETURNED = "returned"


def kind_of_sending(kind: str, sendings: int) -> str:
    """Returns the kind of a mail about a parcel that was sent `sendings` times. A recipient gets one mail of each kind."""
    return kind if sendings == 1 else f"{kind}_{sendings}"


async def write_notification(connection: Connection, vault: Vault, line: LineKey, kind: str, at: datetime) -> bool:
    """Makes a mail to the line's recipient due, once for each kind, and wakes the workers after the commit.

    It goes to the address that the recipient gave, otherwise to the one the gift was sent to. Returns False if there is neither.
    """
    row = await connection.fetchrow(store.ADDRESSEE, *line)
    if row is None:
        return False
    email = open_email(vault, row["sealed_email"], line) if row["sealed_email"] else row["recipient_email"]
    if email is None or is_erased(email):
        return False
    await add_notification(
        connection, line, kind, at, environment=row["environment"], email=email, name=row["recipient_name"]
    )
    return True


def seal_email(vault: Vault, email: str, line: LineKey) -> bytes:
    """Returns the address that a recipient gave, encrypted for its line."""
    return vault.emails.seal(email.encode(), _context(line))


def open_email(vault: Vault, sealed: bytes, line: LineKey) -> str:
    """Returns the address that `seal_email` encrypted. Raises SealBroken."""
    return vault.emails.open(sealed, _context(line)).decode()


def _context(line: LineKey) -> bytes:
    return b"recipient-email/%d/%d" % (line.order_id, line.number)
