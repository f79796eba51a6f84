"""Customers on a cluster, and what its nodes are asked for. Skipped where there is none: `make test-citus`, docs/testing.md."""

from __future__ import annotations

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
from tests.orders.builder import VAULT, build_order

from largesse.database import (
    OPERATOR,
    Connection,
    Database,
    Role,
    Scope,
    connect_once,
    distribution,
    for_customer,
    scope_of,
)
from largesse.fulfilment import ClaimedGifts, InventoryProvider
from largesse.funding import own_accounts
from largesse.identity import Principal
from largesse.lines.claiming import Claiming, Turns
from largesse.orders import Placer
from largesse.orders.order import OwnAccounts
from largesse.world import load_world, parse_world

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
PRODUCTS = """
products:
  - {key: coffee, name: Coffee, digital: true, currency: GBP, countries: [GB], denominations: [1]}
  - {key: hamper, name: Hamper, digital: false, currency: GBP, cost: 1, vat_percent: {GB: 20}, postage: {GB: 1}}
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not NODES:
        for item in items:
            if "tests/citus/" in item.nodeid:
                item.add_marker(pytest.mark.skip(reason="only on a cluster: make test-citus"))


class Asked:
    """What the coordinator has asked of its nodes, each with the node's address."""

    def __init__(self) -> None:
        self.commands: list[tuple[str, str]] = []

    def __call__(self, _: Any, message: Any) -> None:
        if text := re.match(r"issuing (.*)", message.message, re.DOTALL):
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

    def __init__(self, pool: asyncpg.Pool) -> None:
        super().__init__(pool)
        self.told = []

    @asynccontextmanager
    async def session(self, scope: Scope) -> AsyncIterator[Connection]:
        async with super().session(scope) as connection:
            listening = self.asked

            acting = [scope]

            def note(query: asyncpg.connection.LoggedQuery) -> None:
                with contextlib.suppress(LookupError):  # given back before this is called
                    acting[0] = scope_of(connection)
                self.told.append(Told(acting[0], query.query, query.args))

            connection.add_log_listener(listening)
            connection.add_query_logger(note)
            try:
                yield connection
                await asyncio.sleep(0)  # what was told last is noted
            finally:
                connection.remove_log_listener(listening)
                connection.remove_query_logger(note)


@pytest.fixture
async def spread(database_url: str) -> AsyncIterator[Overheard]:
    """A cluster with customers, as who serves."""
    name = database_url.rpartition("/")[2]
    administrator = await asyncpg.connect(database_url)
    await administrator.execute(f'ALTER DATABASE "{name}" SET citus.log_remote_commands = on')
    await administrator.close()
    async with connect_once(database_url, OPERATOR, role=Role.OPERATOR) as connection:
        await load_world(
            connection, CHAIN, parse_world(f"customers:{WORLD}{PRODUCTS}".encode(), "world.yaml")
        )
    database = await Overheard.connect(database_url, role=Role.APP)
    assert isinstance(database, Overheard)
    try:
        yield database
    finally:
        await database.close()


def principal_of(customer_id: int) -> Principal:
    """The API key of a customer: ids of customers, service accounts and keys go together."""
    name = f"Customer {customer_id}"
    return Principal(
        customer_id, "production", customer_id, name, "enterprise", "invoiced", customer_id, "Bot", True
    )


async def own_accounts_of(database: Database, principal: Principal) -> OwnAccounts:
    async with database.connection(for_customer(principal.customer_id, "production")) as connection:
        own = await own_accounts(connection, principal.customer_id, "production", "GBP")
    return OwnAccounts(own["receivable"], own["sales"])


async def homes_of(spread: Overheard) -> dict[int, str]:
    async with spread.connection(OPERATOR) as connection:
        return await distribution.homes(connection, range(1, CUSTOMERS + 1))


async def place(spread: Overheard, customer_id: int, **more: Any) -> Any:
    principal = principal_of(customer_id)
    placer = Placer(spread, CHAIN)
    try:
        return (
            await placer.place(build_order(principal, await own_accounts_of(spread, principal), **more))
        ).order
    finally:
        await placer.close()


def recipients(spread: Overheard) -> tuple[Claiming, ClaimedGifts]:
    turns = Turns()
    gifts = ClaimedGifts(spread, VAULT, "production", InventoryProvider(), turns)
    return Claiming(spread, VAULT, "production", gifts, default_expiry_days=30, turns=turns), gifts
