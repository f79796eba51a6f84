"""The real application on a database of its own, served by uvicorn on a free loopback port, with a world loaded.

A module's tests share one service, as long as a world is dear to load: what a test changes, it changes for the
module. A module that wants another world gives it as `WORLD`.
"""

import asyncio
import os
import secrets
import socket
import ssl
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import httpx
import pytest
import uvicorn
from msgspec.structs import replace
from tests.background import Beside, Statements, on_database
from tests.closing import closing
from tests.conftest import Template
from tests.distributed import WAITING
from tests.keys import create_key
from tests.web.api.loading import MASTER_KEY, Loaded, loaded_on
from tests.web.api.rich_world import RICH_WORLD

from largesse.base.settings import Settings, load_settings
from largesse.connections.manager import ConnectionManager
from largesse.connections.quick import QuickConnections
from largesse.customers import passwords
from largesse.customers.authenticator import WrongKeys
from largesse.customers.key_store import delete_key
from largesse.db.pool import Database
from largesse.db.roles import Role
from largesse.db.scope import OPERATOR
from largesse.encryption.vault import Vault
from largesse.jobs.registry import WorkerContext
from largesse.main import build_app, open_services
from largesse.serving import server_options
from largesse.verify.audit import audit
from largesse.web.api.application import Application
from largesse.web.kit.services import Services

OF_ORDER = "(customer_id, order_id) IN (SELECT customer_id, id FROM orders WHERE reference = $1)"
PUBLIC_URL = "https://gifts.example"
_NO_TLS = ssl.SSLContext(
    ssl.PROTOCOL_TLS_CLIENT
)  # the usual one reads all authorities, which takes longer than many requests


@dataclass
class Service:
    """A running service: its address, the world's ids by name (as `largesse load --json` prints them), its keys."""

    url: str
    database_url: str
    settings: Settings
    app: Application
    ids: Mapping[str, Mapping[str, int]]
    keys: Mapping[str, str] = field(repr=False)
    _statements: Statements = field(repr=False)
    _beside: Beside = field(default_factory=Beside, repr=False)
    _clients: dict[str | None, httpx.Client] = field(default_factory=dict, repr=False)

    def client(self, key: str | None = None) -> httpx.Client:
        """A client that sends the key with that name; None: no key."""
        if key not in self._clients:
            headers = {} if key is None else {"Authorization": f"Bearer {self.keys[key]}"}
            self._clients[key] = httpx.Client(base_url=self.url, headers=headers, timeout=30, verify=_NO_TLS)
        return self._clients[key]

    def send(
        self, what: str, name: str, *, key: str = "hr", account: str | None = "gbp", **members: Any
    ) -> httpx.Response:
        """Sends the gift, collection or template with that name, as one anonymous code unless `members` say else."""
        return self.client(key).post(f"/send/{what}", json=self.body(what, name, account=account, **members))

    def body(self, what: str, name: str, *, account: str | None = "gbp", **members: Any) -> dict[str, Any]:
        """What `send` sends."""
        listed = {"gift": "products", "collection": "collections", "template": "templates"}[what]
        member = {"gift": "productId", "collection": "collectionId", "template": "templateId"}[what]
        body: dict[str, Any] = {member: self.ids[listed][name]}
        if account is not None:
            body["accountId"] = self.ids["funding_accounts"][account]
        if "recipients" not in members and "codeQuantity" not in members:
            body["codeQuantity"] = 1
        return body | members

    def state(self) -> tuple[Any, ...]:
        """What no refused order may change: all balances, and how many orders, lines, events, entries there are."""
        tables = ("orders", "lines", "events", "mail_jobs", "entries")
        counts = ", ".join(f"(SELECT count(*) FROM {table})" for table in tables)
        balances = "(SELECT array_agg(balance_minor ORDER BY id) FROM accounts WHERE kind = 'funding')"
        return tuple(self.sql(f"SELECT {balances}, {counts}")[0])

    def close(self) -> None:
        for client in self._clients.values():
            client.close()
        self._statements.close()
        self._beside.close()

    def sql(self, query: str, *arguments: Any) -> list[asyncpg.Record]:
        """Runs one statement on the service's database, as its owner."""
        return self._statements.fetch(query, *arguments)

    def of_order(self, reference: str, columns: str, table: str, rest: str = "") -> list[asyncpg.Record]:
        """Those columns of a table's rows of one order; `rest` may be more conditions (AND …) and the order of the rows."""
        return self.sql(f"SELECT {columns} FROM {table} WHERE {OF_ORDER} {rest}", reference)

    def run(self, work: Callable[[asyncpg.Connection], Coroutine[Any, Any, Any]]) -> Any:
        """What `work` makes of a connection of its own, in a loop of its own."""
        return on_database(self.database_url, work)

    def ask(self, work: Callable[[asyncpg.Connection], Coroutine[Any, Any, Any]]) -> Any:
        """What `work` makes of a connection that stays open: opening one takes longer."""

        async def on_one(database: Database, _: Vault) -> Any:
            async with database.session(OPERATOR) as connection:
                return await work(connection)

        return self.on_pool(on_one)

    def on_pool(self, work: Callable[[Database, Vault], Coroutine[Any, Any, Any]], **options: Any) -> Any:
        """What `work` makes of a pool opened with those options, and the service's vault. The pool stays open."""

        def opening() -> AbstractAsyncContextManager[Database]:
            return closing(Database.connect(self.database_url, **options))

        vault = Vault(self.settings.master_keys)
        return self._beside.run(tuple(options.items()), opening, lambda database: work(database, vault))

    def on_services(self, work: Callable[[Services], Coroutine[Any, Any, Any]]) -> Any:
        """What `work` makes of the services that another process would have, which stay open."""
        return self._beside.run("services", lambda: open_services(self.settings), work)

    def findings(self) -> list[str]:
        """What `largesse verify` finds."""
        return [str(finding) for finding in self.on_pool(audit).findings]

    def new_key(self, service_account: str = "hr-bot", key: str | None = None, **restrictions: Any) -> tuple[int, str]:
        """Creates another key of one of Acme's service accounts; gives its id and its secret."""
        named = {"customer": "acme", "service_account": service_account, "environment": "production"}
        named["key"] = key or secrets.token_hex(8)
        made: tuple[int, str] = self.ask(lambda connection: create_key(connection, **named, **restrictions))
        return made

    def delete_key(self, key_id: int) -> None:
        self.ask(lambda connection: delete_key(connection, key_id))

    def balance(self, account: str) -> float:
        """What the ledger says a funding account holds, in major units of a currency with two decimals."""
        query = "SELECT balance_minor FROM accounts WHERE id = $1"
        return self.sql(query, self.ids["funding_accounts"][account])[0]["balance_minor"] / 100


