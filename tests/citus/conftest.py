"""Customers on a cluster, and what its nodes are asked for. Skipped where there is none: `make test-citus`, docs/testing.md."""

import asyncio
import contextlib
import os
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import asyncpg
import pytest
from tests.chained import CHAIN
from tests.citus.world import PRODUCTS
from tests.orders.builder import VAULT, build_order

from largesse.customers.principal import Principal
from largesse.db import sharding
from largesse.db.pool import Connection, Database, connect_once, scope_of
from largesse.db.roles import Role
from largesse.db.scope import OPERATOR, Scope, for_customer
from largesse.db.session import Dialer
from largesse.db.shard_groups import Node
from largesse.encryption.chain_keys import open_chains
from largesse.fulfilment.gifts import ClaimedGifts
from largesse.fulfilment.vouchers import InventoryProvider
from largesse.ledger.own_accounts import OwnAccounts, own_accounts
from largesse.lines.claiming import Claiming, RecipientSlots
from largesse.orders.placer import Placer
from largesse.seed.load import load_seed
from largesse.seed.reading import parse_seed

NODES = os.environ.get("LARGESSE_TEST_NODES", "").split()
CUSTOMERS = 6

WORLD = "".join(
    f"""
  - key: c{number}
    name: Customer {number}
    plan: enterprise
    funding: invoiced
    service_accounts: [{{key: bot, name: Bot, active: true}}]
    api_keys: [{{key: key, service_account: bot, environment: production}}]
    funding_accounts:
      - {{key: gbp, name: Float, master: true, currency: GBP, environment: production, balance: 1000, service_accounts: all}}
      - {{key: more, name: More, currency: GBP, environment: production, balance: 1, service_accounts: all}}
"""
    for number in range(1, CUSTOMERS + 1)
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not NODES:
        for item in items:
            if "tests/citus/" in item.nodeid:
                item.add_marker(pytest.mark.skip(reason="only on a cluster: make test-citus"))


class Asked:
    """What nodes were asked, each with the node's address: by whoever is entered, or of itself."""

    def __init__(self) -> None:
        self.commands: list[tuple[str, str]] = []

    def __call__(self, connection: Any, message: Any) -> None:
        if text := re.match(r"executing the command locally: (.*)", message.message, re.DOTALL):
            if connection.coordinator is not None:  # what a coordinator does itself is asked of no node
                self.commands.append((":".join(map(str, connection._addr)), text[1]))
        elif text := re.match(r"issuing (.*)", message.message, re.DOTALL):
            found = re.search(r"@([\w.]+:\d+)", message.detail or "")
            self.commands.append((found[1] if found else "", text[1]))

    @property
    def nodes(self) -> set[str]:
        return {node for node, _ in self.commands}

    @property
    def prepared(self) -> list[str]:
        """What was committed in two phases."""
        return [command for _, command in self.commands if command.startswith("PREPARE TRANSACTION")]


class Told(NamedTuple):
    """A statement, and for whom it was."""

    scope: Scope
    query: str
    arguments: Sequence[Any]


class Overheard(Database):
    """A database whose sessions tell what they are told, and what the nodes are asked for then."""

    asked = Asked()
    told: list[Told]

    def __init__(self, pool: asyncpg.Pool, dialer: Dialer) -> None:
        super().__init__(pool, dialer)
        self.told = []

    @asynccontextmanager
    async def session(self, scope: Scope) -> AsyncIterator[Connection]:
        async with super().session(scope) as connection, self.listening(connection, scope):
            yield connection

    @asynccontextmanager
    async def listening(self, connection: Connection, scope: Scope) -> AsyncIterator[None]:
        """Notes what is told in a session as long as it is lent."""
        listening = self.asked
        acting = [scope]

        def note(query: asyncpg.connection.LoggedQuery) -> None:
            with contextlib.suppress(LookupError):  # given back before this is called
                acting[0] = scope_of(connection)
            self.told.append(Told(acting[0], query.query, query.args))

        await connection.execute("SET citus.log_remote_commands = on")
        connection.add_log_listener(listening)
        connection.add_query_logger(note)
        try:
            yield
            await asyncio.sleep(0)  # what was told last is noted
        finally:
            connection.remove_log_listener(listening)
            connection.remove_query_logger(note)


@pytest.fixture
async def spread(database_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Overheard]:
    """A cluster with customers, as who serves."""
    async with connect_once(database_url, OPERATOR, role=Role.OPERATOR) as connection:
        await open_chains(connection, VAULT, keep=True)
        await load_seed(connection, CHAIN, parse_seed(f"customers:{WORLD}{PRODUCTS}".encode(), "world.yaml"))
    database = await Overheard.connect(database_url, role=Role.APP)

    lend = Node.session

    @asynccontextmanager
    async def session(node: Node, scope: Scope) -> AsyncIterator[Connection]:
        async with lend(node, scope) as connection, database.listening(connection, scope):
            yield connection

    monkeypatch.setattr(Node, "session", session)
    try:
        yield database
    finally:
        await database.close()


def principal_of(customer_id: int) -> Principal:
    """The API key of a customer: ids of customers, service accounts and keys go together."""
    name = f"Customer {customer_id}"
    return Principal(customer_id, "production", customer_id, name, "enterprise", "invoiced", customer_id, "Bot", True)


async def own_accounts_of(database: Database, principal: Principal) -> OwnAccounts:
    async with database.connection(for_customer(principal.customer_id, "production")) as connection:
        own = await own_accounts(connection, principal.customer_id, "production", "GBP")
    return OwnAccounts(own["receivable"], own["sales"])


async def nodes_of(spread: Overheard) -> dict[int, str]:
    async with spread.connection(OPERATOR) as connection:
        return await sharding.node_names(connection, range(1, CUSTOMERS + 1))


async def place(spread: Overheard, customer_id: int, **more: Any) -> Any:
    principal = principal_of(customer_id)
    placer = Placer(spread, CHAIN)
    try:
        return (await placer.place(build_order(principal, await own_accounts_of(spread, principal), **more))).order
    finally:
        await placer.close()


def recipients(spread: Overheard) -> tuple[Claiming, ClaimedGifts]:
    slots = RecipientSlots()
    gifts = ClaimedGifts(spread, VAULT, "production", InventoryProvider(), slots)
    return Claiming(spread, VAULT, "production", gifts, default_expiry_days=30, slots=slots), gifts
