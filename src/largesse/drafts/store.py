"""The SQL of drafts. Each draft belongs to one person in one environment, and is not found for anybody else."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import TypeAlias

import msgspec

from largesse.approvals.model import ApprovalRequest
from largesse.base.email import email_key
from largesse.base.errors import existing
from largesse.customers.actor import Actor
from largesse.customers.principal import Principal
from largesse.customers.roles import Right
from largesse.db.fragments import Fragment, compose, holds_address
from largesse.db.pool import Connection
from largesse.db.statements import count_changed
from largesse.drafts.columns import Columns
from largesse.drafts.model import Draft, DraftContent
from largesse.drafts.sheet import Sheet, SheetRow
from largesse.orders.ids import is_reference, new_reference

# Drafts of a person in an environment. A new one replaces the oldest.
MAX_DRAFTS = 20

_CONTENT = msgspec.json.Decoder(DraftContent)
_COLUMNS = msgspec.json.Decoder(Columns)
_encode = msgspec.json.Encoder().encode


# The person whose drafts are read or written, in one environment.
Owner: TypeAlias = Actor | Principal | ApprovalRequest

# Deletes all drafts of a person except the newest and those that wait for approval or were approved.
_DELETE_OLD = """
    DELETE FROM drafts WHERE customer_id = $1 AND environment = $2 AND id IN (
        SELECT id FROM drafts WHERE customer_id = $1 AND environment = $2 AND user_id = $3
        ORDER BY changed_at DESC, id OFFSET $4)
    AND NOT EXISTS (
        SELECT FROM approval_requests r WHERE r.customer_id = drafts.customer_id AND r.environment = drafts.environment
        AND r.id = drafts.id AND r.state IN ('waiting', 'approved'))
"""
_INSERT = """
    INSERT INTO drafts (customer_id, environment, user_id, id, content, created_at, changed_at)
    VALUES ($1, $2, $3, $4, $5::text::jsonb, $6, $6)
"""
_LIST = """
    SELECT id, content::text, changed_at FROM drafts
    WHERE customer_id = $1 AND environment = $2 AND user_id = $3 ORDER BY changed_at DESC, id
"""
_READ = """
    SELECT id, content::text, changed_at FROM drafts
    WHERE customer_id = $1 AND environment = $2 AND user_id = $3 AND id = $4
"""
_LOCK = _READ + " FOR UPDATE"
_UPDATE = """
    UPDATE drafts SET content = $4::text::jsonb, changed_at = clock_now()
    WHERE customer_id = $1 AND environment = $2 AND id = $3
"""
_GIVE = "UPDATE drafts SET user_id = $3 WHERE customer_id = $1 AND environment = $2 AND id = $4"
_DELETE = "DELETE FROM drafts WHERE customer_id = $1 AND environment = $2 AND id = $3"
_READ_ROWS = """
    SELECT number, cells FROM draft_rows
    WHERE customer_id = $1 AND environment = $2 AND draft_id = $3 AND sheet = $4 ORDER BY number
"""
_DELETE_ROWS = "DELETE FROM draft_rows WHERE customer_id = $1 AND environment = $2 AND draft_id = $3"
_DELETE_SOME_ROWS = _DELETE_ROWS + " AND sheet = $4 AND number = ANY ($5::int[])"
_INSERT_ROWS = """
    INSERT INTO draft_rows (customer_id, environment, draft_id, sheet, number, cells)
    SELECT $1, $2, $3, $4, number, cells FROM json_to_recordset($5::text::json) AS new (number integer, cells text[])
"""
_READ_COLUMNS = "SELECT columns::text FROM draft_columns WHERE customer_id = $1 AND heading = $2"
_SAVE_COLUMNS = """
    INSERT INTO draft_columns (customer_id, heading, columns, used_at)
    VALUES ($1, $2, $3::text::jsonb, clock_now())
    ON CONFLICT (customer_id, heading) DO UPDATE SET columns = excluded.columns, used_at = excluded.used_at
