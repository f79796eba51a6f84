"""The SQL of approvals of automations that end because their template changes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import fields

from largesse.db.fragments import compose, each
from largesse.db.pool import Connection, Row
from largesse.templates.store import TemplateContent

_LOCK = "SELECT FROM automations WHERE customer_id = ANY($1::int[]) AND ended_at IS NULL ORDER BY customer_id, id FOR UPDATE"
# What a recipient gets by each approved automation: all of the template but its name, and the gift's, which follows from the gift.
_SENT = compose(
    """
    SELECT a.customer_id, a.id, a.user_id, ({content})::text AS sent
    FROM automations a JOIN templates t ON t.customer_id = a.customer_id AND t.id = a.template_id
    WHERE a.customer_id = ANY($1::int[]) AND a.ended_at IS NULL AND a.approved_by IS NOT NULL
    """,
    content=each("t.{name}", [one.name for one in fields(TemplateContent) if one.name not in {"name", "gift_name"}]),
)
_END = "UPDATE automations SET approved_by = NULL, approved_at = NULL WHERE customer_id = $1 AND id = $2"


async def lock_automations(connection: Connection, customer_ids: Collection[int]) -> bool:
    """Locks the automations of customers, in the environments of the transaction. Returns whether there are any."""
    return bool(await connection.fetch(_LOCK, list(customer_ids)))


async def read_approved(connection: Connection, customer_ids: Collection[int]) -> Sequence[Row]:
    """Returns the approved automations of customers, each with its person and what its template sends, as one text."""
    return await connection.fetch(_SENT, list(customer_ids))


async def end_approval(connection: Connection, customer_id: int, automation_id: int) -> None:
    """Ends the approval of an automation. It must be locked."""
    await connection.execute(_END, customer_id, automation_id)
