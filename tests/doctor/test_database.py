"""What is found about a database: a real one, set otherwise than it should be."""

import asyncio
import secrets
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import pytest
from tests.closing import closing
from tests.distributed import IS_DISTRIBUTED
from tests.worker.test_metrics import free_port

from largesse.base.settings import load_settings
from largesse.db.session import Session
from largesse.doctor.checks import CheckResult, Level
from largesse.doctor.database import check_database, compare_clocks


@dataclass
class Looked:
    """A database to set, and to have looked at."""

    url: str

    async def set(self, statement: str) -> None:
        """Runs a statement; `{database}` stands for the database's name."""
        async with closing(asyncpg.connect(self.url)) as connection:
            name = await connection.fetchval("SELECT quote_ident(current_database())")
            await connection.execute(statement.format(database=name))

    async def findings(self) -> list[CheckResult]:
        found = await check_database(load_settings({"LARGESSE_DATABASE_URL": self.url}))
        assert {finding.setting for finding in found} == {"LARGESSE_DATABASE_URL"}
        return found

    async def trouble(self) -> list[CheckResult]:
        return [finding for finding in await self.findings() if finding.level is not Level.OK]


@pytest.fixture
def looked(database_url: str) -> Looked:
    return Looked(database_url)


async def test_a_database_that_will_do(looked: Looked) -> None:
    # The tests' server forgets what it was told when the machine crashes: that is faster. And the tests may do anything there.
    trouble = [finding.text for finding in await looked.trouble() if "is off" not in finding.text]
    assert len(trouble) == 1
    assert "who is a superuser" in trouble[0]
    said = " ".join(finding.text for finding in await looked.findings())
    for words in ("PostgreSQL", "UTF8", "connections", "clock", "schema", "2,147,483,6", "and no others"):
        assert words in said


@pytest.mark.parametrize(
    ("statement", "level", "said"),
    [
        ("ALTER DATABASE {database} SET synchronous_commit = off", Level.WARNING, "synchronous_commit is off"),
        ("ALTER DATABASE {database} SET default_transaction_read_only = on", Level.ERROR, "read-only"),
        ("ALTER DATABASE {database} CONNECTION LIMIT 42", Level.WARNING, "allows 42 connections"),
        ("UPDATE alembic_version SET version_num = '0001'", Level.ERROR, "at revision 0001: run `largesse migrate`"),
        ("UPDATE alembic_version SET version_num = '9999', runs_from = '9999'", Level.ERROR, "newer than this release"),
        ("DROP TABLE alembic_version", Level.ERROR, "schema is empty: run `largesse migrate`"),
        ("UPDATE clock SET ahead_by = '3 days'", Level.WARNING, "moved by 3 days"),
        (
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'follow_ups_by_claim_by'::regclass",
            Level.WARNING,
            "uses it: follow_ups_by_claim_by.",
        ),
        pytest.param(
            "DROP INDEX follow_ups_by_claim_by",
            Level.WARNING,
            "are missing: follow_ups_by_claim_by.",
            marks=pytest.mark.skipif(IS_DISTRIBUTED, reason="indexes are not compared on a cluster"),
        ),
        ("GRANT DELETE ON entries TO largesse_app", Level.WARNING, "1 rights that are not theirs"),
        ("REVOKE INSERT ON orders, lines FROM largesse_app", Level.WARNING, "lack 2 of their rights"),
        ("SELECT setval('orders_id_seq', 1940000000)", Level.WARNING, "207,483,647 more orders"),
        ("SELECT setval('orders_id_seq', 2147483647)", Level.ERROR, "No id of an order is left"),
    ],
)
async def test_what_is_set_otherwise_is_named(looked: Looked, statement: str, level: Level, said: str) -> None:
    await looked.set(statement)
    assert [(f.level, f.text) for f in await looked.trouble() if said in f.text] != []
    assert [f.level for f in await looked.trouble() if said in f.text] == [level]


async def test_a_connection_that_others_can_read_is_named(looked: Looked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Session, "is_readable_on_network", True)
    [text] = [finding.text for finding in await looked.trouble() if "encrypted" in finding.text]
    assert "add ?sslmode=verify-full" in text


async def test_enough_ids_and_connections_are_enough(looked: Looked) -> None:
    await looked.set("SELECT setval('orders_id_seq', 1932735282)")
    await looked.set("ALTER DATABASE {database} CONNECTION LIMIT 43")
    trouble = [finding.text for finding in await looked.trouble()]
    assert not any("orders" in text and "ids" in text.lower() for text in trouble)
    assert not any("connections" in text for text in trouble)