"""
# The products that a person sent, among the newest 100 orders of their customer, the latest first.
_PRODUCTS_SENT = """
    SELECT product_id FROM (
        SELECT id, product_id, user_id FROM orders
        WHERE customer_id::bigint = $1 AND environment = $2 ORDER BY id::bigint DESC LIMIT 100) AS newest
    WHERE user_id = $3 AND product_id IS NOT NULL GROUP BY product_id ORDER BY max(id) DESC
"""
# Finds the orders that drafts became: an order has the reference of its draft. On a cluster, drafts cannot be joined with orders.
_FIND_ORDERS = """
    SELECT reference FROM orders WHERE customer_id = $1 AND environment = $2 AND user_id = $3 AND reference = ANY($4::text[])
"""
# Matches the drafts, of one customer or of all, whose texts or rows contain an address.
_CONTAINS_ADDRESS = compose(
    """
    WHERE ($2::int IS NULL OR customer_id = $2) AND ({content_holds} OR EXISTS (
        SELECT FROM draft_rows r WHERE r.customer_id = drafts.customer_id AND r.environment = drafts.environment
        AND r.draft_id = drafts.id AND {cells_hold}))
    """,
    content_holds=holds_address(Fragment("lower(content::text)")),
    cells_hold=holds_address(Fragment("lower(array_to_string(r.cells, ' '))")),
)
_COUNT_WITH_ADDRESS = compose("SELECT count(*) FROM drafts {contains_address}", contains_address=_CONTAINS_ADDRESS)
_DELETE_WITH_ADDRESS = compose("DELETE FROM drafts {contains_address}", contains_address=_CONTAINS_ADDRESS)


async def begin_draft(connection: Connection, owner: Owner, now: datetime, content: DraftContent) -> Draft:
    """Adds a draft with that content and returns it. Call it inside a transaction."""
    draft = Draft(new_reference(now), content, now)
    person = _person(owner)
    await connection.execute(_DELETE_OLD, *person, MAX_DRAFTS - 1)
    await connection.execute(_INSERT, *person, draft.id, _encode(content).decode(), now)
    return draft


async def list_drafts(connection: Connection, owner: Owner) -> list[Draft]:
    """Returns the person's drafts, the last changed first."""
    rows = await connection.fetch(_LIST, *_person(owner))
    placed = await _find_orders(connection, owner, [row["id"] for row in rows])
    return [
        Draft(row["id"], _CONTENT.decode(row["content"]), row["changed_at"]) for row in rows if row["id"] not in placed
    ]


async def list_products_sent(connection: Connection, owner: Owner) -> list[int]:
    """Returns the ids of the products that the person sent in their customer's newest orders, the latest first."""
    return [row["product_id"] for row in await connection.fetch(_PRODUCTS_SENT, *_person(owner))]


async def read_draft(connection: Connection, owner: Owner, draft_id: str, *, lock: bool = False) -> Draft:
    """Returns the person's draft with that id. With `lock` it stays locked until the transaction ends. Raises NotFound."""
    return existing(await find_draft(connection, owner, draft_id, lock=lock), "There is no draft with that reference.")


async def find_draft(connection: Connection, owner: Owner, draft_id: str, *, lock: bool = False) -> Draft | None:
    """Returns the draft as `read_draft` does; None if the person has none.

    A draft is deleted after its order was placed. If the process died in between, it is none any more.
    """
    if not is_reference(draft_id):
        return None
    row = await connection.fetchrow(_LOCK if lock else _READ, *_person(owner), draft_id)
    if row is None or await find_placed(connection, owner, draft_id) is not None:
        return None
    return Draft(draft_id, _CONTENT.decode(row["content"]), row["changed_at"])


class DraftChange:
    """A draft that is being changed. Its `content` is saved when the change ends."""

    def __init__(self, connection: Connection, draft: Draft) -> None:
        self.connection = connection
        self.draft = draft
        self.content = draft.content


@asynccontextmanager
async def changing_draft(actor: Actor, draft_id: str) -> AsyncIterator[DraftChange]:
    """Opens a transaction in which the person's draft is locked and its content is saved at the end. Raises NotFound."""
    async with actor.transaction(Right.SEND) as transaction:
        change = DraftChange(
            transaction.connection, await read_draft(transaction.connection, actor, draft_id, lock=True)
        )
        yield change
        await save_draft(transaction.connection, actor, draft_id, change.content)


