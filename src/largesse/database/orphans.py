"""Orphans: sessions at the server whose process can no longer be heard, in the middle of a command.

Between two commands the server has limits of its own (largesse.database.session). Within one it waits for the rest of it without
end: for the rows of a COPY, or for the parameters of a statement that it has just prepared. Keepalive ends that where a host has vanished,
but not where something on the way still acknowledges, and until then the session's locks stay.
"""

from __future__ import annotations

import asyncio

import structlog

from largesse.database.pool import DATABASE_FAILED, Database
from largesse.database.scope import WORKER

_END_EVERY_S = 2.0
# A process of ours has the rest of a command ready, and a database may be slow to say that it waits for it.
_WAITED_S = 5.0

_log = structlog.get_logger(__name__)


async def end_orphans(database: Database) -> int:
    """Ends the orphans among the sessions of who logged in as we did, however they came about; returns how many there were."""
    async with database.transaction(WORKER) as connection:
        # A role sees and ends the sessions of those who logged in as it, not of those who act as it.
        await connection.execute("SET LOCAL ROLE NONE")
        ended = await connection.fetch(
            """
            SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE datname = current_database() AND usename = session_user
              AND application_name = current_setting('application_name')
              AND state = 'active' AND wait_event = 'ClientRead'
              AND state_change < clock_timestamp() - $1 * interval '1 second'
            """,
            _WAITED_S,
        )
    if ended:
        _log.warning("orphans_ended", sessions=len(ended))
    return len(ended)


async def end_orphans_for_ever(database: Database) -> None:
    """Does so again and again, until cancelled."""
    while True:
        await asyncio.sleep(_END_EVERY_S)
        try:
            await end_orphans(database)
        except DATABASE_FAILED as error:
            _log.warning("orphans_not_ended", error=type(error).__name__)
