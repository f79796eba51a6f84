"""The house on a database of the module's own, and its people."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest
from msgspec.structs import replace
from tests.orders.builder import open_session

from largesse.base.cooperative import Steps
from largesse.base.settings import load_settings
from largesse.customers.authenticator import Caller, person_calls
from largesse.db.pool import Database, connect_once
from largesse.db.scope import OPERATOR
from largesse.drafts.checking import Checked, check_rows
from largesse.drafts.columns import Columns, guess_columns
from largesse.drafts.model import Draft, DraftContent
from largesse.drafts.service import DraftService
from largesse.drafts.sheet import Sheet
from largesse.drafts.store import begin_draft, save_draft, save_sheets
from largesse.drafts.text_sheet import read_text_sheet
from largesse.main import open_services
from largesse.seed.load import load_seed
from largesse.seed.reading import parse_seed
from largesse.web.kit.page_services import PageServices, page_services

WORLD = b"""
customers:
  - key: acme
    name: Acme Ltd
    plan: starter
    funding: balance
    users:
      - {email: ada@acme.example, name: Ada, role: admin}
      - {email: cem@acme.example, name: Cem, role: member}
      - {email: dot@acme.example, name: Dot, role: member}
    service_accounts: [{key: bot, name: Bot}]
    funding_accounts:
      - {key: gbp, name: Float, master: true, currency: GBP, balance: 100000.00}
      - {key: small, name: Small, currency: GBP, balance: 30.00}
      - {key: team, name: Team, currency: GBP, balance: 1000.00, service_accounts: [bot]}
    templates:
      - {key: welcome, name: Welcome, product: coffee, value: 10, wrapping_key: confetti, from_name: Acme, message: Hello}
  - key: globex
    name: Globex
    plan: pro
    funding: invoiced
    users:
      - {email: gil@globex.example, name: Gil, role: admin}
products:
  - {key: coffee, name: Coffee e-gift, digital: true, currency: GBP, countries: [GB], denominations: [5, 10, 25]}
  - {key: hamper, name: Hamper, digital: false, currency: GBP, cost: 35.00, markup_percent: 10, postage: {GB: 4.95},
     vat_percent: {GB: 20}}
collections:
  - {key: treats, name: Treats, country: GB, currency: GBP, value_points: [10, 25], products: [coffee]}
"""

Result = TypeVar("Result")


def finished(steps: Steps[Result]) -> Result:
    """What a long computation comes to."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def sheet(text: str) -> Sheet:
    return finished(read_text_sheet(text))


def checked(text: str, columns: Columns | None = None) -> Checked:
    read = sheet(text)
    return finished(check_rows(read, columns or guess_columns(read)))


@dataclass
class House:
    """Everything as a serving process has it, and what the world's things are called."""

    services: PageServices
    desk: DraftService
    ids: Any
    database: Database  # for the test itself, which may do anything

    async def caller(self, email: str = "ada@acme.example", environment: str = "production") -> Caller:
        async with self.database.connection(OPERATOR) as connection:
            row = await connection.fetchrow("SELECT id, customer_id FROM users WHERE email = $1", email)
            return await person_calls(
                connection,
                user_id=row["id"],
                customer_id=row["customer_id"],
                environment=environment,
                session_id=await open_session(connection, row["id"]),
            )

    async def draft(self, caller: Caller, sheet: Sheet | None = None, *, gift: str = "coffee", **said: Any) -> Draft:
        """A draft of somebody's, for 10 pounds of coffee unless something else is said."""
        content = DraftContent(
            **{
                "product_id": self.ids["products"][gift],
                "value": 10.0 if gift == "coffee" else None,
                "account_id": self.ids["funding_accounts"]["gbp"],
                **said,
            }
        )
        principal = caller.principal
        async with self.database.transaction(principal.scope) as connection:
            draft = await begin_draft(connection, principal, caller.now, content)
            if sheet is not None:
                draft = replace_columns(draft, sheet)
                await save_draft(connection, principal, draft.id, draft.content)
                await save_sheets(connection, principal, draft.id, {0: sheet})
        return draft

    async def sql(self, query: str, *arguments: Any) -> list[Any]:
        return await self.database.fetch(OPERATOR, query, *arguments)

    async def quote(self, caller: Caller, draft: Draft) -> Any:
        return await self.desk.quote(caller, draft, await self.desk.rows.checked(caller.principal, draft))


def replace_columns(draft: Draft, sheet: Sheet) -> Draft:
    content = msgspec.structs.replace(draft.content, columns=guess_columns(sheet))
    return msgspec.structs.replace(draft, content=content)


@pytest.fixture
async def house(database_url: str, tmp_path: Path) -> AsyncIterator[House]:
    settings = replace(load_settings({}), database_url=database_url, data_dir=tmp_path, master_keys=(bytes(range(32)),))
    async with AsyncExitStack() as stack:
        services = page_services(await stack.enter_async_context(open_services(settings)))
        async with connect_once(database_url, OPERATOR) as connection:
            loaded = await load_seed(connection, services.chains.entries, parse_seed(WORLD, "world.yaml"))
        database = await Database.connect(database_url)
        stack.push_async_callback(database.close)
        yield House(services, services.drafts, loaded.ids, database)


async def at_once(count: int, attempt: Callable[[], Any]) -> list[Any]:
    """What so many attempts at once come to, errors included."""
    return await asyncio.gather(*(attempt() for _ in range(count)), return_exceptions=True)
