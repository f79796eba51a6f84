"""The SQL of exports, receipts of erasures, orders whose retention period has ended, and requests that people make about their data.

An export holds no codes, PINs or vouchers: they are money.
"""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

import msgspec

from largesse.base.email import email_key
from largesse.base.errors import existing
from largesse.base.money import to_number
from largesse.budgets.store import list_names_of_member
from largesse.contacts.model import written_birthday
from largesse.contacts.service import open_address
from largesse.contacts.store import export_contacts, read_fields
from largesse.db.fragments import Fragment, compose, each
from largesse.db.pool import Connection, Row
from largesse.encryption.vault import Vault
from largesse.fulfilment.notifications import open_email
from largesse.fulfilment.shipments import read_address
from largesse.lines.states import LineKey
from largesse.lines.store import read_line_messages, read_line_records
from largesse.notes.service import notes_of_order
from largesse.orders.options import PERSONAL

_PERSONAL = each("o.{name}", PERSONAL)
_ORDER = compose(
    """
    SELECT o.reference, c.key AS customer, o.environment, o.created_at, o.scheduled_for, o.external_reference,
           o.value_minor, o.currency, o.country, {personal}, p.name AS product, g.name AS collection
    FROM orders o JOIN customers c ON c.id = o.customer_id
    LEFT JOIN products p ON p.id = o.product_id LEFT JOIN collections g ON g.id = o.collection_id
    WHERE o.customer_id = $1 AND o.id = $2
""",
    personal=_PERSONAL,
)
_STATES = """
    SELECT number, language, sealed_email FROM line_states
    WHERE customer_id = $1 AND order_id = $2 AND number = ANY($3::int[])
"""
_PARCEL_OF = """
    SELECT requested_at, exported_at, shipped_at, carrier, tracking_number FROM shipments
    WHERE customer_id = $1 AND order_id = $2 AND number = $3
"""
_MAIL_OF = """
    SELECT email, name, kind, edition, state, attempts, created_at, finished_at, reason FROM messages
    WHERE customer_id = $1 AND order_id = $2
      AND CASE WHEN kind = 'gift' THEN line_numbers && $3::int[] ELSE edition = ANY($3::int[]) END
    ORDER BY id
"""
_MEMBERS = """
    SELECT u.customer_id, u.id, c.key AS customer, u.email, u.name, u.role, u.is_active, u.created_at, u.last_login_at
    FROM users u JOIN customers c ON c.id = u.customer_id
    WHERE lower(u.email) = lower($1) AND ($2::int IS NULL OR u.customer_id = $2) ORDER BY c.key
"""
_MEMBER = ("customer", "email", "name", "role", "is_active", "created_at", "last_login_at")
_ADD_RECEIPT = """
    INSERT INTO erasures (at, customer_id, orders, lines, messages, cancelled, captured, parcels, texts, drafts,
        contacts, campaigns, customer_notes, retention_days)
    VALUES (clock_now(), $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) RETURNING id, at
"""

# For transactions that read whole tables. Behind PgBouncer, the role's own limit would hold, which is made for requests.
TAKE_TIME = "SET LOCAL statement_timeout = '10min'"

OrderKey = tuple[int, int]  # the customer and the id of an order
Json = dict[str, Any]


async def read_order(connection: Connection, vault: Vault, order: OrderKey, numbers: Sequence[int]) -> Json:
    """Returns an order with some of its lines and their mail, for export."""
    row = await connection.fetchrow(_ORDER, *order)
    assert row is not None, "orders are never deleted"
    columns: Json = dict(row)
    value_minor = columns.pop("value_minor")
    return {
        **columns,
        "value": to_number(value_minor, row["currency"]),
        "lines": await _lines(connection, vault, order, numbers),
        "mail": [dict(mail) for mail in await connection.fetch(_MAIL_OF, *order, list(numbers))],
    }


async def _lines(connection: Connection, vault: Vault, order: OrderKey, numbers: Sequence[int]) -> list[Json]:
    states = {row["number"]: row for row in await connection.fetch(_STATES, *order, list(numbers))}
    messages = await read_line_messages(connection, *order)
    notes = await notes_of_order(connection, vault, *order)
    lines, wanted = [], frozenset(numbers)
    for email, name, record in await read_line_records(connection, *order) if numbers else ():
        if record.number not in wanted:
            continue
        key = LineKey(*order, record.number)
        state: Row | None = states.get(record.number)
        left = state["sealed_email"] if state else None
        lines.append(
            {
                "email": email,
                "name": name,
                **msgspec.structs.asdict(record),
                "message": messages.get(record.number),
                "thank_you_note": notes.get(record.number),
                "language": state["language"] if state else None,
                "email_left": open_email(vault, left, key) if left else None,
                "parcel": await _parcel(connection, vault, key),
            }
        )
    return lines


