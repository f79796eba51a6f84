"""Vouchers: the number a recipient holds in the end, how it rests sealed, and who provides it: one small interface, with two implementations."""

from __future__ import annotations

import base64
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import date, datetime
from typing import Protocol

import msgspec

from largesse.base.lab_addresses import Behaviour, behaviour_of
from largesse.catalogue.model import STOCK
from largesse.db.pool import Connection
from largesse.encryption.vault import Vault
from largesse.fulfilment import store
from largesse.lines.states import LineKey

_TEST_NUMBER_BYTES = 10
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


@dataclass(frozen=True, slots=True)
class VoucherRequest:
    """A voucher for a line: of a product, worth `value_minor` of its currency."""

    line: LineKey
    product_id: int
    value_minor: int
    email: str | None = None  # the recipient's address
    suppliers: tuple[str, ...] = (STOCK,)  # of the product, in the order in which they are asked


Buy = Callable[[Connection, VoucherRequest, datetime], Awaitable[bool]]


class Provider(Protocol):
    """Allocates voucher numbers inside the caller's transaction, which has locked the line."""

    async def allocate(self, connection: Connection, wanted: VoucherRequest, at: datetime) -> bool:
        """Writes the line's voucher to `vouchers`. Returns False if there is none now."""
        ...

    async def begin_buying(self, connection: Connection, wanted: VoucherRequest, at: datetime) -> bool:
        """Starts to buy the voucher from a supplier after the commit; returns False if no supplier has it."""
        ...


class InventoryProvider:
    """Allocates imported numbers, each once, in the order of their import; none for a product whose supplier comes first.

    `buy` begins to buy from the product's suppliers.
    """

    def __init__(self, buy: Buy | None = None) -> None:
        self._buy = buy

    async def allocate(self, connection: Connection, wanted: VoucherRequest, at: datetime) -> bool:
        """Implements Provider. Lines that already wait for the same product and value come first.

        Skips numbers that another transaction is allocating.
        """
        if wanted.suppliers[0] != STOCK:
            return False
        allocated = await connection.fetchval(store.ALLOCATE, wanted.product_id, wanted.value_minor, *wanted.line, at)
        return allocated is not None

    async def begin_buying(self, connection: Connection, wanted: VoucherRequest, at: datetime) -> bool:
        """Implements Provider."""
        return self._buy is not None and await self._buy(connection, wanted, at)


class TestProvider:
    """Invents numbers that no shop accepts, for staging and the demo.

    With `inventory`, products with imported numbers use these, so that the demo can show an import.
    """

    __test__ = False  # no test, whatever its name says to pytest

    def __init__(self, vault: Vault, inventory: InventoryProvider | None = None) -> None:
        self._vault = vault
        self._inventory = inventory

    async def allocate(self, connection: Connection, wanted: VoucherRequest, at: datetime) -> bool:
        """Implements Provider. Finds a number for a product without one, except for recipients of the test lab whose gift waits."""
        if behaviour_of(wanted.email) is Behaviour.NO_STOCK and self._inventory is None:
            return False
        if self._inventory is not None and await connection.fetchval(store.IS_STOCKED, wanted.product_id):
            return await self._inventory.allocate(connection, wanted, at)
        drawn = base64.b32encode(os.urandom(_TEST_NUMBER_BYTES)).decode("ascii")
        voucher = Voucher("-".join(["TEST", *(drawn[start : start + 4] for start in range(0, 16, 4))]))
        sealed = seal_voucher(self._vault, voucher, wanted.product_id)
        await connection.execute(
            store.INSERT_TEST_VOUCHER,
            wanted.product_id,
            wanted.value_minor,
            sealed.lookups[0],
            sealed.sealed,
            *wanted.line,
            at,
        )
        return True

    async def begin_buying(self, connection: Connection, wanted: VoucherRequest, at: datetime) -> bool:  # noqa: ARG002 - as Provider
        """Implements Provider. Buys nothing for recipients of staging and the demo."""
        return False
