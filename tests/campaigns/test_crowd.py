"""A crowd at once: thousands of visitors of one campaign, in two serving processes, get its gifts, one a mailbox, and no more."""

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

import aiohttp
import pytest
from tests.campaigns.conftest import reserve, work
from tests.campaigns.test_giving import campaign_id
from tests.web.api.conftest import Service

from largesse.encryption.vault import Vault
from largesse.lines.codes import asked_code

VISITORS = int(os.environ.get("CAMPAIGN_VISITORS", "500"))
AT_ONCE = 250  # connections of the crowd
MOST_TRIES = 200


def codes_of(service: Service) -> dict[str, str]:
    """The code that was mailed last to each mailbox."""
    vault = Vault(service.settings.master_keys)
    rows = service.sql(
        """
        SELECT DISTINCT ON (a.mailbox) a.customer_id, a.mailbox, a.id FROM campaign_asks a JOIN messages m
            ON m.customer_id = a.customer_id AND m.line_numbers = ARRAY[-a.id] AND m.kind = 'campaign_code'
        ORDER BY a.mailbox, a.id DESC
        """
    )
    return {mailbox: asked_code(vault, customer_id, ask_id) for customer_id, mailbox, ask_id in rows}


class Answer(NamedTuple):
    """What a visitor got."""

    status: int
    cookie: str
    text: str


class Crowd:
    """Visitors, each of a network of their own, who try again when the service asks them to."""

    def __init__(self, session: aiohttp.ClientSession, urls: list[str], token: str) -> None:
        self.session = session
        self.pages = [f"{url}/claim/campaign/{token}" for url in urls]
        self.turns = asyncio.Semaphore(AT_ONCE)
        self.busy = 0  # answers that were lost, or asked to come again

    async def ask(self, number: int, email: str) -> str:
        """Asks for a code; returns the cookie."""
        answer = await self._post(number, "", {}, email=email)
        assert answer.status == 303, answer.text
        return answer.cookie.partition(";")[0]

    async def take(self, number: int, cookie: str, code: str) -> str:
        """Types the code; returns what came of it."""
        answer = await self._post(number, "/code", {"Cookie": cookie}, code=code)
        if answer.status == 409:
            return "gone"
        assert answer.status == 200, answer.status
        return "had" if "You have taken it before" in answer.text else "given"

    async def _post(self, number: int, path: str, headers: dict[str, str], **form: str) -> Answer:
        host = f"10.{number // 65536}.{number // 256 % 256}.{number % 256}"
        page = self.pages[number % len(self.pages)] + path
        headers = {"X-Forwarded-For": host, **headers}
        async with self.turns:
            for _ in range(MOST_TRIES):
                try:
                    async with self.session.post(page, data=form, headers=headers, allow_redirects=False) as answer:
                        if answer.status != 503:
                            return Answer(answer.status, answer.headers.get("Set-Cookie", ""), await answer.text())
                except aiohttp.ClientConnectionError:  # a connection that was closed just before it was used
                    pass
                self.busy += 1
                await asyncio.sleep(0.2)
        raise AssertionError("the service stayed busy")


def mailbox(email: str) -> str:
    local, _, domain = email.lower().partition("@")
    return f"{local.partition('+')[0]}@{domain}"


def rush(service: Service, start_service: Callable[..., Service], *, visitors: int, gifts: int) -> None:
    """Has so many visitors come at once, of whom each tenth is there a second time with another spelling of an address."""
    other, before = start_service(like=service), service.balance("gbp")
    token = reserve(service, gifts=gifts)
    people = [
        f"P{number - 1}+again@acme.example" if number % 10 == 9 else f"p{number}@acme.example"
        for number in range(visitors)
    ]

    async def come(do: Callable[[Crowd], Coroutine[Any, Any, Any]]) -> Any:
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=AT_ONCE),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=120),
        ) as session:
            return await do(Crowd(session, [service.url, other.url], token))

    async def ask(crowd: Crowd) -> list[str]:
        return await asyncio.gather(*(crowd.ask(number, email) for number, email in enumerate(people)))

    cookies = asyncio.run(come(ask))
    work(service)
    codes = codes_of(service)  # of the two spellings of a mailbox, the code counts that was asked for last

    async def take(crowd: Crowd) -> tuple[list[str], int]:
        taken = (crowd.take(number, cookies[number], codes[mailbox(email)]) for number, email in enumerate(people))
        return await asyncio.gather(*taken), crowd.busy

    outcomes, busy = asyncio.run(come(take))
    check(service, token, gifts, list(zip(map(mailbox, people), outcomes, strict=True)), busy)
    assert service.balance("gbp") == before - 10 * gifts


def check(service: Service, token: str, gifts: int, outcomes: list[tuple[str, str]], busy: int) -> None:
    """Every gift is given, each to a mailbox of its own, and those who got one, and they alone, were told so."""
    number = campaign_id(service, token)
    rows = service.sql("SELECT mailbox, number FROM campaign_people WHERE campaign_id = $1", number)
    assert sorted(row[1] for row in rows) == list(range(1, gifts + 1))
    assert {row[0] for row in rows} == {mailbox for mailbox, outcome in outcomes if outcome != "gone"}
    given = Counter(mailbox for mailbox, outcome in outcomes if outcome == "given")
    assert set(given.values()) == {1}
    # Whose answer was lost in the crowd comes again, and finds the gift.
    assert gifts - busy <= len(given) <= gifts
    mails = """
        SELECT count(*) FROM messages m JOIN orders o ON o.customer_id = m.customer_id AND o.id = m.order_id
        JOIN campaigns c ON c.order_reference = o.reference WHERE c.id = $1 AND m.kind = 'gift'
    """
    assert service.sql(mails, number)[0][0] == gifts
    assert service.findings() == []


@pytest.mark.slow
def test_a_small_crowd(service: Service, start_service: Callable[..., Service]) -> None:
    rush(service, start_service, visitors=200, gifts=20)


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_many_visitors_at_once_get_a_tenth_as_many_gifts(
    service: Service, start_service: Callable[..., Service]
) -> None:
    """Long: CAMPAIGN_VISITORS=5000."""
    rush(service, start_service, visitors=VISITORS, gifts=VISITORS // 10)
