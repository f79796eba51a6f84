"""`migrate` changes rights and policies beside a running service, which lacks none of them meanwhile."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from largesse.db import migrate
from largesse.db.embedded import EmbeddedServer
from largesse.db.grants import differences
from largesse.db.roles import Role

pytestmark = pytest.mark.embedded

# As an older release had it: everybody may call the functions, which migrations have made anew, and rights on columns are on the whole table.
BEFORE = f"""
DO $$ DECLARE named text; BEGIN
    FOR named IN SELECT oid::regprocedure::text FROM pg_proc
                 WHERE pronamespace = 'public'::regnamespace AND proowner = '{Role.OWNER}'::regrole LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO PUBLIC; REVOKE EXECUTE ON FUNCTION %s FROM {Role.APP}', named, named);
    END LOOP;
    FOR named IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' LOOP
        EXECUTE format('GRANT UPDATE ON %I TO {Role.APP}', named);
    END LOOP;
    FOR named IN SELECT format('%I ON %I', policyname, tablename) FROM pg_policies WHERE policyname = 'every_row' LOOP
        EXECUTE format('ALTER POLICY %s USING (1 = 1)', named);
    END LOOP;
END $$
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[EmbeddedServer]:
    """A server of its own, whose roles the test may change."""
    with EmbeddedServer(tmp_path / "data", extra_settings={"fsync": "off"}) as server:
        yield server


async def ask_on(session: asyncpg.Connection, question: str, *, until: asyncio.Future[object]) -> set[str]:
    """Returns the errors and results of a statement that is repeated until something else is done."""
    found = set()
    while not until.done():
        try:
            found.add(str(await session.fetch(question)))
        except asyncpg.PostgresError as error:
            found.add(str(error))
    return found


async def test_no_right_and_no_row_is_missing_while_they_change(server: EmbeddedServer) -> None:
    url = server.url()
    await migrate.upgrade(url)
    admin, app, other_app, worker = [await asyncpg.connect(url) for _ in range(4)]
    await admin.execute(BEFORE)
    await admin.execute("INSERT INTO customers (key, name, plan, funding) VALUES ('acme', 'Acme', 'pro', 'balance')")
    assert len((await differences(admin)).extra) > 50
    for session in (app, other_app):
        await session.execute(f"SET ROLE {Role.APP}")
    await worker.execute(f"SET ROLE {Role.WORKER}")
    done = asyncio.ensure_future(migrate.upgrade(url))
    called, written, seen = await asyncio.gather(
        ask_on(app, "SELECT 1 FROM callers('{}', 'production')", until=done),
        ask_on(other_app, "UPDATE accounts SET balance_minor = 0 WHERE false", until=done),
        ask_on(worker, "SELECT key FROM customers", until=done),
    )
    assert list((await done).refused) == []
    assert (called, written, seen) == ({"[]"}, {"[]"}, {"[<Record key='acme'>]"})
    for session in (admin, app, other_app, worker):
        await session.close()


async def test_roles_that_are_there_have_their_rights_while_another_is_not_made_yet(server: EmbeddedServer) -> None:
    """An upgrade whose login may make no roles: processes of the new release may run until an administrator has made the new one."""
    admin = await asyncpg.connect(server.url())
    await migrate.upgrade(server.url())
    await admin.execute(f"DROP OWNED BY {Role.OFFICE}; DROP ROLE {Role.OFFICE}")
    await admin.execute(f"CREATE ROLE early LOGIN PASSWORD 'x' IN ROLE {Role.OWNER}")
    await admin.execute(f"REVOKE ALL ON budgets FROM {Role.APP}, {Role.WORKER}")
    await admin.execute(
        f"GRANT EXECUTE ON FUNCTION callers TO PUBLIC; REVOKE EXECUTE ON FUNCTION callers FROM {Role.APP}"
    )
    url = f"postgresql://early:x@/largesse?{server.url().rpartition('?')[2]}"
    assert f"CREATE ROLE {Role.OFFICE} NOLOGIN" in (await migrate.upgrade(url)).refused
    found = await differences(admin)
    assert found.extra == ()
    assert {right.grantee for right in found.missing} == {Role.OFFICE}
    await admin.close()
