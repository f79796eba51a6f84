"""Finds gifts of all customers, for members of staff: by address, reference, the caller's reference, code or tracking number.

Indexes of all customers' rows find references and addresses. The reference of a customer is searched for in the index of orders by customer.
Finds a code by its look-up number, without decrypting it.
The audit log of the installation has each search and each look at a gift. The log of the customer has each look at its gifts.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from enum import StrEnum

import msgspec

from largesse.base.errors import InvalidRequest
from largesse.base.text import typed_numbers
from largesse.customers.actor import Actor
from largesse.customers.staff_roles import StaffRight
from largesse.db.fragments import NOTHING, Fragment, compose
from largesse.db.pool import Connection, is_distributed
from largesse.db.statements import plan_by_index
from largesse.encryption.vault import DecryptionFailed, Vault
from largesse.lines.codes import CodeError, parse_code
from largesse.reports.search import whole

MOST_FOUND = 50
_COLUMNS = Fragment("""
    o.customer_id, c.name AS customer, o.id AS order_id, o.environment, o.reference, o.external_reference, o.created_at,
    o.code_count
""")
# Rows on the coordinator are found in their own part of the statement, and then joined with rows that may be on a node.
_BY_REFERENCE = """
    WITH o AS MATERIALIZED (SELECT * FROM orders WHERE reference = $1 LIMIT $2)
    SELECT {columns}, NULL::int AS number FROM o JOIN customers c ON c.id = o.customer_id
"""
# The index of the callers' references begins with the customer. Either it is read whole, or a place in it is looked up for each customer and
# environment, at three pages each: whichever reads less.
_READS_WHOLE_INDEX = """
    SELECT i.relpages <= 2 * 3 * c.reltuples FROM pg_class i, pg_class c
    WHERE i.oid = 'orders_external_reference'::regclass AND c.oid = 'customers'::regclass
"""
_BY_EXTERNAL_REFERENCE = """
    WITH o AS MATERIALIZED (SELECT * FROM orders WHERE external_reference = $1 ORDER BY created_at DESC LIMIT $2)
    SELECT {columns}, NULL::int AS number FROM o JOIN customers c ON c.id = o.customer_id ORDER BY o.created_at DESC
"""
_BY_EXTERNAL_REFERENCE_OF_EACH = """
    SELECT {columns}, NULL::int AS number FROM customers c CROSS JOIN (VALUES ('production'), ('staging')) AS e (environment) CROSS JOIN LATERAL (
        SELECT * FROM orders
        WHERE customer_id = c.id AND environment = e.environment AND external_reference = $1 {apart}) AS o
    ORDER BY o.created_at DESC LIMIT $2
"""
_BY_ADDRESS = """
    WITH found AS MATERIALIZED (
        SELECT customer_id, order_id FROM report_words WHERE word = $1 AND word LIKE '%@%' ORDER BY created_at DESC LIMIT $2)
    SELECT {columns}, first.number
    FROM found f CROSS JOIN LATERAL (
        SELECT * FROM orders WHERE customer_id = f.customer_id AND id = f.order_id {apart}) AS o
    CROSS JOIN LATERAL (
        SELECT min(l.number) AS number FROM lines l
        WHERE l.customer_id = o.customer_id AND l.order_id = o.id AND lower(l.recipient_email) = $1) AS first
    JOIN customers c ON c.id = o.customer_id ORDER BY o.created_at DESC
"""
_BY_CODE = """
    WITH l AS MATERIALIZED (SELECT customer_id, order_id, number FROM lines_by_lookup($1))
    SELECT {columns}, l.number FROM l CROSS JOIN LATERAL (
        SELECT * FROM orders WHERE customer_id = l.customer_id AND id = l.order_id {apart}) AS o
    JOIN customers c ON c.id = o.customer_id LIMIT $2
