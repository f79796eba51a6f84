"""Providers of voucher numbers: one small interface, and its two implementations."""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from largesse.db.pool import Connection
from largesse.encryption.vault import Vault
from largesse.fulfilment.vouchers import Voucher, seal_voucher
from largesse.lines.states import LineKey

_TEST_NUMBER_BYTES = 10


@dataclass(frozen=True, slots=True)
class VoucherRequest:
    """The voucher a line is to get: of a product, worth `value_minor` of its currency."""

    line: LineKey
    product_id: int
    value_minor: int


class Provider(Protocol):
    """Allocates voucher numbers inside the caller's transaction, which holds the line's lock."""

    async def allocate(self, connection: Connection, wanted: VoucherRequest, at: datetime) -> bool:
        """Writes the line's voucher to `vouchers`; False when there is none to be had now."""
        ...


class InventoryProvider:
    """Allocates imported numbers, each once, the first imported first."""

    async def allocate(self, connection: Connection, wanted: VoucherRequest, at: datetime) -> bool:
        """As Provider; never before lines that already wait for the same product and value.

        Numbers that another transaction is allocating are passed over.
        """
        allocated = await connection.fetchval(
            """
            UPDATE vouchers SET customer_id = $3, order_id = $4, number = $5, handed_at = $6
            WHERE id = (
                SELECT id FROM vouchers WHERE product_id = $1 AND value_minor = $2 AND order_id IS NULL
                AND NOT EXISTS (SELECT FROM waiting_lines($1, $2, 1))
                ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)
            RETURNING id
            """,
            wanted.product_id,
            wanted.value_minor,
            *wanted.line,
            at,
        )
        return allocated is not None


class TestProvider:
    """Makes up numbers that no shop takes, for staging and the demo.

    Products that an operator has imported numbers for come from that inventory when one is given (`inventory`), so that a
    demo shows an import at work.
    """

    __test__ = False  # no test, whatever its name says to pytest

    def __init__(self, vault: Vault, inventory: InventoryProvider | None = None) -> None:
        self._vault = vault
        self._inventory = inventory

    async def allocate(self, connection: Connection, wanted: VoucherRequest, at: datetime) -> bool:
        """As Provider; always finds a number for a product without one."""
        if self._inventory is not None and await _is_stocked(connection, wanted.product_id):
            return await self._inventory.allocate(connection, wanted, at)
        drawn = base64.b32encode(os.urandom(_TEST_NUMBER_BYTES)).decode("ascii")
        voucher = Voucher("-".join(["TEST", *(drawn[start : start + 4] for start in range(0, 16, 4))]))
        sealed = seal_voucher(self._vault, voucher, wanted.product_id)
        await connection.execute(
            """
            INSERT INTO vouchers
                (product_id, value_minor, lookup, sealed, is_test, added_at, customer_id, order_id, number, handed_at)
            VALUES ($1, $2, $3, $4, true, $8, $5, $6, $7, $8)
            """,
            wanted.product_id,
            wanted.value_minor,
            sealed.lookups[0],
            sealed.sealed,
            *wanted.line,
            at,
        )
        return True


async def _is_stocked(connection: Connection, product_id: int) -> bool:
    stocked: bool = await connection.fetchval(
        "SELECT EXISTS (SELECT FROM vouchers WHERE product_id = $1 AND NOT is_test)", product_id
    )
    return stocked
