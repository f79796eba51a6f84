"""The captured mailbox: mail of staging, and all mail of the demo. It is stored encrypted."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from largesse.base.confidential import Confidential
from largesse.base.errors import NotFound, existing
from largesse.db.pool import Connection
from largesse.encryption.vault import DecryptionFailed, Vault
from largesse.mail import store
from largesse.mail.mime import decode_header


class CapturedMail(msgspec.Struct, frozen=True):
    """A captured message as the list shows it."""

    id: int
    recipient: str
    subject: str
    captured_at: datetime


class OpenedMail(Confidential, frozen=True):
    """A captured message as its recipient would see it. It has no repr, as it contains codes."""

    sender: str
    recipient: str
    subject: str
    captured_at: datetime
    headers: Sequence[tuple[str, str]]  # decoded, in the order they were written
    html: str
    text: str
    raw: bytes


class ClaimingMail(NamedTuple):
    """A captured message whose recipient claims the gift: the lines of its order."""

    customer_id: int
    id: int
    order_id: int
    line_numbers: Sequence[int]


async def list_claiming(connection: Connection, limit: int) -> list[ClaimingMail]:
    """Returns the first captured messages whose recipients claim their gifts."""
    return [ClaimingMail(*row) for row in await connection.fetch(store.CLAIMING, limit)]


async def end_claiming(connection: Connection, mail: ClaimingMail) -> None:
    """Records that the gifts of a message were claimed."""
    await connection.execute(store.END_CLAIMING, mail.customer_id, mail.id)


def sealing_context(message_id: int) -> bytes:
    """Returns the encryption context of a captured message."""
    return b"captured-mail/%d" % message_id


async def capture(
    connection: Connection,
    vault: Vault,
    *,
    customer_id: int,
    environment: str,
    recipient: str,
    subject: str,
    written: bytes,
) -> None:
    """Stores a message without an order, under a negative id, as messages of orders have positive ones."""
    number: int = await connection.fetchval(store.NEXT_CAPTURED_NUMBER)
    sealed = vault.captured.seal(written, sealing_context(number))
    columns = (customer_id, number, environment, recipient, subject, sealed, False)
    await connection.execute(store.CAPTURE_ALL, *([value] for value in columns))


async def list_captured(
    connection: Connection, environment: str, *, before: int | None = None, limit: int = 100
) -> list[CapturedMail]:
    """Returns the newest captured messages of an environment, newest first. `before` is the last id of the page before."""
    rows = await connection.fetch(store.CAPTURED_PAGE, environment, before, limit)
    return [CapturedMail(**row) for row in rows]


async def open_captured(connection: Connection, vault: Vault, environment: str, captured_id: int) -> OpenedMail:
    """Returns one captured message. Raises NotFound if the environment has no message with that id, or it can no longer be decrypted."""
    row = existing(
        await connection.fetchrow(store.CAPTURED_MESSAGE, environment, captured_id),
        "There is no such message here; captured mail is deleted after 30 days.",
    )
    try:
        raw = vault.captured.open(row["sealed"], sealing_context(row["message_id"]))
    except DecryptionFailed:
        raise NotFound("The message is encrypted under a master key that is not set any more.") from None
    from email import message_from_string, policy  # here, as a start does not need it

    # Headers may contain UTF-8 (RFC 6532), which the parser of bytes treats as an error.
    message = message_from_string(raw.decode(), policy=policy.default)
    headers = [(name, decode_header(value)) for name, value in message.raw_items()]
    by_name = dict(headers)
    html = message.get_body(("html",))
    text = message.get_body(("plain",))
    return OpenedMail(
        sender=by_name["From"],
        recipient=by_name["To"],
        subject=by_name["Subject"],
        captured_at=row["captured_at"],
        headers=headers,
        html=html.get_content() if html is not None else "",
        text=text.get_content() if text is not None else "",
        raw=raw,
    )
