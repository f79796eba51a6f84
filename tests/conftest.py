"""One PostgreSQL for the whole run, one migrated template in it, and databases cloned from that.

The server is an embedded one that all pytest-xdist workers share, or the one LARGESSE_TEST_DATABASE_URL names (15 or
later, a role that may create databases).
"""

from __future__ import annotations

import fcntl
import gc
import hashlib
import os
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import hypothesis
import pytest
from tests import memory
from tests.background import Statements, run
from tests.distributed import DistributedServers
from tests.faults.proxy import Proxy

from largesse.db import migrate
from largesse.db.embedded import EmbeddedServer
from largesse.db.pipeline import Statement
from largesse.db.pool import Database
from largesse.db.session import Session
from largesse.encryption.vault import Vault

# What collecting makes stays until the end: looking through it for garbage again and again took a quarter of the time.
gc.disable()

# A test database need not outlive a power cut.
UNSAFE_BUT_QUICK = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_connections": "300",
    # Databases are copied again and again: in the kernel, and past few buffers that are to be looked through.
    "file_copy_method": "clone",
    "shared_buffers": "64MB",
    "max_wal_size": "256MB",
    "min_wal_size": "64MB",
}


# Before pytest asks where temporary folders go: its other processes are told theirs.
if "PYTEST_DEBUG_TEMPROOT" not in os.environ and memory.has_room():
    os.environ["PYTEST_DEBUG_TEMPROOT"] = str(memory.FOLDER)

# Whoever could speak TLS, each client of HTTP and each process of the service, reads the world's authorities first, which takes longer
# than many requests. Nothing beyond this machine is asked here: one authority, which is nobody's, is read sooner.
if "DIST_INDEX" not in os.environ:
    os.environ["SSL_CERT_FILE"] = str(Path(__file__).with_name("authority.pem"))

# Settings of a developer's shell must not reach what the tests start.
for _name in [name for name in os.environ if name.startswith("LARGESSE_")]:
    if not _name.startswith("LARGESSE_TEST_"):
        del os.environ[_name]

