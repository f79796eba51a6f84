"""Shipments: the parcels of physical gifts, exported for packing and imported with their tracking numbers."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TextIO

import msgspec

from largesse.audit.service import Acting
from largesse.base.errors import OperatorError
from largesse.db.pool import Connection, Database, Row, commit_as_one
from largesse.db.scope import OPERATOR
from largesse.db.statements import read_now
from largesse.encryption.vault import Vault
from largesse.fulfilment import store
from largesse.fulfilment.inventory import read_rows
from largesse.fulfilment.notifications import SHIPPED, write_notification
from largesse.lines.states import LineKey, State, record_move
from largesse.lines.store import Line

ADDRESS_FIELDS = (
    "name",
    "company_name",
    "street_address",
    "sorting_code",
    "postal_code",
    "city_area",
    "city",
    "country_area",
    "country_code",
)
_COLUMNS = ("shipment", "order", "line", "product", "product_name", *ADDRESS_FIELDS, "requested_at")
_EXPORTED_AT_ONCE = 500
_LONGEST = 100
# What a spreadsheet would take for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, str]).decode


@dataclass(frozen=True, slots=True)
class Shipped:
    """A parcel's way: None until it is shipped."""

    requested_at: datetime
    shipped_at: datetime | None
    carrier: str | None
    tracking_number: str | None


async def request_shipment(
    connection: Connection, vault: Vault, line: Line, product_id: int, address: Mapping[str, str], at: datetime
) -> None:
    """Has a parcel sent to `address`, which is stored sealed; the caller holds the line's lock."""
    await connection.execute(
        store.INSERT_SHIPMENT,
        *line.key,
        line.environment,
        product_id,
        line.country,
        vault.addresses.seal(_encode(dict(address)), _context(line.key)),
        at,
    )


async def read_shipment(connection: Connection, line: LineKey) -> Shipped | None:
    """The line's parcel; None before its address is known."""
    row = await connection.fetchrow(store.SHIPMENT, *line)
    return None if row is None else Shipped(*row)


async def read_address(connection: Connection, vault: Vault, line: LineKey) -> dict[str, str] | None:
    """The address of the line's parcel, for its recipient alone."""
    sealed = await connection.fetchval(store.SEALED_ADDRESS, *line)
    return None if sealed is None else _decode(vault.addresses.open(sealed, _context(line)))


def reseal_address(vault: Vault, sealed: bytes, line: LineKey) -> bytes:
    """The sealed address of the line's parcel under the newest key. Raises SealBroken."""
    return vault.addresses.seal(vault.addresses.open(sealed, _context(line)), _context(line))


async def export_shipments(
    database: Database, vault: Vault, environment: str, file: TextIO, *, acting: Acting, again: bool = False
) -> int:
    """Writes the parcels to send to `file` as CSV; returns how many. Each is exported once, unless `again`.

    With `again`, all that have not been shipped are written. `acting` keeps how many were, a transaction at a time.
    """
    writer = csv.writer(file)
    writer.writerow(_COLUMNS)
    count, last_id = 0, 0
    while True:
        async with database.transaction(OPERATOR) as connection:
            rows = await connection.fetch(store.SHIPMENTS_TO_EXPORT, environment, last_id, again, _EXPORTED_AT_ONCE)
            references = await _references(connection, rows)
            writer.writerows(map(_harmless, _fields(vault, row, references)) for row in rows)
            file.flush()
            await connection.execute(
                store.MARK_EXPORTED, [row["customer_id"] for row in rows], [row["id"] for row in rows]
            )
            if rows:
                told = {"parcels": len(rows)}
                await acting.record(
                    connection, "shipments.exported", "parcels to send", environment=environment, after=told
                )
        count += len(rows)
        if len(rows) < _EXPORTED_AT_ONCE:
            return count
        last_id = rows[-1]["id"]


async def _references(connection: Connection, parcels: Sequence[Row]) -> dict[tuple[int, int], str]:
    """The references of the orders of parcels, by customer and id: asked for apart, as orders may lie on nodes, where parcels do not."""
    rows = await connection.fetch(
        store.REFERENCES, [parcel["customer_id"] for parcel in parcels], [parcel["order_id"] for parcel in parcels]
    )
    return {(row["customer_id"], row["id"]): row["reference"] for row in rows}


def _fields(vault: Vault, row: Row, references: Mapping[tuple[int, int], str]) -> list[object]:
    """The columns of a parcel."""
    line = LineKey(row["customer_id"], row["order_id"], row["number"])
    address = _decode(vault.addresses.open(row["sealed_address"], _context(line)))
    return [
        row["id"],
        references[line.customer_id, line.order_id],
        line.number,
        row["key"],
        row["name"],
        *(address.get(name, "") for name in ADDRESS_FIELDS),
        row["requested_at"].isoformat(timespec="seconds"),
    ]


async def import_shipments(
    database: Database, vault: Vault, environment: str, path: Path, *, acting: Acting
) -> tuple[int, int]:
    """Marks the parcels of a CSV file (`shipment`, `carrier`, `tracking_number`) as shipped, and mails their recipients.

    Returns how many were, and how many had been before. The whole file is one transaction: OperatorError names the
    line that cannot be taken, and nothing was changed.
    """
    shipped = before = 0
    async with database.transaction(OPERATOR) as connection:
        await commit_as_one(connection)
        for line, row in read_rows(path, ["shipment", "carrier"], ["tracking_number"]):
            if len(row["carrier"]) > _LONGEST or len(row.get("tracking_number", "")) > _LONGEST:
                raise OperatorError(f"line {line}: carrier and tracking_number have at most {_LONGEST} characters")
            key = await _find(connection, environment, row["shipment"], line)
            if key is None:
                before += 1
                continue
            await _ship(connection, vault, key, row["carrier"], row.get("tracking_number") or None)
            shipped += 1
        told = {"shipped": shipped, "shipped_before": before}
        await acting.record(
            connection, "shipments.imported", f"file {path.name}"[:200], environment=environment, after=told
        )
    return shipped, before


async def _find(connection: Connection, environment: str, shipment: str, line: int) -> LineKey | None:
    """The line of a parcel, its lock taken; None when it has been shipped before. Raises OperatorError."""
    if not shipment.isascii() or not shipment.isdigit() or len(shipment) > 18:
        raise OperatorError(f"line {line}: shipment {shipment!r} is no number of a shipment")
    row = await connection.fetchrow(store.LINE_OF_SHIPMENT, int(shipment), environment)
    if row is None:
        raise OperatorError(f"line {line}: there is no shipment {shipment} in {environment}")
    key = LineKey(*row)
    await connection.execute(store.LOCK_LINE, *key)
    is_shipped = await connection.fetchval(store.IS_SHIPPED, key.customer_id, int(shipment))
    return None if is_shipped else key


async def _ship(connection: Connection, vault: Vault, key: LineKey, carrier: str, tracking_number: str | None) -> None:
    at = await read_now(connection)
    await connection.execute(store.MARK_SHIPPED, *key, at, carrier, tracking_number)
    await record_move(connection, key, State.FULFILLED, at)
    await write_notification(connection, vault, key, SHIPPED, at)


def _harmless(value: object) -> str:
    """Text that a spreadsheet takes for text: recipients choose what is in an address."""
    text = str(value)
    return f"'{text}" if text.startswith(_FORMULA) else text


def _context(line: LineKey) -> bytes:
    return b"address/%d/%d" % (line.order_id, line.number)
