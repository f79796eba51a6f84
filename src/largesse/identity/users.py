"""The people of a customer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from largesse.database import Connection
from largesse.identity.principal import Principal


@dataclass(frozen=True, slots=True)
class User:
    """A person on the customer's account."""

    id: int
    name: str
    email: str
    role: str  # admin or member
    is_active: bool
    created_at: datetime
    last_login_at: datetime | None


async def list_users(connection: Connection, principal: Principal, *, offset: int, limit: int) -> list[User]:
    """The users of the principal's customer, newest first."""
    rows = await connection.fetch(
        """
        SELECT id, name, email, role, is_active, created_at, last_login_at
        FROM users WHERE customer_id = $1 ORDER BY id DESC OFFSET $2 LIMIT $3
        """,
        principal.customer_id,
        offset,
        limit,
    )
    return [User(**row) for row in rows]