async def _parcel(connection: Connection, vault: Vault, key: LineKey) -> Json | None:
    row = await connection.fetchrow(_PARCEL_OF, *key)
    return None if row is None else {**row, "address": await read_address(connection, vault, key)}


async def read_members(connection: Connection, email: str, customer_id: int | None) -> list[Json]:
    """Returns the memberships of an address, of one customer or of all, each with the names of its budgets."""
    members = []
    for of_customer, user_id, *columns in await connection.fetch(_MEMBERS, email, customer_id):
        member: Json = dict(zip(_MEMBER, columns, strict=True))
        if email_key(member["email"]) == email_key(email):
            members.append({**member, "budgets": await list_names_of_member(connection, of_customer, user_id)})
    return members


async def read_contacts(connection: Connection, vault: Vault, email: str, customer_id: int | None) -> list[Json]:
    """Returns the contacts of customers with that address, for export."""
    return [_exported(vault, row) for row in await export_contacts(connection, email, customer_id)]


def _exported(vault: Vault, row: Row) -> Json:
    columns: Json = dict(row)
    contact_id, customer_id, birthday = columns.pop("id"), columns.pop("customer_id"), row["birthday"]
    columns["address"] = open_address(vault, customer_id, contact_id, columns.pop("sealed_address"))
    columns["birthday"] = None if birthday is None else written_birthday(birthday)
    columns["own_fields"] = read_fields(row["own_fields"])
    return columns


class Receipt(msgspec.Struct, frozen=True):
    """What an erasure removed: counts, no names."""

    number: int
    at: datetime
    orders: int
    lines: int
    messages: int  # messages whose recipient was removed
    cancelled: int  # messages among them that will no longer be sent
    captured: int  # copies in the captured mailbox
    parcels: int
    texts: int  # orders whose texts or reference contained the address
    drafts: int  # deleted drafts
    contacts: int  # contacts that were deleted, or lost a field that contained the address
    campaigns: int  # lists of campaigns that lost the address
    customer_notes: int = 0  # deleted notes of staff about customers


async def add_receipt(
    connection: Connection, counts: Mapping[str, int], *, customer_id: int | None, retention_days: int | None = None
) -> Receipt:
    """Stores what an erasure removed. `retention_days` is set if the retention period had ended."""
    row = await connection.fetchrow(_ADD_RECEIPT, customer_id, *counts.values(), retention_days)
    assert row is not None, "an INSERT returns its row"
    return Receipt(number=row["id"], at=row["at"], **counts)


# An erased order comes first until the read models are updated, so it is left out. The subquery looks orders up one by one, without a sort.
_NOT_ERASED = Fragment(
    "(SELECT erased_at FROM orders o WHERE o.customer_id = r.customer_id AND o.id = r.order_id) IS NULL"
)


def _due(condition: Fragment) -> Fragment:
    """Returns SQL for the first $2 orders that ended $1 days ago or earlier. Leaves out the orders $3, and orders with a parcel to send again."""
    return compose(
        """
        SELECT customer_id, order_id, codes FROM report_orders r
        WHERE erasable_since <= (SELECT clock_now()) - $1 * interval '1 day'
          AND NOT EXISTS (SELECT FROM shipments s
                          WHERE s.customer_id = r.customer_id AND s.order_id = r.order_id AND s.again_at IS NOT NULL)
          AND order_id <> ALL($3::int[]) AND {condition}
        ORDER BY erasable_since LIMIT $2
    """,
        condition=condition,
    )


DUE = _due(_NOT_ERASED)
# On a cluster, the caller skips erased orders. `+ 0` avoids the index of customers, who may have many orders that are not due.
DUE_OF = _due(Fragment("customer_id + 0 = ANY($4::int[])"))
CUSTOMERS_DUE = """
    SELECT customer_id FROM report_orders
    WHERE erasable_since <= (SELECT clock_now()) - $2 * interval '1 day' AND customer_id = ANY($1::int[])
      AND order_id <> ALL($3::int[])
    ORDER BY erasable_since LIMIT 500
"""


