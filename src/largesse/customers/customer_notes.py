"""Notes of members of staff about a customer. A note may name people: it can be erased, and is erased with an address in it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from largesse.base.email import email_key
from largesse.base.errors import InvalidRequest, NotFound
from largesse.base.text import unfit
from largesse.customers import customer_store
from largesse.customers.actor import Actor
from largesse.db.pool import Connection
from largesse.staff.model import StaffRight

LONGEST_NOTE = 2_000
MOST_NOTES = 200  # of a customer

_LIST = "SELECT id, author, note, written_at FROM customer_notes WHERE customer_id = $1 ORDER BY id DESC"
_COUNT = "SELECT count(*) FROM customer_notes WHERE customer_id = $1"
_ADD = """
    INSERT INTO customer_notes (customer_id, author, note, written_at) VALUES ($1, $2, $3, clock_now()) RETURNING id
"""
_ERASE = "DELETE FROM customer_notes WHERE customer_id = $1 AND id = $2 RETURNING id"
# Reads all notes, of which there are few.
_MENTIONING = """
    SELECT c.key AS customer, n.note, n.written_at FROM customer_notes n JOIN customers c ON c.id = n.customer_id
    WHERE position($1 IN lower(n.note)) > 0 AND ($2::int IS NULL OR n.customer_id = $2) ORDER BY n.id
"""
_ERASE_MENTIONING = """
    DELETE FROM customer_notes WHERE position($1 IN lower(note)) > 0 AND ($2::int IS NULL OR customer_id = $2)
"""


@dataclass(frozen=True, slots=True)
class CustomerNote:
    """A note, who wrote it, and when."""

    id: int
    author: str
    note: str
    written_at: datetime


async def list_notes(connection: Connection, customer_id: int) -> list[CustomerNote]:
    """Returns the notes about a customer, newest first."""
    return [CustomerNote(**row) for row in await connection.fetch(_LIST, customer_id)]


async def add_note(actor: Actor, note: str) -> int:
    """Adds a note about the actor's customer; returns its id. Raises InvalidRequest for a text or a number of notes beyond the limits."""
    note = note.strip()
    if not 0 < len(note) <= LONGEST_NOTE:
        raise InvalidRequest(f"A note has 1 to {LONGEST_NOTE} characters.")
    if (held := unfit(note, line_breaks=True)) is not None:
        raise InvalidRequest(f"A note must hold no {held}.")
    async with actor.transaction(StaffRight.CUSTOMERS) as transaction:
        connection = transaction.connection
        # Locked, so that two at once do not exceed the limit.
        await customer_store.lock_customer(connection, actor.customer_id)
        if await connection.fetchval(_COUNT, actor.customer_id) >= MOST_NOTES:
            raise InvalidRequest(f"A customer has at most {MOST_NOTES} notes: erase one first.")
        note_id: int = await connection.fetchval(_ADD, actor.customer_id, actor.acting.who.name, note)
        await transaction.of_installation().record("customer_note.added", f"customer {actor.customer_id}")
    return note_id


async def erase_note(actor: Actor, note_id: int) -> None:
    """Erases a note about the actor's customer. Raises NotFound."""
    async with actor.transaction(StaffRight.CUSTOMERS) as transaction:
        if await transaction.connection.fetchval(_ERASE, actor.customer_id, note_id) is None:
            raise NotFound("There is no such note.")
        await transaction.of_installation().record("customer_note.erased", f"customer {actor.customer_id}")


async def notes_mentioning(connection: Connection, email: str, customer_id: int | None) -> list[dict[str, object]]:
    """Returns the notes about one customer, or all, that contain an address, for export."""
    return [dict(row) for row in await connection.fetch(_MENTIONING, email_key(email), customer_id)]


async def erase_notes_mentioning(connection: Connection, email: str, customer_id: int | None) -> int:
    """Erases those notes; returns how many."""
    done = await connection.execute(_ERASE_MENTIONING, email_key(email), customer_id)
    return int(done.split()[-1])
