"""Reading a placed order back by its reference."""

from __future__ import annotations

import asyncio

from largesse.base.vault import Vault
from largesse.database.pool import Connection, Row, is_spread
from largesse.identity.narrowing import CODES, require_scope
from largesse.identity.principal import Principal
from largesse.identity.standing import require_own
from largesse.lines.issuing import CODES_AT_ONCE, IssuedCode, open_code
from largesse.lines.links import give_codes
from largesse.orders.acts import record_reading
from largesse.orders.finding import find_order
from largesse.orders.kept import Receipt, kept_order


async def read_order(
    connection: Connection,
    principal: Principal,
    vault: Vault,
    public_url: str,
    reference: str,
    *,
    address: str | None = None,
) -> Receipt:
    """The receipt again, for whoever lost it.

    Codes of a batch are given out again, to who decides over it alone, and that is recorded with `address`; call it inside a
    transaction. Raises NotFound for an order of another customer or environment, OtherServiceAccount, and ScopeRequired
    for a key that may not be given codes.
    """
    row = await find_order(connection, principal, reference)
    codes: list[IssuedCode] = []
    if row["delivery_mode"] == "manual":
        require_own(principal, row["service_account_id"], row["user_id"], row["reference"])
        require_scope(principal, CODES)
        codes = await _read_codes(connection, vault, row)
        await record_reading(connection, principal, address, row["id"])
    whose = row["customer_id"] if is_spread(connection) else None
    return Receipt(kept_order(row), await give_codes(codes, vault, public_url, whose))


async def _read_codes(connection: Connection, vault: Vault, order: Row) -> list[IssuedCode]:
    """The codes of an order, opened a part at a time: other requests get their turn in between."""
    lines = await connection.fetch(
        "SELECT number, sealed FROM lines WHERE customer_id = $1 AND order_id = $2 ORDER BY number",
        order["customer_id"],
        order["id"],
    )
    codes: list[IssuedCode] = []
    for start in range(0, len(lines), CODES_AT_ONCE):
        part = lines[start : start + CODES_AT_ONCE]
        codes += [open_code(vault, line["sealed"], order["reference"], line["number"]) for line in part]
        await asyncio.sleep(0)
    return codes
