"""Erasing an address from what receivers of webhooks answered: nothing they are sent names a recipient, but they may echo anything."""

from __future__ import annotations

from largesse.base.email import email_key
from largesse.database.pool import Connection


async def erase_from_answers(connection: Connection, email: str) -> int:
    """Drops the answers that hold the address; returns how many. Reads all that are kept."""
    tag = await connection.execute(
        """
        UPDATE delivery_attempts SET answer = NULL
        WHERE answer IS NOT NULL AND position($1 IN lower(encode(answer, 'escape'))) > 0
        """,
        email_key(email),
    )
    return int(tag.split()[-1])