# The same examples in every run, and no verdict on how fast a busy machine tries them.
hypothesis.settings.register_profile(
    "largesse", derandomize=True, deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("largesse")

CloneFactory = Callable[[], str]

MANY_CASES, EACH_OF_MANY = 4, 3


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """What collecting has made stays until the end: no later collection of garbage need go through it again."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks as `serverless` what uses no shared server, and as slow what is `long`.

    Of every n cases of a test that is marked `sampled(n)` the first is neither, the second is slow and the others are long. A test without
    that mark that uses the server and has more than MANY_CASES: all but every third of its cases are long.
    """
    cases = Counter(_test_of(item) for item in items)
    seen: Counter[str] = Counter()
    for item in items:
        test = _test_of(item)
        is_serverless = "server_url" not in getattr(item, "fixturenames", ())
        if is_serverless:
            item.add_marker(pytest.mark.serverless)
        if sampled := item.get_closest_marker("sampled"):
            if turn := seen[test] % sampled.args[0]:
                item.add_marker(pytest.mark.slow if turn == 1 else pytest.mark.long)
        elif not is_serverless and cases[test] > MANY_CASES and seen[test] % EACH_OF_MANY:
            item.add_marker(pytest.mark.long)
        if item.get_closest_marker("long"):
            item.add_marker(pytest.mark.slow)
        seen[test] += 1


def _test_of(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


@pytest.fixture
def database_url(clone_database: CloneFactory) -> str:
    """A fresh, migrated, empty database of this test's own."""
    return clone_database()


@pytest.fixture(scope="module")
def module_database_url(template: Template) -> Iterator[str]:
    """A fresh, migrated, empty database that the tests of one module share."""
    with template.clone() as url:
        yield url


@pytest.fixture
def clone_database(template: Template) -> Iterator[CloneFactory]:
    """Makes fresh databases, for a test that needs more than one; all are dropped when it ends."""
    clones = []

    def clone() -> str:
        context = template.clone()
        clones.append(context)
        return context.__enter__()

    yield clone
    for context in clones:
        context.__exit__(None, None, None)


@pytest.fixture(scope="session")
def server_url(shared_dir: Path) -> Iterator[str]:
    """The address of the server's maintenance database, as a role that may create databases."""
    external = os.environ.get("LARGESSE_TEST_DATABASE_URL")
    if external:
        yield external
        return
    with EmbeddedServer(shared_dir / "data", extra_settings=UNSAFE_BUT_QUICK) as server:
        yield server.url("postgres")


@pytest.fixture(scope="session")
def shared_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all workers of this run see."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session")
def template(server_url: str, shared_dir: Path) -> Iterator[Template]:
    """The migrated template: made by the first worker, dropped by the last."""
    with (shared_dir / "template").open("a+") as record, (shared_dir / "template.users").open("a") as users:
        with _locked(record):
            record.seek(0)
            name = record.read() or f"largesse_test_{secrets.token_hex(4)}"
            template = Template(server_url, name, shared_dir)
            if record.tell() == 0:
                template.create()
                record.write(name)
                record.flush()
            fcntl.flock(users, fcntl.LOCK_SH)
        yield template
        with _locked(record):
            try:
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
                template.drop()
                record.truncate(0)
            except BlockingIOError:
                pass
            finally:
                template.close()


class Template:
    """A migrated database that is only ever copied, and copies of it that hold something already and are only copied, too."""

    def __init__(self, server_url: str, name: str, shared_dir: Path) -> None:
        self._server_url = server_url
        self._name = name
        self._shared_dir = shared_dir
        self._server = Statements(server_url)
        nodes = os.environ.get("LARGESSE_TEST_NODES", "").split()
        self._spread = DistributedServers([server_url, *nodes]) if nodes else None

    def create(self) -> None:
        if self._spread is not None:
            self._spread.create(self._name)
            return
        self._server.execute(f'CREATE DATABASE "{self._name}" TEMPLATE template0')
        run(migrate.upgrade(self._url(self._name)))

    def drop(self) -> None:
        if self._spread is not None:
            self._spread.drop(self._name)
            return
        for (name,) in self._server.fetch("SELECT datname FROM pg_database WHERE starts_with(datname, $1)", self._name):
            self._server.execute(f'DROP DATABASE "{name}"')

    def close(self) -> None:
        if self._spread is not None:
            self._spread.close()
        self._server.close()

    @contextmanager
    def clone(self) -> Iterator[str]:
        """A copy and its address; dropped at the end, even from under connections a test forgot."""
        with self._clone_of(self._name) as url:
            yield url

    @contextmanager
    def filled(self, content: str, fill: Callable[[str], str]) -> Iterator[tuple[str, str]]:
        """A copy that holds `content`: its address, and what `fill` returned, which put it into one for all workers at that address."""
        if self._spread is not None:
            with self.clone() as url:
                yield url, fill(url)
            return
        name = f"{self._name}_of_{hashlib.sha256(content.encode()).hexdigest()[:12]}"
        with (self._shared_dir / name).open("a+") as record, _locked(record):
            record.seek(0)
            if not (returned := record.read()):
                self._copy(self._name, name)
                returned = fill(self._url(name))
                record.write(returned)
                record.flush()
        with self._clone_of(name) as url:
            yield url, returned

    def _copy(self, source: str, name: str) -> None:
        if self._spread is not None:
            self._spread.copy(source, name)
        else:
            self._server.execute(f'CREATE DATABASE "{name}" TEMPLATE "{source}" STRATEGY FILE_COPY')

    @contextmanager
    def _clone_of(self, source: str) -> Iterator[str]:
        name = f"{self._name}_{secrets.token_hex(6)}"
        self._copy(source, name)
        try:
            yield self._url(name)
        finally:
            if self._spread is not None:
                self._spread.drop(name)
            else:
                self._server.execute(f'DROP DATABASE "{name}" WITH (FORCE)')

    def _url(self, database: str) -> str:
        return urlsplit(self._server_url)._replace(path=f"/{database}").geturl()


@contextmanager
def _locked(file: Any) -> Iterator[None]:
    fcntl.flock(file, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)


@pytest.fixture
async def proxy(database_url: str) -> AsyncIterator[Proxy]:
    proxy = Proxy(database_url)
    await proxy.restore()
    yield proxy
    await proxy.cut()


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection to the test's own database."""
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()


@pytest.fixture
async def beside(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection to the same database that does not pass the proxy."""
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()


@pytest.fixture
def vault() -> Vault:
    return Vault((bytes(range(32)),))


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    database = await Database.connect(database_url, max_connections=8)
    yield database
    await database.close()


@pytest.fixture
def trips(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many statements each round trip took that sends several."""
    trips: list[int] = []
    send_together = Session.send_together

    async def count(session: Session, *statements: Statement) -> Any:
        trips.append(len(statements))
        return await send_together(session, *statements)

    monkeypatch.setattr(Session, "send_together", count)
    return trips
