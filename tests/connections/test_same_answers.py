"""Whole requests are answered without ASGI, byte for byte as by ASGI: random requests, cut anywhere, go both ways.

`FUZZ_REQUESTS=10000000 .venv/bin/python -m pytest -s --timeout=0 tests/connections/test_same_answers.py` tries as many, and `FUZZ_SEED` begins elsewhere.
"""

import asyncio
import os
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Annotated, Any

import msgspec
import pytest
import uvicorn
from msgspec import Meta
from structlog.testing import capture_logs
from tests.connections.random_requests import KEYS, requests_in_pieces
from uvicorn.server import ServerState

from largesse.base.batching import Receiver
from largesse.base.errors import InsufficientBalance, Unauthorized
from largesse.base.throttle import Rate
from largesse.base.timeouts import Timeouts
from largesse.connections import quick
from largesse.connections.manager import ConnectionManager
from largesse.connections.quick import QuickConnection, QuickConnections
from largesse.customers.access import StaleCaller
from largesse.customers.authenticator import Caller, secret_hash, well_formed
from largesse.customers.principal import Principal
from largesse.request_log.service import NotedRequest, RequestLog
from largesse.web.api import answering, whole
from largesse.web.api.answering import REQUESTS
from largesse.web.api.application import WHOLE_REQUESTS, Application
from largesse.web.api.operation import Call, NoQuery, Operation
from largesse.web.kit import refusal_log
from largesse.web.kit.asgi import Answer, InBrowser, Reply, encode_json
from largesse.web.kit.body import BodyMemory

TRIED = int(os.environ.get("FUZZ_REQUESTS", "1000"))
SEED = int(os.environ.get("FUZZ_SEED", "1"))
PRINCIPALS = {
    secret_hash(KEYS[name]): Principal(
        at, "production", at, name, "pro", "balance", at, name, True, scopes=["read"] if name == "reads" else None
    )
    for at, name in enumerate(KEYS, 1)
    if name != "unknown"
}


LEFT, LATER, FAILS, BUG = 2, 3, 4, 5  # pages


class Pages(msgspec.Struct, frozen=True):
    page: Annotated[int, Meta(ge=1, le=9)] = 1


class Body(msgspec.Struct):
    name: Annotated[str, Meta(max_length=20)]
    count: int | None = None


async def echo(services: Any, call: Call) -> Reply:
    body = call.read(Body)
    if body.name == "wait":
        await asyncio.sleep(0)
    if body.name == "used":
        raise InsufficientBalance("used")
    if body.name == "bug":
        raise ZeroDivisionError
    caller = call.caller
    assert caller is not None
    if caller.remembered is not None and (caller.principal.customer_name == "stale" or body.name == "stale"):
        raise StaleCaller
    return Reply(encode_json([caller.principal.customer_name, body, caller.address]), status=201)


def shown(call: Call) -> bytes:
    if call.query.page == FAILS:
        raise InsufficientBalance("used")
    if call.query.page == BUG:
        raise ZeroDivisionError
    return encode_json([call.principal.customer_name, call.query])


async def show(services: Any, call: Call) -> Reply:
    return Reply(shown(call))


def show_at_once(services: Any, call: Call, receiver: Receiver[bytes]) -> Reply | bool:
    """Answers, leaves it to `show`, or answers later, by the page."""
    body = shown(call)
    if call.query.page == LATER:
        asyncio.get_running_loop().call_soon(receiver.set_result, body)
        return True
    return call.query.page != LEFT and Reply(body)


async def health(services: Any, call: Call) -> Reply:
    return Reply(b"{}", headers=(("retry-after", "1"),))


def operation(method: str, path: str, handler: Any, **more: Any) -> Operation:
    return Operation(method, path, f"{method}{path}", "", handler, "", **more)


OPERATIONS = [
    operation("GET", "/show", show, query=Pages, scope="read", at_once=show_at_once),
    operation("POST", "/show", echo, body=Body, query=Pages, scope="send"),
    operation("POST", "/recalls", echo, body=Body, scope="send", recalls=True),
    operation("GET", "/health", health, needs_key=False, query=NoQuery),
]


class Authenticator:
    """Knows the keys above, and remembers all of them."""

    def may_know(self, secret: str) -> bool:
        return well_formed(secret)

    async def authenticate(self, secret: str, address: str | None = None) -> Caller:
        return await self.find(secret_hash(secret), address)

    async def find(self, hash_: bytes, address: str | None = None) -> Caller:
        await asyncio.sleep(0)
        if hash_ not in PRINCIPALS:
            raise Unauthorized("The API key is not known here.")
        return Caller(PRINCIPALS[hash_], 1, datetime.now(UTC), address)

    def find_for(self, receiver: Receiver[Caller], hash_: bytes) -> bool:
        loop = asyncio.get_running_loop()
        if hash_ in PRINCIPALS:
            loop.call_soon(receiver.set_result, Caller(PRINCIPALS[hash_], 1, datetime.now(UTC)))
        else:
            loop.call_soon(receiver.set_exception, Unauthorized("The API key is not known here."))
        return True

    def seen(self, found: Caller, address: str | None) -> Caller:
        return msgspec.structs.replace(found, address=address)

    def recall(self, hash_: bytes, address: str | None = None) -> Caller | None:
        principal = PRINCIPALS.get(hash_)
        return None if principal is None else Caller(principal, 1, datetime.now(UTC), address, 0, (None, 1))  # type: ignore[arg-type]