ServiceFactory = Callable[..., Service]


@pytest.fixture(scope="session")
def typed() -> Callable[[Any], Any]:
    """Turns JSON into something that is equal only where the types are too: 1, 1.0 and true differ."""

    def tag(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: tag(member) for name, member in value.items()}
        if isinstance(value, list):
            return [tag(item) for item in value]
        return f"{type(value).__name__} {value}" if isinstance(value, bool | int | float) else value

    return tag


@pytest.fixture(scope="session")
def problem() -> Callable[..., str]:
    """Checks that an answer is the problem body of a status; gives its detail."""

    def check(response: httpx.Response, status: int, slug: str = "invalid-request") -> str:
        assert response.status_code == status, response.text
        assert response.headers["Content-Type"] == "application/problem+json"
        body = response.json()
        assert set(body) - {"errors"} == {"type", "title", "status", "detail", "instance"}
        for error in body.get("errors", []):
            assert set(error) == {"pointer", "detail"}
        assert body["status"] == status
        assert body["type"] == f"/problems/{slug}"
        assert body["title"]
        if status != 409:
            assert body["instance"] is None
        return str(body["detail"])

    return check


@pytest.fixture(scope="module")
def start_service(template: Template, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceFactory]:
    """Starts services as `services_on` does; all end with the module."""
    with services_on(template, tmp_path_factory) as start:
        yield start


@contextmanager
def services_on(template: Template, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceFactory]:
    """Starts services: `start(world=…, like=…, **settings)`; all end with the block.

    Each has a new database with `world`, as `loaded_on` makes it, or that of `like`, whose ids and keys it shares. `wrong_keys` counts those.
    """
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        # tests/customers/test_passwords.py holds passwords to their strength: with it each takes 30 ms of the processor.
        patch.setattr(passwords, "_MEMORY_KIB", 8)
        patch.setattr(passwords, "_PASSES", 1)

        def start(
            world: str | None = None,
            like: Service | Loaded | None = None,
            wrong_keys: WrongKeys | None = None,
            **changes: Any,
        ) -> Service:
            place = like or stack.enter_context(loaded_on(template, world))
            settings = replace(
                load_settings({}),
                database_url=as_the_service_sees_it(place.database_url),
                owner_database_url=place.database_url,
                data_dir=tmp_path_factory.mktemp("data"),
                public_url=PUBLIC_URL,
                master_keys=(MASTER_KEY,),
                **changes,
            )
            app = build_app(settings, wrong_keys=wrong_keys)
            url = stack.enter_context(serving(app))
            statements = Statements(place.database_url)
            service = Service(url, place.database_url, settings, app, place.ids, place.keys, statements)
            stack.callback(service.close)
            return service

        yield start