"""
_BY_TRACKING_NUMBER = """
    WITH s AS MATERIALIZED (
        SELECT id, customer_id, order_id, number FROM shipments WHERE tracking_number = ANY($1::text[]) ORDER BY id DESC LIMIT $2)
    SELECT {columns}, s.number FROM s CROSS JOIN LATERAL (
        SELECT * FROM orders WHERE customer_id = s.customer_id AND id = s.order_id {apart}) AS o
    JOIN customers c ON c.id = o.customer_id ORDER BY s.id DESC
"""


class FoundOrder(msgspec.Struct, frozen=True):
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


async def find_by_reference(connection: Connection, reference: str) -> list[FoundOrder]:
    """Returns the order with a reference; if there is none, the newest orders with that external reference, at most MOST_FOUND."""
    if found := await _find(connection, compose(_BY_REFERENCE, columns=_COLUMNS), reference.upper()):
        return found
    if not await connection.fetchval(_READS_WHOLE_INDEX):
        statement = compose(_BY_EXTERNAL_REFERENCE_OF_EACH, columns=_COLUMNS, apart=_apart(connection))
        return await _find(connection, statement, reference)
    async with connection.transaction():
        await plan_by_index(connection)
        return await _find(connection, compose(_BY_EXTERNAL_REFERENCE, columns=_COLUMNS), reference)


async def find_by_address(connection: Connection, email: str) -> list[FoundOrder]:
    """Returns the newest orders to an address, at most MOST_FOUND. Letter case is ignored."""
    statement = compose(_BY_ADDRESS, columns=_COLUMNS, apart=_apart(connection))
    return await _find(connection, statement, whole(email))


async def find_by_code(connection: Connection, vault: Vault, code: bytes) -> list[FoundOrder]:
    """Returns the order with a code, in either environment; none for an unknown code. Does not decrypt the code."""
    statement = compose(_BY_CODE, columns=_COLUMNS, apart=_apart(connection))
    return await _find(connection, statement, vault.codes.lookups(code))


async def find_by_tracking_number(connection: Connection, number: str) -> list[FoundOrder]:
    """Returns the orders of parcels with a tracking number, which may be typed in any way. The newest parcel comes first, at most MOST_FOUND."""
    statement = compose(_BY_TRACKING_NUMBER, columns=_COLUMNS, apart=_apart(connection))
    return await _find(connection, statement, typed_numbers(number))


def _apart(connection: Connection) -> Fragment:
    """Returns SQL that makes the planner look up each customer or order separately. A cluster refuses it, and has fewer customers on each node."""
    return NOTHING if is_distributed(connection) else Fragment("OFFSET 0")


async def _find(connection: Connection, statement: Fragment, sought: object) -> list[FoundOrder]:
    return [FoundOrder(**row) for row in await connection.fetch(statement, sought, MOST_FOUND)]


LONGEST_SOUGHT = 254
_LINK = re.compile(r"/claim/([\w-]+)", re.ASCII)  # recipients have a link rather than a code


class By(StrEnum):
    """The kind of text that a search for gifts is made with."""

    ADDRESS = "address"
    REFERENCE = "reference"
    CODE = "code"
    TRACKING = "tracking"


async def search_gifts(actor: Actor, vault: Vault, by: By, sought: str) -> Sequence[FoundOrder]:
    """Returns the orders that a search finds. The audit log has the kind of the search, not its text. Raises InvalidRequest for an invalid text."""
    sought = sought.strip()
    if not 0 < len(sought) <= LONGEST_SOUGHT:
        raise InvalidRequest(f"A search must have 1 to {LONGEST_SOUGHT} characters.")
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
    link = _LINK.search(sought)
    try:
        code = vault.code_of_token(link[1])[0] if link else parse_code(sought)
    except (CodeError, DecryptionFailed):
        raise InvalidRequest("This is not a code.") from None
    return lambda connection: find_by_code(connection, vault, code)


async def record_look(actor: Actor, reference: str, number: int | None) -> None:
    """Records that a member of staff looks at an order of the actor's customer, or at its line `number`."""
    async with actor.transaction(StaffRight.FIND) as transaction:
        after = None if number is None else {"line": number}
        await transaction.record("gift.viewed", f"order {reference}", after=after)
        await transaction.of_installation().record("gift.viewed", f"order {reference}", after=after)
