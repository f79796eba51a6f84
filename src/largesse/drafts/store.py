"""Drafts in the database: each is one person's, and nobody else can tell that it is there."""

from __future__ import annotations

from datetime import datetime

import msgspec

from largesse.base.errors import NotFound
from largesse.customers.principal import Principal
from largesse.db.pool import Connection
from largesse.drafts.columns import Columns
from largesse.drafts.model import Draft, DraftContent
from largesse.drafts.sheet import Sheet, SheetRow
from largesse.orders.ids import is_reference, new_reference

# Drafts of a person in an environment; a new one takes the place of the oldest.
MAX_DRAFTS = 20

_CONTENT = msgspec.json.Decoder(DraftContent)
_COLUMNS = msgspec.json.Decoder(Columns)
_encode = msgspec.json.Encoder().encode


_READ = """
    SELECT content::text, changed_at FROM drafts
    WHERE customer_id = $1 AND environment = $2 AND id = $3 AND user_id = $4
"""
_LOCKED = f"{_READ} FOR UPDATE"


async def begin_draft(connection: Connection, principal: Principal, now: datetime, content: DraftContent) -> Draft:
    """A new draft of that content. Call it inside a transaction."""
    draft = Draft(new_reference(now), content, now)
    person = (principal.customer_id, principal.environment, principal.user_id)
    await connection.execute(
        """
        DELETE FROM drafts WHERE customer_id = $1 AND environment = $2 AND id IN (
            SELECT id FROM drafts WHERE customer_id = $1 AND environment = $2 AND user_id = $3
            ORDER BY changed_at DESC, id OFFSET $4)
        """,
        *person,
        MAX_DRAFTS - 1,
    )
    await connection.execute(
        """
        INSERT INTO drafts (customer_id, environment, user_id, id, content, created_at, changed_at)
        VALUES ($1, $2, $3, $4, $5::text::jsonb, $6, $6)
        """,
        *person,
        draft.id,
        _encode(content).decode(),
        now,
    )
    return draft


async def list_drafts(connection: Connection, principal: Principal) -> list[Draft]:
    """The person's drafts, the one changed last first."""
    rows = await connection.fetch(
        """
        SELECT id, content::text, changed_at FROM drafts
        WHERE customer_id = $1 AND environment = $2 AND user_id = $3 ORDER BY changed_at DESC, id
        """,
        principal.customer_id,
        principal.environment,
        principal.user_id,
    )
    return [_draft(row["id"], row["content"], row["changed_at"]) for row in rows]


async def sent_lately(connection: Connection, principal: Principal) -> list[int]:
    """The ids of the products that the person sent in their customer's newest orders, the latest first."""
    rows = await connection.fetch(
        """
        SELECT product_id FROM (
            SELECT id, product_id, user_id FROM orders
            WHERE customer_id::bigint = $1 AND environment = $2 ORDER BY id::bigint DESC LIMIT 100) AS newest
        WHERE user_id = $3 AND product_id IS NOT NULL GROUP BY product_id ORDER BY max(id) DESC
        """,
        principal.customer_id,
        principal.environment,
        principal.user_id,
    )
    return [row["product_id"] for row in rows]


async def read_draft(connection: Connection, principal: Principal, draft_id: str, *, lock: bool = False) -> Draft:
    """The person's draft of that id, locked until the transaction ends if asked for. Raises NotFound."""
    row = None
    if is_reference(draft_id):
        row = await connection.fetchrow(
            _LOCKED if lock else _READ, principal.customer_id, principal.environment, draft_id, principal.user_id
        )
    if row is None:
        raise NotFound("There is no draft of that reference.")
    return _draft(draft_id, row["content"], row["changed_at"])


async def save_draft(connection: Connection, principal: Principal, draft_id: str, content: DraftContent) -> None:
    """Puts other content in the draft's place; it must be there, and locked."""
    await connection.execute(
        """
        UPDATE drafts SET content = $4::text::jsonb, changed_at = clock_now()
        WHERE customer_id = $1 AND environment = $2 AND id = $3
        """,
        principal.customer_id,
        principal.environment,
        draft_id,
        _encode(content).decode(),
    )


async def drop_draft(connection: Connection, principal: Principal, draft_id: str) -> None:
    """Removes the draft with its rows, if it is still there."""
    await connection.execute(
        "DELETE FROM drafts WHERE customer_id = $1 AND environment = $2 AND id = $3",
        principal.customer_id,
        principal.environment,
        draft_id,
    )


async def read_sheet(connection: Connection, principal: Principal, draft_id: str) -> Sheet:
    """The rows of a draft, none where it has none."""
    rows = await connection.fetch(
        """
        SELECT number, cells FROM draft_rows
        WHERE customer_id = $1 AND environment = $2 AND draft_id = $3 ORDER BY number
        """,
        principal.customer_id,
        principal.environment,
        draft_id,
    )
    return Sheet([SheetRow(row["number"], row["cells"]) for row in rows])


async def save_sheet(connection: Connection, principal: Principal, draft_id: str, sheet: Sheet) -> None:
    """Puts these rows in the place of those the draft has. Call it inside a transaction, with the draft locked."""
    key = (principal.customer_id, principal.environment, draft_id)
    await connection.execute(
        "DELETE FROM draft_rows WHERE customer_id = $1 AND environment = $2 AND draft_id = $3", *key
    )
    await connection.execute(
        """
        INSERT INTO draft_rows (customer_id, environment, draft_id, number, cells)
        SELECT $1, $2, $3, number, cells
        FROM json_to_recordset($4::text::json) AS new (number integer, cells text[])
        """,
        *key,
        _encode([{"number": row.number, "cells": row.cells} for row in sheet.rows]).decode(),
    )


async def remembered_columns(connection: Connection, principal: Principal, heading: bytes | None) -> Columns | None:
    """What the customer's people last chose for a sheet of that heading (`heading_key`)."""
    if heading is None:
        return None
    text = await connection.fetchval(
        "SELECT columns::text FROM draft_columns WHERE customer_id = $1 AND heading = $2",
        principal.customer_id,
        heading,
    )
    return None if text is None else _COLUMNS.decode(text)


async def remember_columns(
    connection: Connection, principal: Principal, heading: bytes | None, columns: Columns
) -> None:
    """Keeps what somebody chose for a sheet of that heading."""
    if heading is None:
        return
    await connection.execute(
        """
        INSERT INTO draft_columns (customer_id, heading, columns, used_at)
        VALUES ($1, $2, $3::text::jsonb, clock_now())
        ON CONFLICT (customer_id, heading) DO UPDATE SET columns = excluded.columns, used_at = excluded.used_at
        """,
        principal.customer_id,
        heading,
        _encode(columns).decode(),
    )


def _draft(draft_id: str, content: str, changed_at: datetime) -> Draft:
    return Draft(draft_id, _CONTENT.decode(content), changed_at)