@pytest.mark.parametrize(
    ("made_of", "said"),
    [
        ("LOGIN IN ROLE largesse_app", None),
        ("LOGIN IN ROLE largesse_worker", None),
        ("LOGIN IN ROLE largesse_owner", "who owns the schema"),
        ("LOGIN CREATEDB IN ROLE largesse_app", "who makes roles or databases"),
        ("LOGIN SUPERUSER", "who is a superuser"),
        ("LOGIN CONNECTION LIMIT 0 IN ROLE largesse_app", "end some, or raise max_connections or the limit"),
    ],
)
async def test_a_login_that_may_do_too_much_or_nothing_is_told(looked: Looked, made_of: str, said: str | None) -> None:
    name = f"test_checkup_{secrets.token_hex(4)}"
    await looked.set(f"CREATE ROLE {name} PASSWORD '{name}' {made_of}")
    parts = urlsplit(looked.url)
    hosts = parts.netloc.rpartition("@")[2]
    try:
        found = await Looked(looked.url.replace(f"//{parts.netloc}/", f"//{name}:{name}@{hosts}/", 1)).trouble()
    finally:
        await looked.set(f"DROP ROLE {name}")
    assert [said in finding.text for finding in found if "is off" not in finding.text] == [True] * bool(said)


async def test_a_database_that_cannot_be_reached() -> None:
    [found] = await Looked(f"postgresql://ada:secret@127.0.0.1:{free_port()}/largesse").findings()
    assert found.level is Level.ERROR
    assert "cannot be reached: no server listens at its host and port (" in found.text
    assert "secret" not in found.text


async def test_a_host_that_is_not_known_is_said_so() -> None:
    [found] = await Looked("postgresql://ada@host.invalid/largesse").findings()
    assert "the name of its host is not known (" in found.text


async def test_an_address_of_pgbouncer_that_does_not_say_so_is_told_what_is_missing() -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        refusal = b"SFATAL\0C08P01\0Munsupported startup parameter: largesse.customers\0\0"
        writer.write(b"E" + (len(refusal) + 4).to_bytes(4) + refusal)
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    [found] = await Looked(f"postgresql://ada@127.0.0.1:{port}/largesse?sslmode=disable").findings()
    assert "PgBouncer answers there: add ?pgbouncer=true to its address" in found.text
    server.close()


async def test_a_socket_that_is_not_there_is_named(tmp_path: Path) -> None:
    [found] = await Looked(f"postgresql:///largesse?host={tmp_path}").findings()
    assert "its socket, or a file that its address names, is not there" in found.text


async def test_the_address_of_commands_is_tried_too(looked: Looked) -> None:
    for owner, level in ((looked.url, Level.OK), (f"postgresql://ada:secret@127.0.0.1:{free_port()}/x", Level.ERROR)):
        environ = {"LARGESSE_DATABASE_URL": looked.url, "LARGESSE_OWNER_DATABASE_URL": owner}
        found = (await check_database(load_settings(environ)))[-1]
        assert (found.setting, found.level) == ("LARGESSE_OWNER_DATABASE_URL", level)
        assert "reach the database" in found.text
        assert "secret" not in found.text


@pytest.mark.skipif(IS_DISTRIBUTED, reason="serving processes may use another server of a cluster")
async def test_the_address_of_commands_is_of_the_same_database(looked: Looked) -> None:
    other = urlsplit(looked.url)._replace(path="/postgres").geturl()
    environ = {"LARGESSE_DATABASE_URL": looked.url, "LARGESSE_OWNER_DATABASE_URL": other}
    found = (await check_database(load_settings(environ)))[-1]
    assert (found.setting, found.level) == ("LARGESSE_OWNER_DATABASE_URL", Level.ERROR)
    assert found.text == "Commands change another database than the one of LARGESSE_DATABASE_URL."


async def test_an_embedded_database_is_not_made_by_looking(tmp_path: Path) -> None:
    [found] = await check_database(load_settings({"LARGESSE_DATA_DIR": str(tmp_path / "data")}))
    assert found.level is Level.ERROR
    assert "run `largesse migrate`" in found.text
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("sent", "at", "received", "said"),
    [
        (100.0, 100.0, 100.1, None),
        (100.0, 101.9, 100.0, None),
        (100.0, 102.1, 100.0, "2.1 s ahead of"),
        (100.0, 97.9, 100.0, "2.1 s behind"),
        (100.0, 110.0, 120.0, None),  # the answer took 20 s: nothing can be said
        (100.0, 123.0, 120.0, "13.0 s ahead of"),
    ],
)
def test_clocks_apart_by_more_than_the_answer_explains(
    sent: float, at: float, received: float, said: str | None
) -> None:
    found = compare_clocks(sent, at, received)
    assert (found.level is Level.WARNING) == (said is not None)
    assert (said or "") in found.text
