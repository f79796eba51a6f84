from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Network, ip_address

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from largesse.customers.principal import Principal
from largesse.db.pool import Connection, Database
from largesse.db.scope import OPERATOR
from largesse.encryption.vault import Vault
from largesse.webhooks.deliverer import Deliverer
from largesse.webhooks.queues import fan_out
from largesse.webhooks.resolver import UnresolvedError
from largesse.webhooks.store import CreatedSubscription, insert_subscription
from largesse.webhooks.targets import Address, LookUp, parse_target
from largesse.webhooks.transport import HttpTransport

LOOPBACK = (IPv4Network("127.0.0.0/8"),)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@pytest.fixture
async def principal(database: Database) -> Principal:
    async with database.connection(OPERATOR) as connection:
        return await make_principal(connection, "acme")


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    await receiver.start()
    yield receiver
    await receiver.close()


@pytest.fixture
async def world(database: Database, vault: Vault, principal: Principal) -> AsyncIterator[World]:
    async with HttpTransport(LOOPBACK, 5.0, no_names) as transport:
        world = World(database, vault, principal, Deliverer(database, vault, transport, lambda: None))
        yield world
        await world.deliverer.close()


def answering(*addresses: str) -> LookUp:
    """A look-up that finds these addresses, whatever the name."""

    async def look_up(host: str, customer_id: int) -> Sequence[Address]:
        return [ip_address(address) for address in addresses]

    return look_up


async def no_names(host: str, customer_id: int) -> Sequence[Address]:
    """A look-up that knows no name, for tests whose targets are addresses."""
    raise UnresolvedError(host)


async def make_principal(connection: Connection, name: str) -> Principal:
    """A customer with a service account."""
    customer_id = await connection.fetchval(
        "INSERT INTO customers (key, name, plan, funding) VALUES ($1, $1, 'pro', 'invoiced') RETURNING id", name
    )
    service_account_id = await connection.fetchval(
        "INSERT INTO service_accounts (customer_id, key, name) VALUES ($1, 'bot', 'Bot') RETURNING id", customer_id
    )
    return Principal(1, "production", customer_id, name, "pro", "invoiced", service_account_id, "Bot", True)


@dataclass
class Got:
    """A request a receiver got."""

    path: str
    headers: dict[str, str]
    body: bytes

    def is_signed_with(self, secret: str) -> bool:
        mac = hmac.new(secret.encode(), self.body, hashlib.sha256).hexdigest()
        return hmac.compare_digest(self.headers["X-Service-Signature"], f"sha256={mac}")


@dataclass
class Receiver:
    """A webhook receiver on loopback; `answer` decides what it says, and `got` is what it heard."""

    got: list[Got] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0
    full: asyncio.Event = field(default_factory=asyncio.Event)  # 4 in flight
    released: asyncio.Event = field(default_factory=asyncio.Event)

    async def start(self) -> None:
        self.answer: Handler = self.ok
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self._handle)
        self._server = TestServer(application, host="127.0.0.1")
        await self._server.start_server()

    async def close(self) -> None:
        self.released.set()
        await self._server.close()

    def url(self, path: str = "/hook") -> str:
        return f"http://127.0.0.1:{self._server.port}{path}"

    def answers(self, status: int, headers: dict[str, str] | None = None, body: bytes = b"") -> None:
        async def answer(_: web.Request) -> web.StreamResponse:
            return web.Response(status=status, headers=headers, body=body)

        self.answer = answer

    async def ok(self, _: web.Request) -> web.StreamResponse:
        return web.Response(status=204)

    async def hang(self, _: web.Request) -> web.StreamResponse:
        await self.released.wait()
        return web.Response()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        if self.in_flight == 4:
            self.full.set()
        try:
            self.got.append(Got(request.path_qs, dict(request.headers), await request.read()))
            return await self.answer(request)
        finally:
            self.in_flight -= 1


@dataclass
class World:
    """A database with one customer, and a deliverer to step by hand."""

    database: Database
    vault: Vault
    principal: Principal
    deliverer: Deliverer
    _orders: int = 0

    async def subscribe(self, url: str, principal: Principal | None = None) -> CreatedSubscription:
        async with self.database.connection(OPERATOR) as connection:
            target = parse_target(url, LOOPBACK)
            return await insert_subscription(
                connection, principal or self.principal, self.vault, target, "order.created"
            )

    async def place(self, count: int = 1, principal: Principal | None = None) -> list[bytes]:
        """Writes events as placing orders does; returns their bodies."""
        principal = principal or self.principal
        bodies = []
        for _ in range(count):
            self._orders += 1
            bodies.append(b'{"id":%d,"event":"order.created"}' % self._orders)
        await self.database.execute(
            OPERATOR,
            """
            INSERT INTO events (order_id, customer_id, environment, event, body, created_at)
            SELECT number, $1, $2, 'order.created', body, clock_now()
            FROM unnest($3::bytea[]) WITH ORDINALITY AS e (body, number)
            """,
            principal.customer_id,
            principal.environment,
            bodies,
        )
        return bodies

    async def send(self, count: int = 1, principal: Principal | None = None) -> list[bytes]:
        """Writes events and delivers what is due now; returns their bodies."""
        bodies = await self.place(count, principal)
        await self.deliver()
        return bodies

    async def fan_out(self) -> int:
        async with self.database.connection(OPERATOR) as connection:
            _, deliveries = await fan_out(connection, 1000)
        return deliveries

    async def queue(self, url: str, count: int = 1) -> CreatedSubscription:
        """Subscribes an address, and makes so many deliveries to it that wait."""
        subscription = await self.subscribe(url)
        await self.place(count)
        await self.fan_out()
        return subscription

    async def deliver(self) -> None:
        """Delivers what is due now, in both rooms, until nothing is."""
        await self.deliverer.settle()
        await self.fan_out()
        while await self.deliverer.step(failing=False) | await self.deliverer.step(failing=True):
            await self.deliverer.settle()

    async def advance(self, seconds: float) -> None:
        """Moves the clock that deliveries go by."""
        await self.database.execute(
            OPERATOR, "UPDATE clock SET ahead_by = ahead_by + $1 * interval '1 second'", seconds
        )

    async def states(self) -> list[str]:
        return [r["state"] for r in await self.database.fetch(OPERATOR, "SELECT state FROM deliveries ORDER BY id")]

    async def delivery(self) -> dict[str, object]:
        """The only delivery, with the seconds until it is due."""
        row = await self.database.fetchrow(
            OPERATOR, "SELECT *, extract(epoch FROM due_at - clock_now())::float8 AS due_in_s FROM deliveries"
        )
        assert row is not None
        return dict(row)
