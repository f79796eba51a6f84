"""A person who acts in the web application, as what orders are placed for."""

from __future__ import annotations

from largesse.base.errors import Unauthorized
from largesse.database.pool import Connection
from largesse.identity.keys import Caller
from largesse.identity.principal import Principal


async def person_calls(
    connection: Connection,
    *,
    user_id: int,
    customer_id: int,
    environment: str,
    session_id: int,
    address: str | None = None,
) -> Caller:
    """Returns the person of that customer as a caller in an environment, signed in with that session, from that network address.

    Raises Unauthorized for who is no person of it, or no longer.
    """
    row = await connection.fetchrow(
        """
        SELECT c.id, c.name, c.plan, c.funding, u.id, u.role, v.version, clock_now()
        FROM users u JOIN customers c ON c.id = u.customer_id CROSS JOIN catalogue_version v
        WHERE u.id = $1 AND u.customer_id = $2 AND u.is_active
        """,
        user_id,
        customer_id,
    )
    if row is None:
        raise Unauthorized("This person may no longer sign in for this customer.")
    principal = Principal(
        key_id=None,
        environment=environment,
        customer_id=row[0],
        customer_name=row[1],
        plan=row[2],
        funding=row[3],
        service_account_id=None,
        service_account_name="",
        service_account_active=True,
        user_id=row[4],
        role=row[5],
        session_id=session_id,
    )
    return Caller(principal, row[6], row[7], address)