async def save_draft(connection: Connection, owner: Owner, draft_id: str, content: DraftContent) -> None:
    """Replaces the content of a draft. The draft must exist and be locked."""
    await connection.execute(_UPDATE, owner.customer_id, owner.environment, draft_id, _encode(content).decode())


async def take_draft(connection: Connection, owner: Owner, draft_id: str) -> None:
    """Makes a draft of another person the owner's, if it still exists."""
    await connection.execute(_GIVE, *_person(owner), draft_id)


async def drop_draft(connection: Connection, customer_id: int, environment: str | None, draft_id: str) -> bool:
    """Deletes a draft of any person with its rows. Returns whether it still existed."""
    return await count_changed(connection, _DELETE, customer_id, environment, draft_id) > 0


async def find_placed(connection: Connection, owner: Owner, draft_id: str) -> str | None:
    """Returns the reference of the order that the person's draft became, None if there is no such order."""
    return next(iter(await _find_orders(connection, owner, [draft_id])), None)


async def _find_orders(connection: Connection, owner: Owner, draft_ids: Sequence[str]) -> Collection[str]:
    return [row["reference"] for row in await connection.fetch(_FIND_ORDERS, *_person(owner), draft_ids)]


async def read_sheet(connection: Connection, owner: Owner, draft: Draft, sheet: int | None = None) -> Sheet:
    """Returns the rows of a draft: those of its sheet, or of another sheet of its workbook."""
    at = draft.content.source.sheet if sheet is None else sheet
    rows = await connection.fetch(_READ_ROWS, owner.customer_id, owner.environment, draft.id, at)
    return Sheet([SheetRow(row["number"], tuple(row["cells"])) for row in rows])


async def save_sheets(connection: Connection, owner: Owner, draft_id: str, sheets: Mapping[int, Sheet]) -> None:
    """Replaces the rows of all sheets of a draft. Call it inside a transaction, with the draft locked."""
    await connection.execute(_DELETE_ROWS, owner.customer_id, owner.environment, draft_id)
    for at, sheet in sheets.items():
        await write_rows(connection, owner, draft_id, at, (), sheet.rows)


async def write_rows(
    connection: Connection, owner: Owner, draft_id: str, sheet: int, numbers: Collection[int], rows: Sequence[SheetRow]
) -> None:
    """Replaces some rows, by number. Call it inside a transaction, with the draft locked."""
    key = (owner.customer_id, owner.environment, draft_id)
    if numbers:
        await connection.execute(_DELETE_SOME_ROWS, *key, sheet, list(numbers))
    added = [{"number": row.number, "cells": row.cells} for row in rows]
    await connection.execute(_INSERT_ROWS, *key, sheet, _encode(added).decode())


async def remembered_columns(connection: Connection, owner: Owner, heading: bytes | None) -> Columns | None:
    """Returns the columns that people of the customer last chose for a sheet with that `heading_key`; None if there are none."""
    if heading is None:
        return None
    text = await connection.fetchval(_READ_COLUMNS, owner.customer_id, heading)
    return None if text is None else _COLUMNS.decode(text)


async def remember_columns(connection: Connection, owner: Owner, heading: bytes | None, columns: Columns) -> None:
    """Saves the columns that a person chose for a sheet with that `heading_key`."""
    if heading is not None:
        await connection.execute(_SAVE_COLUMNS, owner.customer_id, heading, _encode(columns).decode())


async def count_drafts_with(connection: Connection, email: str, customer_id: int | None) -> int:
    """Returns how many drafts, of one customer or of all, contain that address."""
    return int(await connection.fetchval(_COUNT_WITH_ADDRESS, email_key(email), customer_id))


async def drop_drafts_with(connection: Connection, email: str, customer_id: int | None) -> int:
    """Deletes the drafts, of one customer or of all, that contain that address. Returns how many.

    A draft has not been sent: its author can write it again without the address.
    """
    return await count_changed(connection, _DELETE_WITH_ADDRESS, email_key(email), customer_id)


def _person(owner: Owner) -> tuple[int, str | None, int | None]:
    return owner.customer_id, owner.environment, owner.user_id
