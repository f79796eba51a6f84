"""Searches for gifts of all customers by members of staff. The audit log has each search and each look at a gift.

The installation's log has both. The customer's log has who looked at which gift.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum

from largesse.base.errors import InvalidRequest
from largesse.customers.actor import Actor
from largesse.db.pool import Connection
from largesse.encryption.vault import Vault
from largesse.lines.codes import CodeError, parse_code
from largesse.reports.across import (
    FoundOrder,
    find_by_address,
    find_by_code,
    find_by_reference,
    find_by_tracking_number,
)
from largesse.staff.model import StaffRight

LONGEST_SOUGHT = 254


class By(StrEnum):
    """What a search for gifts goes by."""

    ADDRESS = "address"
    REFERENCE = "reference"
    CODE = "code"
    TRACKING = "tracking"


async def search_gifts(actor: Actor, vault: Vault, by: By, sought: str) -> Sequence[FoundOrder]:
    """Returns the orders that are found. The log has what the search went by, not its text. Raises InvalidRequest for a text beyond its limits."""
    sought = sought.strip()
    if not 0 < len(sought) <= LONGEST_SOUGHT:
        raise InvalidRequest(f"A search has 1 to {LONGEST_SOUGHT} characters.")
    look = _look(vault, by, sought)
    async with actor.transaction(StaffRight.FIND) as transaction:
        found = await look(transaction.connection)
        await transaction.record("gift.searched", "gifts", after={"by": by, "found": len(found)})
    return found


def _look(vault: Vault, by: By, sought: str) -> Callable[[Connection], Awaitable[list[FoundOrder]]]:
    if by is By.ADDRESS:
        return lambda connection: find_by_address(connection, sought)
    if by is By.REFERENCE:
        return lambda connection: find_by_reference(connection, sought)
    if by is By.TRACKING:
        return lambda connection: find_by_tracking_number(connection, sought)
    try:
        code = parse_code(sought)
    except CodeError:
        raise InvalidRequest("This is no code.") from None
    return lambda connection: find_by_code(connection, vault, code)


async def record_look(actor: Actor, reference: str, number: int | None) -> None:
    """Records that a member of staff looks at an order of the actor's customer, or at the gift that has line `number`."""
    async with actor.transaction(StaffRight.FIND) as transaction:
        after = None if number is None else {"line": number}
        await transaction.record("gift.viewed", f"order {reference}", after=after)
        await transaction.of_installation().record("gift.viewed", f"order {reference}", after=after)
