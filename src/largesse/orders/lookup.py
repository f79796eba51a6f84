"""An order by its reference, as far as the caller may know of it or decide over it.

What was asked for with an order, so that whoever sends again can tell whether it was the same.

Reading a placed order back by its reference.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import msgspec

from largesse.base.errors import NotFound
from largesse.customers.access import is_own, require_own
from largesse.customers.principal import Principal
from largesse.customers.restrictions import CODES, require_scope
from largesse.db.pool import Connection, Row, is_distributed
from largesse.encryption.vault import Vault
from largesse.lines.codes import CODES_AT_ONCE, IssuedCode, give_codes, open_code
from largesse.orders.ids import is_reference
from largesse.orders.order_acts import record_reading
from largesse.orders.row import OrderRow, Receipt, order_row


async def find_order(connection: Connection, principal: Principal, reference: str) -> Row:
    """The order's row. Raises NotFound for none, which one of another customer or environment is too."""
    order: Row | None = None
    if is_reference(reference):
        order = await connection.fetchrow(
            "SELECT * FROM orders WHERE reference = $1 AND customer_id = $2 AND environment = $3",
            reference,
            principal.customer_id,
            principal.environment,
        )
    if order is None:
        raise NotFound("There is no order of that reference.")
    return order


async def references_of(connection: Connection, customer_id: int, user_id: int, references: Iterable[str]) -> set[str]:
    """Returns those of the references whose orders that person has placed."""
    rows = await connection.fetch(
        "SELECT reference FROM orders WHERE customer_id = $1 AND user_id = $2 AND reference = ANY($3::text[])",
        customer_id,
        user_id,
        list(references),
    )
    return {row["reference"] for row in rows}


async def find_own_order(connection: Connection, principal: Principal, reference: str) -> Row:
    """The same, for who decides over an order: cancels it, has its mail sent again. Raises OtherServiceAccount besides."""
    order = await find_order(connection, principal, reference)
    require_own(principal, order["service_account_id"], order["user_id"], order["reference"])
    return order


class RequestedRecipient(msgspec.Struct, frozen=True):
    """One address and name, and how many codes it got in all."""

    email: str
    name: str | None
    quantity: int


class OrderRequest(msgspec.Struct, frozen=True):
    """What was asked for, as the order keeps it: with what a template or default filled in."""

    order: OrderRow
    is_own: bool  # whether it is the asker's to decide over
    recipients: list[RequestedRecipient]  # in the order they were given; none of a code batch


async def read_request(connection: Connection, principal: Principal, reference: str) -> OrderRequest:
    """What the order was asked for with; no codes. Raises NotFound for an order of another customer or environment."""
    row = await find_order(connection, principal, reference)
    order = order_row(row)
    own = is_own(principal, order.service_account_id, order.user_id)
    return OrderRequest(order, own, [] if order.is_batch else await _recipients(connection, row))


async def _recipients(connection: Connection, order: Row) -> list[RequestedRecipient]:
    rows = await connection.fetch(
        """
        SELECT recipient_email AS email, recipient_name AS name, count(*)::int AS quantity
        FROM lines WHERE customer_id = $1 AND order_id = $2 GROUP BY 1, 2 ORDER BY min(number)
        """,
        order["customer_id"],
        order["id"],
    )
    return [RequestedRecipient(**row) for row in rows]


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
    whose = row["customer_id"] if is_distributed(connection) else None
    return Receipt(order_row(row), await give_codes(codes, vault, public_url, whose))


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
