"""Parcels, for the people who pack them: parcels that wait, were sent, or came back.

Lists have no recipients. `pack_parcels` returns addresses, and records it in the audit log.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from largesse.base.errors import StateConflict, existing
from largesse.base.text import typed_numbers
from largesse.customers.actor import Actor, Transaction
from largesse.customers.staff_roles import StaffRight
from largesse.db.pool import Connection, Row, commit_as_one
from largesse.db.scope import Place
from largesse.db.statements import read_now
from largesse.encryption.vault import Vault
from largesse.fulfilment import store
from largesse.fulfilment.notifications import RETURNED, kind_of_sending, write_notification
from largesse.jobs.outbox import withdraw_parcel_mail
from largesse.lines.states import LineKey

_MOST_BACK = 100
RETURN_REASONS = ("address", "absent", "refused", "damaged", "other")


class ParcelState(StrEnum):
    """The state of a parcel."""

    WAITING = "waiting"  # it waits to be packed and sent
    SENT = "sent"
    BACK = "back"


class Parcel(msgspec.Struct, frozen=True):
    """A parcel without its address."""

    id: int
    customer_id: int
    order_id: int
    line: int
    order_reference: str
    product: str
    product_name: str
    country: str
    requested_at: datetime
    exported_at: datetime | None  # when its address was exported
    shipped_at: datetime | None
    carrier: str | None
    tracking_number: str | None
    returned_at: datetime | None  # when it last came back
    return_reason: str | None
    again_at: datetime | None  # when it was put back to be sent again
    sendings: int  # how often it was given to a carrier
    is_erased: bool  # its address was erased

    @property
    def is_corrected(self) -> bool:
        """Whether its recipient corrected the address after it last came back."""
        return self.returned_at is not None and self.requested_at > self.returned_at

    @property
    def state(self) -> ParcelState:
        """Whether it waits, was sent, or came back."""
        if self.shipped_at is None or self.again_at is not None:
            return ParcelState.WAITING
        is_back = self.returned_at is not None and self.returned_at >= self.shipped_at
        return ParcelState.BACK if is_back else ParcelState.SENT


class ToPick(msgspec.Struct, frozen=True):
    """How many parcels of a gift wait."""

    product: str
    name: str
    parcels: int


class AddressErased(StateConflict, rule="The parcel's address was erased: it cannot be sent again."):
    """The address of the parcel was erased, so it cannot be sent."""


class NotOnItsWay(StateConflict, rule="The parcel is not on its way."):
    """The parcel was not sent, or is back already."""


class NotBack(StateConflict, rule="The parcel did not come back."):
    """The parcel did not come back, or already waits to be sent again."""


async def list_parcels(
    connection: Connection, environment: str, state: ParcelState, beyond: int | None, most: int
) -> list[Parcel]:
    """Returns parcels after an id: waiting ones oldest first, others newest first."""
    return await _parcels(connection, await connection.fetch(store.LISTED[state], environment, beyond, most))


async def find_parcel(connection: Connection, environment: str, parcel_id: int) -> Parcel:
    """Returns a parcel. Raises NotFound."""
    row = existing(
        await connection.fetchrow(store.PARCEL, parcel_id, environment), "There is no parcel with that number."
    )
    return (await _parcels(connection, [row]))[0]


async def find_tracked(connection: Connection, environment: str, tracking_number: str) -> list[Parcel]:
    """Returns the newest parcels with a tracking number, however it is typed."""
    return await _parcels(
        connection, await connection.fetch(store.TRACKED, typed_numbers(tracking_number), environment)
    )


async def list_to_pick(connection: Connection, environment: str) -> list[ToPick]:
    """Returns how many parcels of each gift wait, most first."""
    return [ToPick(*row) for row in await connection.fetch(store.TO_PICK, environment)]


async def count_parcels(connection: Connection, environment: str) -> dict[ParcelState, int]:
    """Returns how many parcels wait and how many came back, at most 1,000 of each."""
    row = await connection.fetchrow(store.COUNTS, environment)
    assert row is not None, "an aggregate has a row"
    return {ParcelState.WAITING: row["waiting"], ParcelState.BACK: row["back"]}


async def list_back(connection: Connection, customer_id: int, order_id: int) -> dict[int, tuple[datetime, str]]:
    """Returns when parcels of an order came back and why, one of RETURN_REASONS, by line. Leaves out those that are sent again."""
    rows = await connection.fetch(store.BACK, customer_id, order_id)
    return {row["number"]: (row["returned_at"], row["return_reason"]) for row in rows}


async def list_orders_back(
    connection: Connection, place: Place, *, user_id: int | None, within: timedelta
) -> list[str]:
    """Returns the references of at most 100 orders with parcels that came back lately and are not sent again, those of a person if given."""
    return [row["reference"] for row in await connection.fetch(store.BACK_OF, *place, user_id, within, _MOST_BACK)]


async def note_return(actor: Actor, vault: Vault, environment: str, parcel_id: int, reason: str) -> Parcel:
    """Records that a parcel came back, and withdraws mail that says it is on its way. Raises NotFound, and NotOnItsWay.

    Mails its recipient, once for each return, unless its address was erased: there is none to correct.
    """
    assert reason in RETURN_REASONS, "forms offer no other"
    async with actor.transaction(StaffRight.PARCELS) as transaction:
        parcel = await _lock(transaction, environment, parcel_id)
        if parcel.state is not ParcelState.SENT:
            raise NotOnItsWay
        connection, line = transaction.connection, LineKey(parcel.customer_id, parcel.order_id, parcel.line)
        await withdraw_parcel_mail(connection, line)
        if not parcel.is_erased:
            kind = kind_of_sending(RETURNED, parcel.sendings)
            await write_notification(connection, vault, line, kind, await read_now(connection))
        return await _change(transaction, environment, parcel, "parcel.returned", store.NOTE_RETURN, reason)


async def correct_number(
    actor: Actor, environment: str, parcel_id: int, carrier: str, tracking_number: str | None
) -> Parcel:
    """Corrects the carrier and the tracking number of a parcel on its way. Does nothing if they are the same. Raises NotFound, and NotOnItsWay."""
    async with actor.transaction(StaffRight.PARCELS) as transaction:
        parcel = await _lock(transaction, environment, parcel_id)
        if parcel.state is not ParcelState.SENT:
            raise NotOnItsWay
        if (parcel.carrier, parcel.tracking_number) == (carrier, tracking_number):
            return parcel
        connection = transaction.connection
        await connection.execute(store.CORRECT_NUMBER, parcel.customer_id, parcel.id, carrier, tracking_number)
        before = {"carrier": parcel.carrier, "tracking_number": parcel.tracking_number}
        after = {"carrier": carrier, "tracking_number": tracking_number}
        await transaction.on_behalf_of(parcel.customer_id, environment).record(
            "parcel.corrected", f"parcel {parcel.id}", before=before, after=after
        )
        return await find_parcel(connection, environment, parcel.id)


async def send_again(actor: Actor, environment: str, parcel_id: int) -> Parcel:
    """Puts a returned parcel back in the list of parcels to pack. Raises NotFound, NotBack and AddressErased."""
    async with actor.transaction(StaffRight.PARCELS) as transaction:
        parcel = await _lock(transaction, environment, parcel_id)
        if parcel.state is not ParcelState.BACK:
            raise NotBack
        if parcel.is_erased:
            raise AddressErased
        return await _change(transaction, environment, parcel, "parcel.again", store.SEND_AGAIN)


async def _lock(transaction: Transaction, environment: str, parcel_id: int) -> Parcel:
    """Returns a parcel, and locks it after its line, as erasing the recipient does. Raises NotFound."""
    connection = transaction.connection
    await commit_as_one(connection)
    for row in await connection.fetch(store.LINES_OF_SHIPMENTS, [parcel_id], environment):
        await connection.execute(store.LOCK_LINE, row["customer_id"], row["order_id"], row["number"])
    await connection.fetch(store.LOCK, parcel_id, environment)
    return await find_parcel(connection, environment, parcel_id)


async def _change(
    transaction: Transaction, environment: str, parcel: Parcel, act: str, statement: str, *values: str
) -> Parcel:
    connection = transaction.connection
    await connection.execute(statement, parcel.customer_id, parcel.id, *values)
    changed = await find_parcel(connection, environment, parcel.id)
    after = {"order": parcel.order_reference, "line": parcel.line, "reason": changed.return_reason}
    await transaction.on_behalf_of(parcel.customer_id, environment).record(act, f"parcel {parcel.id}", after=after)
    return changed


async def _parcels(connection: Connection, rows: Sequence[Row]) -> list[Parcel]:
    references = await store.read_references(connection, rows)
    return [Parcel(**row, order_reference=references.get((row["customer_id"], row["order_id"]), "")) for row in rows]
