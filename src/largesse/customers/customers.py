"""Operations on customers: creating them, changing their terms, settings for all of their people, and notes of members of staff.

A note may name people. So it can be erased, and erasing an address erases the notes that contain it.
"""

from datetime import datetime

import msgspec
from msgspec.structs import replace

from largesse.base.email import email_key
from largesse.base.errors import InvalidRequest, NotFound, OperatorError
from largesse.base.text import free_key, unfit
from largesse.customers import customer_store as store
from largesse.customers.actor import Actor
from largesse.customers.customer_store import Customer
from largesse.customers.roles import Right
from largesse.customers.staff_roles import StaffRight
from largesse.db.fragments import Fragment, compose, holds_address
from largesse.db.pool import Connection
from largesse.db.statements import count_changed

PLANS = ("starter", "pro", "enterprise")
MOST_CUSTOMER_NAME = 200
MOST_CUSTOMER_KEY = 100


async def create_customer(actor: Actor, name: str, *, plan: str, funding: str, key: str | None) -> tuple[int, str]:
    """Creates a customer, and returns its id and key. Without `key`, makes one from the name. Raises OperatorError for a key in use."""
    async with actor.transaction(StaffRight.CUSTOMERS) as transaction:
        connection, terms = transaction.connection, {"name": name, "plan": plan, "funding": funding}
        used = key or await _new_key(connection, name)
        customer_id = await store.add_customer(connection, key=used, **terms)
        while customer_id is None:
            if key is not None:
                raise OperatorError(f"there is a customer {key!r} already: `customers set` changes it")
            used = await _new_key(connection, name)  # somebody else took the first one at the same moment
            customer_id = await store.add_customer(connection, key=used, **terms)
        after = {"key": used, **terms}
        await transaction.on_behalf_of(customer_id).record("customer.created", f"customer {customer_id}", after=after)
    return customer_id, used


async def _new_key(connection: Connection, name: str) -> str:
    """Returns a key that is made from a name, with a number if others have it."""
    return free_key(name, await store.numbered_keys(connection, free_key(name, (), "customer")), "customer")


async def change_customer(
    actor: Actor, *, name: str | None = None, plan: str | None = None, funding: str | None = None
) -> Customer:
    """Changes the given values of the actor's customer, and returns the changed customer."""
    async with actor.transaction(StaffRight.CUSTOMERS) as transaction:
        connection = transaction.connection
        await store.lock_customer(connection, actor.customer_id)
        old = await store.read_customer(connection, actor.customer_id)
        new = replace(old, name=name or old.name, plan=plan or old.plan, funding=funding or old.funding)
        if old != new:
            await connection.execute(store.UPDATE_CUSTOMER, new.id, new.name, new.plan, new.funding)
            before, after = ({"name": one.name, "plan": one.plan, "funding": one.funding} for one in (old, new))
            await transaction.record("customer.changed", f"customer {new.id}", before=before, after=after)
    return new


async def require_second_step(actor: Actor, *, required: bool) -> None:
    """Sets whether everybody at the person's customer needs a second step."""
    assert actor.person is not None, "a person decides it"
    async with actor.transaction(Right.SETTINGS, changes_access=True) as transaction:
        await transaction.connection.execute(store.SET_REQUIRES_SECOND_STEP, actor.customer_id, required)
        subject = actor.person.customer_name
        await transaction.record("people.second_step_required", subject, after={"required": required})


async def confirm_above(actor: Actor, currency: str, amount_minor: int | None) -> None:
    """Sets the amount above which people of the customer must confirm who they are before they send. None means never."""
    assert actor.person is not None, "a person decides it"
    async with actor.transaction(Right.SETTINGS, changes_access=True) as transaction:
        amounts = await store.confirmed_above(transaction.connection, actor.customer_id)
        old = amounts.pop(currency, None)
        if old == amount_minor:
            return
        if amount_minor is not None:
            amounts[currency] = amount_minor
        await store.set_confirmed_above(transaction.connection, actor.customer_id, amounts)
        before, after = ({"currency": currency, "above_minor": one} for one in (old, amount_minor))
        await transaction.record("sends.confirmed_above", actor.person.customer_name, before=before, after=after)


LONGEST_NOTE = 2_000
MOST_NOTES = 200  # notes about a customer

_LIST = "SELECT id, author, note, written_at FROM customer_notes WHERE customer_id = $1 ORDER BY id DESC"
_COUNT = "SELECT count(*) FROM customer_notes WHERE customer_id = $1"
_ADD = """
    INSERT INTO customer_notes (customer_id, author, note, written_at) VALUES ($1, $2, $3, clock_now()) RETURNING id
"""
_ERASE = "DELETE FROM customer_notes WHERE customer_id = $1 AND id = $2 RETURNING id"
# Reads all notes, of which there are few.
_MENTIONING = compose(
    """
    SELECT c.key AS customer, n.note, n.written_at FROM customer_notes n JOIN customers c ON c.id = n.customer_id
    WHERE {holds} AND ($2::int IS NULL OR n.customer_id = $2) ORDER BY n.id
    """,
    holds=holds_address(Fragment("lower(n.note)")),
)
_ERASE_MENTIONING = compose(
    "DELETE FROM customer_notes WHERE {holds} AND ($2::int IS NULL OR customer_id = $2)",
    holds=holds_address(Fragment("lower(note)")),
)


class CustomerNote(msgspec.Struct, frozen=True):
    """A note, who wrote it, and when."""

    id: int
    author: str
    note: str
    written_at: datetime


async def list_notes(connection: Connection, customer_id: int) -> list[CustomerNote]:
    """Returns the notes about a customer, newest first."""
    return [CustomerNote(**row) for row in await connection.fetch(_LIST, customer_id)]


async def add_note(actor: Actor, note: str) -> int:
    """Adds a note about the actor's customer, and returns its id. Raises InvalidRequest for an invalid text, or if there are too many notes."""
    note = note.strip()
    if not 0 < len(note) <= LONGEST_NOTE:
        raise InvalidRequest(f"A note must have 1 to {LONGEST_NOTE} characters.")
    if (held := unfit(note, line_breaks=True)) is not None:
        raise InvalidRequest(f"A note must not contain {held}.")
    async with actor.transaction(StaffRight.CUSTOMERS) as transaction:
        connection = transaction.connection
        # Locked, so that two simultaneous notes do not exceed the limit.
        await store.lock_customer(connection, actor.customer_id)
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
    """Erases the notes that `notes_mentioning` returns. Returns how many."""
    return await count_changed(connection, _ERASE_MENTIONING, email_key(email), customer_id)
