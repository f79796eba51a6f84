"""Erasing where parcels go: addresses that recipients gave."""

from __future__ import annotations

from collections.abc import Sequence

from largesse.base.vault import Vault
from largesse.database.pool import Connection
from largesse.fulfilment.notifications import open_email
from largesse.lines.erasing import read_left_emails
from largesse.lines.states import LineKey

_AT_ONCE = 5_000


async def erase_addresses(connection: Connection, order: tuple[int, int], numbers: Sequence[int]) -> int:
    """Erases the addresses of these lines' parcels; one that has not been shipped cannot be any more. Returns how many."""
    tag = await connection.execute(
        """
        UPDATE shipments SET sealed_address = NULL
        WHERE customer_id = $1 AND order_id = $2 AND number = ANY($3::int[]) AND sealed_address IS NOT NULL
        """,
        *order,
        list(numbers),
    )
    return int(tag.split()[-1])


async def find_lines_with_left_email(connection: Connection, vault: Vault, email: str) -> list[LineKey]:
    """The lines whose recipient left that address, letter case ignored; opens all that were left. Raises SealBroken."""
    found: list[LineKey] = []
    after = LineKey(-1, 0, 0)
    while rows := await read_left_emails(connection, after, _AT_ONCE):
        found += [line for line, sealed in rows if open_email(vault, sealed, line).lower() == email.lower()]
        after = rows[-1][0]
    return found