class Transport:
    """One side of a connection, in memory."""

    def __init__(self) -> None:
        self.written = b""
        self.is_closed = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return {"peername": ("127.0.0.1", 4711), "sockname": ("127.0.0.1", 80)}.get(name, default)

    def write(self, data: bytes) -> None:
        assert not self.is_closed
        self.written += bytes(data)

    def write_eof(self) -> None:
        self.written += b"<end>"

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True

    abort = close

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class Two:
    """The same service twice: one that answers whole requests without ASGI, and one that does not."""

    def __init__(self, config: uvicorn.Config, state: dict[str, Any], log: RequestLog) -> None:
        self._config = config
        self._log = log
        self._states = (state, {})
        self.managers = (ConnectionManager(100), ConnectionManager(100))
        self._makers = tuple(QuickConnections(manager) for manager in self.managers)
        self.taken = 0

    def connect(self, of: int) -> tuple[QuickConnection, Transport, ServerState]:
        """A new connection to the service that skips ASGI (0), or to the other (1)."""
        transport, server = Transport(), ServerState()
        server.default_headers = [(b"date", b"today")]
        connection = self._makers[of](config=self._config, server_state=server, app_state=self._states[of])
        connection.connection_made(transport)  # type: ignore[arg-type]
        return connection, transport, server

    async def answers(self, pieces: list[tuple[bytes, bool]]) -> list[tuple[bytes, bool, Any]]:
        """What each answers to those pieces, whether it closes, and what it logs, counts and notes for the request log; after some pieces nothing comes for a while."""
        found = []
        for of in (0, 1):
            REQUESTS._answered.clear()
            self._log._noted.clear()  # what a connection that was lost left
            connection, transport, server = self.connect(of)
            with capture_logs() as lines:
                for piece, then_waits in pieces:
                    if transport.is_closed:
                        break
                    connection.data_received(piece)
                    if then_waits:
                        await self._settle(connection)
                await self._settle(connection)
            events = [{name: repr(said) for name, said in line.items() if name != "duration_ms"} for line in lines]
            noted = [one[: NotedRequest._fields.index("ended_s")] for one in self._log._noted]
            found.append((transport.written, transport.is_closed, (events, dict(REQUESTS._answered), noted)))
            connection.connection_lost(None)
            await self._settle(connection)
            assert not server.tasks
        return found

    async def _settle(self, connection: QuickConnection) -> None:
        """Lets the event loop run until only timers are left, in as few turns as that takes: there are ten million requests."""
        loop: Any = asyncio.get_running_loop()
        await asyncio.sleep(0)
        while loop._ready or connection._is_answering or connection._held:  # noqa: ASYNC110 - nothing sets an event when the loop is idle
            await asyncio.sleep(0)


async def _no_pages(_: Any) -> tuple[list[Any], InBrowser]:
    return [], lambda _, reply: reply


@pytest.fixture
async def two(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Two]:
    for module in (answering, whole):
        monkeypatch.setattr(module, "new_request_id", lambda: b"one")
    monkeypatch.setattr("os.urandom", bytes)
    monkeypatch.setattr(refusal_log, "_OF_ONE", Rate(1e9, 60.0))
    monkeypatch.setattr(refusal_log, "_OF_ALL_UNKNOWN", Rate(1e9, 60.0))
    monkeypatch.setattr(quick, "_PIECE_S", 0)
    timeouts = Timeouts()
    no_database: Any = None
    log = RequestLog(no_database, 1_000_000_000)
    log._writer.cancel()
    services: Any = SimpleNamespace(
        timeouts=timeouts, authenticator=Authenticator(), body_memory=BodyMemory(), request_log=log
    )

    @asynccontextmanager
    async def lifespan(_: Application) -> AsyncIterator[Any]:
        yield services

    app = Application(OPERATIONS, lifespan=lifespan, pages=_no_pages)
    config = uvicorn.Config(app, log_config=None, access_log=False, ws="none")
    state: dict[str, Any] = {}
    started, ending = asyncio.Event(), asyncio.Event()

    async def receive() -> dict[str, str]:
        if started.is_set():
            await ending.wait()
        return {"type": "lifespan.startup"}

    async def send(_: Any) -> None:
        started.set()

    running = asyncio.ensure_future(app({"type": "lifespan", "state": state}, receive, send))
    await started.wait()
    assert WHOLE_REQUESTS in state
    yield Two(config, state, log)
    ending.set()
    await running
    await timeouts.close()


