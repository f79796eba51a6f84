"""While everything breaks, a campaign gives each of its gifts once, one to a mailbox, and a budget is spent to its limit and no further.

CHAOS_SECONDS and CHAOS_SEEDS lengthen it, as they do test_chaos: docs/testing.md.
"""

import asyncio
import random
import sys
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

import aiohttp
import asyncpg
import pytest
from tests.background import run_in_thread
from tests.budgets.conftest import perform
from tests.campaigns.conftest import WORLD, reserve
from tests.campaigns.test_crowd import codes_of
from tests.closing import closing
from tests.faults.chaos import Chaos, Slot, crowd_of, slots_of, start_all, until
from tests.faults.load import Load
from tests.faults.proxy import Proxy
from tests.faults.test_chaos import BROKEN, LONGEST_S, PAUSE_S, SECONDS, SEEDS, mail_server, proxies
from tests.mail.conftest import PostOffice
from tests.web.api.conftest import on_database

from largesse.base.settings import load_settings
from largesse.budgets.service import NewBudget, create_budget
from largesse.db.pool import Database
from largesse.encryption.vault import Vault, load_vault
from largesse.main import open_services
from largesse.web.kit.services import Services

__all__ = ["mail_server", "proxies"]

pytestmark = [pytest.mark.long, pytest.mark.timeout(600 + 4 * SECONDS)]

VISITORS, GIFTS = 90, 40
CLIENTS, ORDER_MINOR, LIMIT_MINOR = 12, 1_000, 60_000
_SENT = "SELECT count(*) FROM messages WHERE kind = 'gift' AND state = 'sent'"


class Place:
    """The installation as the helpers of campaigns and budgets need it."""

    def __init__(self, installation: Any) -> None:
        self.settings = load_settings(installation.environ)
        self.database_url: str = installation.environ["LARGESSE_DATABASE_URL"]
        self.ids: dict[str, dict[str, int]] = installation.world["ids"]

    def sql(self, query: str, *arguments: Any) -> list[asyncpg.Record]:
        async def fetch(connection: asyncpg.Connection) -> list[asyncpg.Record]:
            return list(await connection.fetch(query, *arguments))

        rows: list[asyncpg.Record] = on_database(self.database_url, fetch)
        return rows

    def on_pool(self, work: Callable[[Database, Vault], Coroutine[Any, Any, Any]]) -> Any:
        async def with_pool() -> Any:
            async with closing(Database.connect(self.database_url)) as database:
                return await work(database, load_vault(self.settings))

        return run_in_thread(with_pool())

    def on_services(self, work: Callable[[Services], Coroutine[Any, Any, Any]]) -> Any:
        async def with_services() -> Any:
            async with open_services(self.settings) as services:
                return await work(services)

        return run_in_thread(with_services())


class Visitor:
    """One mailbox. Asks for a code and types the one that was mailed, at whichever process serves, until it is told what came of it."""

    def __init__(self, session: aiohttp.ClientSession, slots: list[Slot], moments: random.Random, number: int) -> None:
        self.mailbox = f"p{number}@acme.example"
        self._session, self._slots, self._moments = session, slots, moments
        self._headers = {"X-Forwarded-For": f"10.0.0.{number}"}

    async def ask(self, page: str) -> None:
        _, cookie, _ = await self._post(page, {303}, email=self.mailbox)
        self._headers["Cookie"] = cookie.partition(";")[0]

    async def take(self, page: str, code: str) -> bool:
        """Whether the visitor got a gift."""
        status, _, _ = await self._post(f"{page}/code", {200, 409}, code=code)
        return status == 200

    async def _post(self, path: str, right: set[int], **form: str) -> tuple[int, str, str]:
        while True:
            if urls := [slot.url for slot in self._slots if slot.url]:
                try:
                    async with self._session.post(
                        self._moments.choice(urls) + path, data=form, headers=self._headers, allow_redirects=False
                    ) as answer:
                        text = await answer.text()
                        if answer.status in right:
                            return answer.status, answer.headers.get("Set-Cookie", ""), text
                        assert answer.status in {429, 503}, (path, answer.status, text)
                except (aiohttp.ClientError, TimeoutError):
                    pass
            await asyncio.sleep(0.1)