# The id of a new request is the encryption context of its address.
NEXT_REQUEST_ID = "SELECT nextval('privacy_requests_id_seq')::int"
_TODAY = "SELECT (clock_now() AT TIME ZONE 'UTC')::date"
_ADD = """
    INSERT INTO privacy_requests (id, kind, customer_id, sealed_email, received_on, due_on) VALUES ($1, $2, $3, $4, $5, $5::date + 30)
"""
COUNT_OPEN = "SELECT count(*) FROM privacy_requests WHERE done_at IS NULL"
_COLUMNS = Fragment("""
    SELECT r.id, r.kind, r.customer_id, c.name AS customer, r.sealed_email, r.received_on, r.due_on, r.done_at, r.outcome, r.erasure_id,
           r.due_on - (clock_now() AT TIME ZONE 'UTC')::date AS days_left
    FROM privacy_requests r LEFT JOIN customers c ON c.id = r.customer_id
""")
_OPEN = compose("{columns} WHERE done_at IS NULL ORDER BY due_on, r.id LIMIT $1", columns=_COLUMNS)
_DONE = compose("{columns} WHERE done_at IS NOT NULL AND r.id < $1 ORDER BY r.id DESC LIMIT $2", columns=_COLUMNS)
_ONE = compose("{columns} WHERE r.id = $1", columns=_COLUMNS)
# An erasure that was carried out counts, even if somebody declined it meanwhile.
_FINISH = """
    UPDATE privacy_requests SET done_at = clock_now(), outcome = $2, erasure_id = $3, sealed_email = NULL
    WHERE id = $1 AND (done_at IS NULL OR ($3::int IS NOT NULL AND erasure_id IS NULL)) RETURNING id
"""
_RECEIPT = """
    SELECT id AS number, at, orders, lines, messages, cancelled, captured, parcels, texts, drafts, contacts, campaigns, customer_notes
    FROM erasures WHERE id = $1
"""
_COUNT_DUE = """
    SELECT count(*) AS open, count(*) FILTER (WHERE due_on < today) AS overdue,
           count(*) FILTER (WHERE due_on BETWEEN today AND today + $1::int) AS soon
    FROM privacy_requests, (SELECT (clock_now() AT TIME ZONE 'UTC')::date AS today) AS clock WHERE done_at IS NULL
"""


class PrivacyRequest(msgspec.Struct, frozen=True):
    """A request, and by when it must be done."""

    id: int
    kind: str  # export or erase
    customer_id: int | None  # None if it concerns all customers
    customer: str | None
    sealed_email: bytes | None  # None once it is done
    received_on: date
    due_on: date
    done_at: datetime | None
    outcome: str | None  # done, declined, or nothing (nothing was stored); None while it is open
    erasure_id: int | None
    days_left: int  # days until it is due; below zero if it is late


class DueCounts(msgspec.Struct, frozen=True):
    """How many requests are open, and how many of them are late or due soon."""

    open: int
    overdue: int
    soon: int


async def read_today(connection: Connection) -> date:
    """Returns the current day in UTC."""
    today: date = await connection.fetchval(_TODAY)
    return today


async def add_request(
    connection: Connection, request_id: int, kind: str, customer_id: int | None, sealed: bytes, received_on: date
) -> None:
    """Adds a request, which is due 30 days after it was received."""
    await connection.execute(_ADD, request_id, kind, customer_id, sealed, received_on)


async def list_open(connection: Connection, *, limit: int) -> Sequence[PrivacyRequest]:
    """Returns the open requests, the first due one first."""
    return [PrivacyRequest(**row) for row in await connection.fetch(_OPEN, limit)]


async def list_done(connection: Connection, *, before: int, limit: int) -> Sequence[PrivacyRequest]:
    """Returns the newest finished requests below an id."""
    return [PrivacyRequest(**row) for row in await connection.fetch(_DONE, before, limit)]


async def find_request(connection: Connection, request_id: int) -> PrivacyRequest:
    """Returns a request. Raises NotFound."""
    return PrivacyRequest(**existing(await connection.fetchrow(_ONE, request_id), "There is no such request."))


async def finish_request(connection: Connection, request_id: int, outcome: str, erasure_id: int | None = None) -> bool:
    """Marks a request as done and erases its address. Returns False if it was done already."""
    return await connection.fetchval(_FINISH, request_id, outcome, erasure_id) is not None


async def find_receipt(connection: Connection, number: int) -> Row | None:
    """Returns what an erasure removed."""
    return await connection.fetchrow(_RECEIPT, number)


async def count_due(connection: Connection, *, soon_days: int) -> DueCounts:
    """Returns how many requests are open, late, and due within so many days."""
    row = await connection.fetchrow(_COUNT_DUE, soon_days)
    assert row is not None, "an aggregate has a row"
    return DueCounts(**row)
