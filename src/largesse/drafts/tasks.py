"""What of drafts is old and may go: those that nobody has touched for two weeks, with everybody who is in them.

Dropping drafts that hold an address: what nobody has sent yet is put together again without it.
"""

from __future__ import annotations

from largesse.base.email import email_key
from largesse.db.pool import Connection
from largesse.jobs.retention import Old

OLD = (Old("drafts", "changed_at", days=14), Old("draft_columns", "used_at", days=400))


_HOLDS = """
    ($2::int IS NULL OR customer_id = $2) AND (position($1 IN lower(content::text)) > 0 OR EXISTS (
        SELECT FROM draft_rows r WHERE r.customer_id = drafts.customer_id AND r.environment = drafts.environment
        AND r.draft_id = drafts.id AND position($1 IN lower(array_to_string(r.cells, ' '))) > 0))
"""


async def count_drafts_with(connection: Connection, email: str, customer_id: int | None) -> int:
    """How many drafts, of one customer or of all, hold that address."""
    count: int = await connection.fetchval(
        f"SELECT count(*) FROM drafts WHERE {_HOLDS}",  # noqa: S608 - made of constants
        email_key(email),
        customer_id,
    )
    return count


async def drop_drafts_with(connection: Connection, email: str, customer_id: int | None) -> int:
    """Drops them; returns how many."""
    tag = await connection.execute(
        f"DELETE FROM drafts WHERE {_HOLDS}",  # noqa: S608 - made of constants
        email_key(email),
        customer_id,
    )
    return int(tag.split()[-1])
