"""Operations on thank-you notes: a recipient writes one, people read them, an administrator turns them off."""

from collections.abc import Sequence

from largesse.customers import customer_store
from largesse.customers.actor import Actor
from largesse.customers.roles import Right
from largesse.customers.sessions import Person
from largesse.db.pool import Connection, Row
from largesse.encryption.vault import Vault
from largesse.jobs.outbox import mail_thank_you
from largesse.lines.states import LineKey
from largesse.notes import store
from largesse.notes.model import Note

NEWEST = 2**63 - 1
MAIL_PAUSE_S = 3600.0  # how long a note waits if a note of the same order, less than an hour old, was mailed


def note_context(line: LineKey) -> bytes:
    """Returns the encryption context of a note: its line."""
    return b"note/%d/%d/%d" % line


async def read_own_note(connection: Connection, vault: Vault, line: LineKey) -> tuple[bool, str | None]:
    """Returns whether a recipient may write a note about a claimed line, and the note that they wrote; None if there is none."""
    is_accepted, sealed = await store.read_for_recipient(connection, line)
    return is_accepted and sealed is None, None if sealed is None else open_note(vault, line, sealed)


async def write_note(connection: Connection, vault: Vault, line: LineKey, environment: str, text: str) -> bool:
    """Saves a recipient's note, which `read_note` has read, and has it mailed to the person who sent the gift, unless an automation sent it.

    Returns False if there is a note already, or the customer accepts no notes. Call it inside a transaction that has locked the line.
    """
    is_accepted, _ = await store.read_for_recipient(connection, line)
    if not is_accepted:
        return False
    sender, is_automatic = await store.read_sender(connection, line)
    sealed = vault.notes.seal(text.encode(), note_context(line))
    if not await store.insert_note(connection, line, environment, sender, sealed):
        return False
    if sender is not None and not is_automatic:
        delay_s = MAIL_PAUSE_S if await store.was_mailed(connection, line) else 0.0
        await mail_thank_you(connection, sender, line.order_id, delay_s)
    return True


async def list_notes(
    connection: Connection, vault: Vault, person: Person, *, before: int | None, limit: int
) -> Sequence[Note]:
    """Returns the newest notes that a person may read. If `before` is given, only notes with ids below it."""
    own = person.if_only_own(Right.SEE_ORDERS)
    rows = await store.list_newest(connection, person.place, user_id=own, before=before or NEWEST, limit=limit)
    return [read_row(vault, row) for row in rows]


async def notes_of_order(connection: Connection, vault: Vault, customer_id: int, order_id: int) -> dict[int, str]:
    """Returns the notes of an order by line."""
    rows = await store.list_of_order(connection, customer_id, order_id)
    return {
        row["number"]: open_note(vault, LineKey(customer_id, order_id, row["number"]), row["sealed"]) for row in rows
    }


async def accept_notes(actor: Actor, *, accepted: bool) -> None:
    """Sets whether recipients of the gifts of the actor's customer may write back."""
    async with actor.transaction(Right.SETTINGS) as transaction:
        connection = transaction.connection
        await customer_store.lock_customer(connection, actor.customer_id)
        if await customer_store.takes_notes(connection, actor.customer_id) == accepted:
            return
        await customer_store.set_takes_notes(connection, actor.customer_id, accepted)
        subject = f"customer {actor.customer_id}"
        await transaction.record(
            "sends.notes", subject, before={"accepted": not accepted}, after={"accepted": accepted}
        )


def read_row(vault: Vault, row: Row) -> Note:
    """Returns the note of a row of the store."""
    line = LineKey(row["customer_id"], row["order_id"], row["number"])
    text = open_note(vault, line, row["sealed"])
    return Note(
        row["id"],
        row["reference"],
        row["number"],
        row["recipient_name"],
        row["recipient_email"],
        text,
        row["written_at"],
    )


def open_note(vault: Vault, line: LineKey, sealed: bytes) -> str:
    """Decrypts a note. Raises DecryptionFailed."""
    return vault.notes.open(sealed, note_context(line)).decode()
