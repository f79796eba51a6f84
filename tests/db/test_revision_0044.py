"""A database of an early installation with chains, roles and people, at revision 0044, comes through the migrations whole and usable.

It was migrated by a login that may make no roles, or by a superuser.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest
from tests.closing import closing
from tests.db.revision_0044.facts import API_KEY, AT, CODE, MASTER_KEY, NUMBER, PASSWORD, PIN, REFERENCE, SESSION
from tests.db.test_release import SUMS, summed
from tests.db.test_release import command as largesse

from largesse.customers.authenticator import Authenticator
from largesse.customers.passwords import Passwords
from largesse.customers.sessions import find_session
from largesse.db import migrate
from largesse.db.embedded import EmbeddedServer
from largesse.db.pool import Database
from largesse.db.roles import Role
from largesse.db.scope import LOOKUP
from largesse.encryption.vault import Vault
from largesse.lines.codes import open_code

pytestmark = pytest.mark.embedded
DUMP = Path(__file__).with_name("revision_0044") / "dump.sql"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    """A server of its own, on which no roles are made yet."""
    with EmbeddedServer(tmp_path_factory.mktemp("early") / "data", extra_settings={"fsync": "off"}) as server:
        yield server


async def fill(url: str, admin_url: str) -> None:
    """Brings an empty database to the revision and fills it with the rows of the fixture."""
    session = await asyncpg.connect(url)
    for path in sorted(migrate.REVISIONS.glob("*.sql"))[:44]:
        await session.execute(path.read_text("utf-8"))
    await session.execute(
        "CREATE TABLE alembic_version (version_num varchar(32) CONSTRAINT alembic_version_pkc PRIMARY KEY)"
    )
    await session.execute("INSERT INTO alembic_version VALUES ('0044')")
    await session.close()
    session = await asyncpg.connect(admin_url)
    await session.execute("SET session_replication_role = replica; TRUNCATE catalogue_version, clock CASCADE")
    await session.execute(DUMP.read_text("utf-8"))
    await session.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "makes_roles",
    [pytest.param(False, id="ordinary login"), pytest.param(True, id="superuser", marks=pytest.mark.slow)],
)
async def test_it_migrates_and_everything_opens(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch, makes_roles: bool
) -> None:
    name = "early_made" if makes_roles else "early"
    admin = await asyncpg.connect(server.url("postgres"))
    await admin.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'x' {'SUPERUSER' if makes_roles else ''}")
    await admin.execute(f"CREATE DATABASE {name} OWNER {name} STRATEGY FILE_COPY")
    if not makes_roles:
        await admin.execute("; ".join(f"DROP ROLE IF EXISTS {role}" for role in Role))
    await admin.close()
    url = f"postgresql://{name}:x@/{name}?{server.url().rpartition('?')[2]}"
    await fill(url, server.url(name))
    session = await asyncpg.connect(server.url(name))
    before = await summed(session)
    monkeypatch.setenv("LARGESSE_DATABASE_URL", url)
    monkeypatch.setenv("LARGESSE_MASTER_KEY", MASTER_KEY)

    code, said = await asyncio.to_thread(largesse, "migrate")
    if not makes_roles:
        assert code == 1
        for statement in await migrate.roles_to_make(url):
            await session.execute(statement)
        code, said = await asyncio.to_thread(largesse, "migrate")
    assert (code, said) == (0, f"The database's schema is at revision {migrate.head_revision()}.\n")

    code, said = await asyncio.to_thread(largesse, "verify")
    assert (code, said.startswith("All ")) == (0, True), said
    assert "over 3 orders, 8 lines, 12 entries" in said
    assert {key: value for key, value in (await summed(session)).items() if key in SUMS} == before
    await opens(session, url)
    await session.close()


async def opens(session: asyncpg.Connection, url: str) -> None:
    """A code opens with its PIN, an API key and a session hold, and a password is right."""
    sealed = await session.fetchval(
        "SELECT l.sealed FROM lines l JOIN orders o ON o.id = l.order_id WHERE o.reference = $1 AND l.number = $2",
        *(REFERENCE, NUMBER),
    )
    opened = open_code(Vault((bytes.fromhex(MASTER_KEY),)), sealed, REFERENCE, NUMBER)
    assert (opened.code_text, opened.pin_text) == (CODE, PIN)
    kept = await session.fetchval("SELECT password FROM people WHERE email = 'ada@acme.example'")
    assert await Passwords().is_right(kept, PASSWORD)
    await session.execute("UPDATE clock SET ahead_by = $1::text::timestamptz - now()", AT)
    async with closing(Database.connect(url, role=Role.APP)) as database:
        authenticator = Authenticator(database, "staging")
        await authenticator.authenticate(API_KEY)  # or Unauthorized
        await authenticator.close()
        found = await find_session(database, SESSION)
        assert found is not None
        assert found.person is not None
        assert (found.person.email, found.person.role) == ("ada@acme.example", "admin")
        assert await database.fetchval(LOOKUP, "SELECT current_user::text") == Role.APP
