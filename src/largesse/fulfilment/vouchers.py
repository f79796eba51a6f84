"""Vouchers: the number a recipient holds in the end, and how it rests sealed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

import msgspec

from largesse.db.pool import Connection
from largesse.encryption.vault import Vault
from largesse.fulfilment import store
from largesse.lines.states import LineKey

NO_DATE = date.max  # in the database: infinity


class Voucher(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a shop needs to know. `use_by` is the shop's own date, beside whatever the order says."""

    number: str
    pin: str | None = None
    use_by: date | None = None

    def __repr__(self) -> str:
        return "Voucher(…)"  # must not appear in a log


@dataclass(frozen=True, slots=True)
class SealedVoucher:
    """What is stored of a voucher: `lookups` find another copy of it, `sealed` is the voucher."""

    lookups: tuple[int, ...]  # the newest master key's first
    sealed: bytes


_encode = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(Voucher)


def seal_voucher(vault: Vault, voucher: Voucher, product_id: int) -> SealedVoucher:
    """Returns `voucher` encrypted for this product, and for no other."""
    lookups = vault.vouchers.lookups(f"voucher/{product_id}/{voucher.number}".encode())
    return SealedVoucher(tuple(lookups), vault.vouchers.seal(_encode(voucher), _context(product_id)))


def open_voucher(vault: Vault, sealed: bytes, product_id: int) -> Voucher:
    """Returns the voucher that `seal_voucher` encrypted. Raises SealBroken."""
    return _decoder.decode(vault.vouchers.open(sealed, _context(product_id)))


@dataclass(frozen=True, slots=True)
class Allocated:
    """A voucher in its recipient's hands."""

    voucher: Voucher
    is_test: bool
    handed_at: datetime


async def read_allocated(connection: Connection, vault: Vault, line: LineKey) -> Allocated | None:
    """Returns the voucher allocated to the line; None if there is none yet."""
    row = await connection.fetchrow(store.HANDED_OUT, *line)
    if row is None:
        return None
    return Allocated(open_voucher(vault, row["sealed"], row["product_id"]), row["is_test"], row["handed_at"])


def _context(product_id: int) -> bytes:
    return f"voucher/{product_id}".encode("ascii")