def as_the_service_sees_it(database_url: str) -> str:
    """A database's address; that of the PgBouncer in front of it where `make test-pgbouncer` has started one."""
    pooler = os.environ.get("LARGESSE_TEST_PGBOUNCER")
    if not pooler:
        return database_url
    return f"postgresql://largesse@{pooler}{urlsplit(database_url).path}?pgbouncer=true"


@pytest.fixture(scope="module")
def service(request: pytest.FixtureRequest, start_service: ServiceFactory) -> Service:
    """A production service with the module's `WORLD`, or a rich one."""
    return start_service(getattr(request.module, "WORLD", RICH_WORLD))


@pytest.fixture
def own_service(
    request: pytest.FixtureRequest, template: Template, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    """A service like `service`, on a database of this test's own."""
    with services_on(template, tmp_path_factory) as start:
        yield start(getattr(request.module, "WORLD", RICH_WORLD))


@pytest.fixture(scope="module")
def staging(service: Service, start_service: ServiceFactory) -> Service:
    """The staging service of the same installation."""
    return start_service(like=service, environment="staging")


def work_off(service: Service, *steps: Callable[[WorkerContext], Coroutine[Any, Any, Any]]) -> None:
    """Does steps of a worker, with its rights, until there is nothing left to do."""

    async def work(database: Database, vault: Vault) -> None:
        context = WorkerContext(database, vault, lambda *_: None)
        while any([await step(context) for step in steps]):
            pass

    service.on_pool(work, role=Role.WORKER)


@contextmanager
def serving(app: Any, manager: ConnectionManager | None = None, listener: socket.socket | None = None) -> Iterator[str]:
    """Serves `app` in a thread of its own for as long as the block, as `largesse serve` would; gives its address."""
    listener = listener or socket.create_server(("127.0.0.1", 0), backlog=512)
    options = server_options("127.0.0.1", 0) | {"lifespan": "on", "timeout_graceful_shutdown": 10}
    if manager is not None:
        options["http"] = QuickConnections(manager)
    config = uvicorn.Config(app, **options)
    started: Future[None] = Future()
    server = _Server(config, started)
    thread = threading.Thread(target=server.serve_until_told, args=(listener,), name="uvicorn")
    thread.start()
    try:
        started.result(timeout=30)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, started_or_failed: Future[None]) -> None:
        super().__init__(config)
        self._started_or_failed = started_or_failed

    def serve_until_told(self, listener: socket.socket) -> None:
        self.run(sockets=[listener])
        if not self._started_or_failed.done():
            self._started_or_failed.set_exception(RuntimeError("the service did not start; its log says why"))

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._started_or_failed.set_result(None)


@contextmanager
def held(service: Service, query: str, *values: Any) -> Iterator[Callable[[int], bool]]:
    """Holds rows locked. `waits(n)` returns whether so many sessions wait for locks, soon."""
    ready, done = threading.Event(), threading.Event()

    def hold() -> None:
        async def work(connection: asyncpg.Connection) -> None:
            async with connection.transaction():
                await connection.execute(query, *values)
                ready.set()
                await asyncio.to_thread(done.wait, 20)

        on_database(service.database_url, work)

    def waits(count: int) -> bool:
        until = time.monotonic() + 1.5  # no lock is waited for longer than 3 seconds
        while service.sql(WAITING)[0][0] < count and time.monotonic() < until:
            time.sleep(0.02)
        return bool(service.sql(WAITING)[0][0] >= count)

    with ThreadPoolExecutor(1) as pool:
        holding = pool.submit(hold)
        try:
            assert ready.wait(20)
            yield waits
        finally:
            done.set()
            holding.result()


@pytest.fixture
def quote(service: Any) -> Any:
    """Asks for the quote of what `service.send` would send."""

    def ask(what: str, name: str, *, key: str = "hr", account: str | None = "gbp", **members: Any) -> httpx.Response:
        return service.client(key).post(f"/quote/{what}", json=service.body(what, name, account=account, **members))

    return ask


@pytest.fixture
def refusals_alone(request: pytest.FixtureRequest, service: Any) -> Iterator[None]:
    """Every test that has this but those marked `places` ends with the balances and orders it began with."""
    if "places" in request.fixturenames:
        yield
        return
    before = service.state()
    yield
    assert service.state() == before


@pytest.fixture
def places() -> None:
    """Marks a test that places orders."""
