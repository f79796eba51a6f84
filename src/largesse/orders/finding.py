"""An order by its reference, as far as the caller may know of it or decide over it."""

from __future__ import annotations

from collections.abc import Iterable

from largesse.base.errors import NotFound
from largesse.database.pool import Connection, Row
from largesse.identity.principal import Principal
from largesse.identity.standing import require_own
from largesse.orders.reference import is_reference


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


async def references_of(
    connection: Connection, customer_id: int, user_id: int, references: Iterable[str]
) -> set[str]:
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