@pytest.mark.slow
async def test_random_requests_are_answered_alike(two: Two) -> None:
    tried, chance = 0, random.Random(SEED)
    while tried < TRIED:
        requests, pieces = requests_in_pieces(chance)
        found = await two.answers(pieces)
        assert found[0] == found[1], (SEED, tried, pieces)
        tried += requests
        if tried % 100_000 < requests and tried > 1_000:
            print(f"{tried:,} requests, seed {SEED}", flush=True)  # noqa: T201


GET = f"GET /show?page=3 HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: {KEYS['right']}\r\n\r\n".encode()
POST = (
    f"POST /recalls HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEYS['right']}\r\nContent-Type: application/json\r\n"
    'Content-Length: 14\r\n\r\n{"name":"ada"}'
).encode()


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("request_", [GET, POST], ids=["get", "post"])
async def test_a_request_may_be_cut_at_every_byte(two: Two, request_: bytes, waits: bool) -> None:
    whole = (await two.answers([(request_, True)]))[1]
    for at in range(1, len(request_)):
        for follows in (b"", request_):
            found = await two.answers([(request_[:at], waits), (request_[at:] + follows, True)])
            assert found[0] == found[1], at
            assert found[0][0] == whole[0] * (2 if follows else 1), at


async def test_requests_that_follow_one_another_at_once_are_answered_in_order(two: Two) -> None:
    for pieces in (
        [GET, POST, GET],
        [GET + POST[:50], POST[50:] + GET],
        [POST[:-14], POST[-14:], GET[:9], GET[9:] + GET],
    ):
        found = await two.answers([(piece, False) for piece in pieces])
        assert found[0] == found[1]
        assert found[0][0].count(b"HTTP/1.1 20") == b"".join(pieces).count(b" HTTP/1.1")


@pytest.mark.parametrize("key", ["right", "reads", "unknown"])
@pytest.mark.parametrize("page", [1, LEFT, LATER, FAILS, BUG])
async def test_what_needs_no_task_is_answered_alike(two: Two, key: str, page: int) -> None:
    request = GET.replace(b"page=3", b"page=%d" % page).replace(KEYS["right"].encode(), KEYS[key].encode())
    found = await two.answers([(request, False), (request, False), (POST, True), (request, True)])
    assert found[0] == found[1]
    assert found[0][0].count(b"HTTP/1.1 ") == 4


async def test_a_request_that_waits_too_long_is_answered_once(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting: list[Any] = []
    monkeypatch.setattr(Authenticator, "find_for", lambda _, receiver, __: waiting.append(receiver) or True)
    connection, transport, _ = two.connect(0)
    for at in (0, 1):
        connection.data_received(GET)
        assert (len(waiting), waiting[at].done()) == (at + 1, False)
        waiting[at].cancel()
        assert waiting[at].done()
        assert transport.written.count(b"HTTP/1.1 503 ") == at + 1
    assert not transport.is_closed


async def test_whole_requests_go_without_asgi(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the rest of this file would show nothing."""
    begun: list[bytes] = []
    write = QuickConnection.write_answer

    def count(self: Any, answer: Answer) -> None:
        begun.append(answer[2])
        write(self, answer)

    monkeypatch.setattr(QuickConnection, "write_answer", count)
    for pieces, taken in (
        ([GET], 1),
        ([POST], 1),
        ([POST[:-14], POST[-14:]], 1),
        ([GET, POST, GET], 3),
        ([POST[:-14], POST[-14:-7], POST[-7:]], 0),
        ([GET[:9], GET[9:]], 0),
        ([GET + GET], 0),
        ([GET.replace(b"GET", b"HEAD")], 0),
        ([GET.replace(b"3", b"x")], 0),
        ([GET.replace(KEYS["right"].encode(), b"wrong")], 0),
    ):
        begun.clear()
        await two.answers([(piece, piece.endswith(b"}") or len(pieces) != 2) for piece in pieces])
        assert len(begun) == taken, pieces


async def test_a_client_that_goes_away_is_answered_by_nobody(two: Two) -> None:
    for data in (GET, POST, POST[:-3]):
        for _ in range(2):
            connection, transport, server = two.connect(0)
            connection.data_received(data)
            transport.close()
            connection.connection_lost(None)
            await two._settle(connection)
            assert (transport.written, server.tasks) == (b"", set())


async def test_the_answer_under_way_is_the_last_when_the_service_stops(two: Two) -> None:
    for data in (GET, POST):
        found = []
        for of, manager in enumerate(two.managers):
            connection, transport, _ = two.connect(of)
            connection.data_received(data)
            connection.shutdown()
            await two._settle(connection)
            found.append((transport.written, transport.is_closed))
            manager.is_draining = False
        assert found[0] == found[1]
        assert found[0][1]
        assert b"\r\nconnection: close\r\n" in found[0][0]
