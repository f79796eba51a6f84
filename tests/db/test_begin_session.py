"""A session that the server fails to begin."""

import asyncpg
import pytest

from largesse.base.database_address import DatabaseAddress
from largesse.db.pool import DATABASE_AWAY
from largesse.db.session import REQUESTS, Dialer


async def test_a_session_that_the_server_fails_to_begin_is_no_fault_of_ours(
    database_url: str, beside: asyncpg.Connection
) -> None:
    """PostgreSQL 15 says so of a full disk ("could not write init file"), and callers got 500."""
    if beside.get_server_version() < (17, 0):
        pytest.skip("triggers for logins came with PostgreSQL 17")
    await beside.execute(
        """
        CREATE FUNCTION fail() RETURNS event_trigger LANGUAGE plpgsql
        AS $$ BEGIN RAISE 'could not write init file' USING ERRCODE = 'internal_error'; END $$;
        CREATE EVENT TRIGGER fail ON login EXECUTE FUNCTION fail();
        """
    )
    with pytest.raises(DATABASE_AWAY, match="could not write init file"):
        await Dialer(DatabaseAddress.parse(database_url), REQUESTS).dial()
    await beside.execute("DROP EVENT TRIGGER fail")
