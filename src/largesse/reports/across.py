"""Finds gifts of all customers, for members of staff: by address, reference, the caller's reference, code or tracking number.

Searches the index of each customer in turn, so that no further index is needed. Finds a code by its look-up number, and reads nothing of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from largesse.db.fragments import Fragment, compose
from largesse.db.pool import Connection, Row
from largesse.encryption.vault import Vault
from largesse.reports.search import whole

MOST_FOUND = 50
_COLUMNS = Fragment("""
    o.customer_id, c.name AS customer, o.id AS order_id, o.environment, o.reference, o.external_reference, o.created_at,
    o.code_count
""")
_ENVIRONMENTS = Fragment("(VALUES ('production'), ('staging')) AS e (environment)")
# `OFFSET 0` makes the planner look up each customer separately.
_BY_REFERENCE = compose(
    """
    SELECT {columns}, NULL::int AS number FROM customers c CROSS JOIN LATERAL (
        SELECT * FROM orders WHERE customer_id = c.id AND reference = $1 OFFSET 0) AS o
    LIMIT $2
    """,
    columns=_COLUMNS,
)
_BY_EXTERNAL_REFERENCE = compose(
    """
    SELECT {columns}, NULL::int AS number FROM customers c CROSS JOIN {environments} CROSS JOIN LATERAL (
        SELECT * FROM orders
        WHERE customer_id = c.id AND environment = e.environment AND external_reference = $1 OFFSET 0) AS o
    LIMIT $2
    """,
    columns=_COLUMNS,
    environments=_ENVIRONMENTS,
)
_BY_ADDRESS = compose(
    """
    WITH found AS MATERIALIZED (
        SELECT c.id AS customer_id, w.order_id, w.created_at FROM customers c CROSS JOIN {environments} CROSS JOIN LATERAL (
            SELECT order_id, created_at FROM report_words
            WHERE customer_id = c.id AND environment = e.environment AND word = $1
            ORDER BY created_at DESC LIMIT $2) AS w
        ORDER BY w.created_at DESC LIMIT $2)
    SELECT {columns}, (
        SELECT min(l.number) FROM lines l
        WHERE l.customer_id = o.customer_id AND l.order_id = o.id AND lower(l.recipient_email) = $1) AS number
    FROM found f CROSS JOIN LATERAL (
        SELECT * FROM orders WHERE customer_id = f.customer_id AND id = f.order_id OFFSET 0) AS o
    JOIN customers c ON c.id = o.customer_id ORDER BY o.created_at DESC
    """,
    columns=_COLUMNS,
    environments=_ENVIRONMENTS,
)
_BY_CODE = compose(
    """
    SELECT {columns}, l.number FROM lines_by_lookup($1) l CROSS JOIN LATERAL (
        SELECT * FROM orders WHERE customer_id = l.customer_id AND id = l.order_id OFFSET 0) AS o
    JOIN customers c ON c.id = o.customer_id LIMIT $2
    """,
    columns=_COLUMNS,
)
_BY_TRACKING_NUMBER = compose(
    """
    SELECT {columns}, s.number FROM shipments s CROSS JOIN LATERAL (
        SELECT * FROM orders WHERE customer_id = s.customer_id AND id = s.order_id OFFSET 0) AS o
    JOIN customers c ON c.id = o.customer_id WHERE s.tracking_number = $1 ORDER BY s.id DESC LIMIT $2
    """,
    columns=_COLUMNS,
)


@dataclass(frozen=True, slots=True)
class FoundOrder:
    """An order of any customer. `number` is the line that was searched for; None if the search was for the order."""

    customer_id: int
    customer: str
    order_id: int
    environment: str
    reference: str
    external_reference: str | None
    created_at: datetime
    code_count: int
    number: int | None


def _found(rows: Sequence[Row]) -> list[FoundOrder]:
    return [FoundOrder(**row) for row in rows]


async def find_by_reference(connection: Connection, reference: str) -> list[FoundOrder]:
    """Returns the order with a reference, and the newest orders with that external reference, at most MOST_FOUND each."""
    own = await connection.fetch(_BY_REFERENCE, reference.upper(), MOST_FOUND)
    return _found([*own, *await connection.fetch(_BY_EXTERNAL_REFERENCE, reference, MOST_FOUND)])


async def find_by_address(connection: Connection, email: str) -> list[FoundOrder]:
    """Returns the newest orders to an address, at most MOST_FOUND. Letter case is ignored."""
    return _found(await connection.fetch(_BY_ADDRESS, whole(email), MOST_FOUND))


async def find_by_code(connection: Connection, vault: Vault, code: bytes) -> list[FoundOrder]:
    """Returns the order with a code, in either environment; nothing for an unknown code. Reads nothing of the code."""
    return _found(await connection.fetch(_BY_CODE, vault.codes.lookups(code), MOST_FOUND))


async def find_by_tracking_number(connection: Connection, number: str) -> list[FoundOrder]:
    """Returns the orders with a parcel of a tracking number, the newest parcel first, at most MOST_FOUND."""
    return _found(await connection.fetch(_BY_TRACKING_NUMBER, number, MOST_FOUND))