@pytest.mark.parametrize("seed", SEEDS)
async def test_campaigns_and_budgets_are_exact(
    seed: int,
    proxies: list[Proxy],
    mail_server: PostOffice,
    start_installation: Any,
    capsys: pytest.CaptureFixture[str],
) -> None:
    moments = random.Random(seed)
    installation = await asyncio.to_thread(start_installation, url=proxies[0].target_url, world=WORLD)
    installation.environ["LARGESSE_SMTP_URL"] = mail_server.url
    place: Any = Place(installation)
    token = await asyncio.to_thread(reserve, place, gifts=GIFTS)
    bot = place.ids["service_accounts"]["hr-bot"]
    budget = NewBudget(name="Bot", currency="GBP", limit_minor=LIMIT_MINOR, kind="service_account", subject_id=bot)
    await asyncio.to_thread(perform, place, create_budget, budget)
    slots = slots_of(installation, proxies)
    serving = [slot for slot in slots if slot.command == "serve"]
    chaos = Chaos(slots, proxies, moments, longest_s=min(LONGEST_S, SECONDS / 2))
    load = crowd_of(Load)(installation, _budgeted)
    load.slots, load.moments, load.pause_s = serving, moments, PAUSE_S
    try:
        await start_all(slots)
        visiting = asyncio.create_task(_visit(place, f"/claim/campaign/{token}", serving, moments))
        async with load.running(CLIENTS, hang_up_s=10.0):
            await chaos.rage(SECONDS, BROKEN)
            await until(lambda: 403 in load.statuses(), lambda: "no order was too much for the budget")
        given = await asyncio.wait_for(visiting, 240)
        await until(lambda: place.sql(_SENT)[0][0] == GIFTS, lambda: "the gifts' mails were not sent")
        spent = int(place.sql("SELECT sum(total_minor) FROM orders WHERE service_account_id = $1", bot)[0][0])
        with capsys.disabled():
            sys.stdout.write(
                f"\nprogrammes, seed {seed}, {SECONDS:.0f} s: {len(given)} of {VISITORS} visitors got one of {GIFTS} gifts, "
                f"{spent} of a budget of {LIMIT_MINOR} spent, {len(load.replies):,} requests "
                f"({dict(Counter(reply.status for reply in load.replies))}); "
                f"{', '.join(f'{n} {kind}' for kind, n in sorted(chaos.faults.items()))}\n"
            )
        rows = place.sql("SELECT mailbox, number FROM campaign_people WHERE number IS NOT NULL")
        assert sorted(row["number"] for row in rows) == list(range(1, GIFTS + 1))
        assert {row["mailbox"] for row in rows} == given
        assert spent == LIMIT_MINOR
        assert (await asyncio.to_thread(installation.verify))["findings"] == []
    finally:
        for slot in slots:
            await slot.kill()


def _budgeted(installation: Any, number: int) -> tuple[str, str, dict[str, Any]]:
    """A code of £10, paid by the bot, whose budget ends first."""
    ids = installation.world["ids"]
    body = {"productId": ids["products"]["coffee"], "value": ORDER_MINOR // 100, "codeQuantity": 1}
    more = {"accountId": ids["funding_accounts"]["gbp"], "externalReference": f"order-{number}"}
    return "/send/gift", installation.world["api_keys"]["hr"], body | more


_UNDECIDED = "SELECT FROM campaign_asks WHERE state = 'new'"


async def _visit(place: Any, page: str, slots: list[Slot], moments: random.Random) -> set[str]:
    """Has all visitors come. Returns the mailboxes of those who got a gift."""
    async with aiohttp.ClientSession(
        cookie_jar=aiohttp.DummyCookieJar(), timeout=aiohttp.ClientTimeout(total=10)
    ) as session:
        visitors = [Visitor(session, slots, moments, number) for number in range(VISITORS)]
        await asyncio.gather(*(visitor.ask(page) for visitor in visitors))
        # Whoever got no answer asked again. Then only the code of the last request counts, once it is mailed.
        undecided, codes = True, {}
        while undecided or len(codes) < VISITORS:
            await asyncio.sleep(0.3)
            undecided = bool(await asyncio.to_thread(place.sql, _UNDECIDED))
            codes = await asyncio.to_thread(codes_of, place)
        got = await asyncio.gather(*(visitor.take(page, codes[visitor.mailbox]) for visitor in visitors))
    return {visitor.mailbox for visitor, is_given in zip(visitors, got, strict=True) if is_given}
