"""Confirming an address: the first link from a mail ends what was set up for the address before."""

from __future__ import annotations

from largesse.database.pool import Connection, open_credentials
from largesse.people.links import end_links_of_person
from largesse.people.second_step import forget_second_step
from largesse.people.session import forget_browsers


async def confirm_address(connection: Connection, person_id: int) -> bool:
    """Notes that the person reads the mail of their address; False if they did so before.

    Whatever was set up until then may be somebody else's, who had the address's invitation from a page: password, second step, sessions,
    known browsers and links end. The person chooses a password in the same transaction.
    """
    await open_credentials(connection)
    confirmed = await connection.fetchval(
        """
        UPDATE people SET confirmed_at = clock_now(), password = NULL WHERE id = $1 AND confirmed_at IS NULL
        RETURNING true
        """,
        person_id,
    )
    if not confirmed:
        return False
    await forget_second_step(connection, person_id)
    await forget_browsers(connection, person_id)
    await end_links_of_person(connection, person_id)
    return True
