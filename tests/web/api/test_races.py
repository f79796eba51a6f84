"""Many clients at once: money, references and large orders hold however requests fall together.

RACING_ORDERS has more of them race: docs/testing.md.
"""

import asyncio
import os
import random
from collections import Counter
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest

CLIENTS = 64
ORDERS = int(os.environ.get("RACING_ORDERS", "150"))
COVERED = 3 * ORDERS // 5

WORLD = """
customers:
  - key: acme
    name: Acme Ltd
    plan: pro
    funding: balance
    service_accounts: [{key: bot, name: Bot}]
    api_keys: [{key: hr, service_account: bot, environment: production}]
    funding_accounts:
      - {key: gbp, name: Float, master: true, currency: GBP, balance: COVERED}
      - {key: big, name: Big, currency: GBP, balance: 1000000.00}
      - {key: eur, name: Euro, currency: EUR, balance: 1000000.00}
      - {key: pence, name: Pence, currency: GBP, balance: 1.00}
    templates:
      - {key: hello, name: Hello, product: coffee, value: 10}
      - {key: bonjour, name: Bonjour, product: books, value: 7, country: FR}
  - key: owes
    name: Owes
    plan: pro
    funding: invoiced
    service_accounts: [{key: owes-bot, name: Bot}]
    api_keys: [{key: owes, service_account: owes-bot, environment: production}]
products:
  - {key: coffee, name: Coffee, digital: true, currency: GBP, countries: [GB], denominations: [5, 10]}
  - {key: books, name: Books, digital: true, currency: EUR, countries: [FR], min_amount: 5, max_amount: 200}
  - {key: penny, name: Penny, digital: true, currency: GBP, countries: [GB], min_amount: 0.01, max_amount: 10}
collections:
  - {key: treats, name: Treats, country: GB, currency: GBP, value_points: [10, 25], products: [coffee]}
  - {key: lire, name: Lire, country: FR, currency: EUR, value_points: [10, 25], products: [books]}
""".replace("COVERED", f"{10 * COVERED}.00")

Call = tuple[str, dict[str, Any]]  # a path and the body posted there


@dataclass(frozen=True)
class Answer:
    """What came back for a call."""

    status: int
    body: dict[str, Any]


async def all_at_once(service, key: str, calls: list[Call]) -> list[Answer]:
    """The answers to all calls, made by CLIENTS clients with a connection each; they begin together."""
    waiting = list(enumerate(calls))
    answers: list[Any] = [None] * len(calls)
    begin = asyncio.Barrier(CLIENTS)
    headers = {"Authorization": f"Bearer {service.keys[key]}"}

    async def run() -> None:
        connector = aiohttp.TCPConnector(limit=1)
        async with aiohttp.ClientSession(service.url, headers=headers, connector=connector) as session:
            async with session.get("/me") as me:
                assert me.status == 200
                await me.read()
            await begin.wait()
            while waiting:
                at, (path, body) = waiting.pop()
                async with session.post(path, json=body) as answer:
                    answers[at] = Answer(answer.status, await answer.json(content_type=None))

    await asyncio.gather(*(run() for _ in range(CLIENTS)))
    return answers


def sending(service, what: str, name: str, **members: Any) -> Call:
    return f"/send/{what}", service.body(what, name, **members)


@pytest.mark.slow
async def test_orders_on_an_account_that_covers_three_in_five(own_service) -> None:
    service = own_service
    calls = [
        sending(
            service,
            "gift",
            "coffee",
            value=10,
            recipients=[{"email": f"r{n}@example.com"}],
            externalReference=f"rush-{n}",
        )
        for n in range(ORDERS)
    ]
    answers = await all_at_once(service, "hr", calls)
    assert Counter(answer.status for answer in answers) == {200: COVERED, 402: ORDERS - COVERED}
    assert {a.body["type"] for a in answers if a.status == 402} == {"/problems/insufficient-balance"}
    assert service.balance("gbp") == 0.0
    placed = {answer.body["reference"] for answer in answers if answer.status == 200}
    kept = {row["reference"] for row in service.sql("SELECT reference FROM orders WHERE delivery_mode = 'send'")}
    assert placed == kept
    assert len(placed) == COVERED
    assert service.findings() == []
    assert await refused_references_still_work(service, answers)


async def refused_references_still_work(service, answers: list[Answer]) -> bool:
    refused = [f"rush-{n}" for n, answer in enumerate(answers) if answer.status == 402]
    calls = [
        sending(service, "gift", "coffee", account="big", value=5, externalReference=reference) for reference in refused
    ]
    again = await all_at_once(service, "hr", calls)
    return Counter(answer.status for answer in again) == {200: ORDERS - COVERED}


@pytest.mark.slow
async def test_references_ten_times_each_over_three_endpoints(service) -> None:
    """The bodies differ in endpoint, currency and account, so that nothing but the reference holds them together."""
    references = ORDERS // 5
    bodies = [
        ("gift", "coffee", "big", {"value": 10}),
        ("gift", "coffee", "big", {"value": 5, "codeQuantity": 3}),
        ("gift", "books", "eur", {"value": 6.5, "country": "FR"}),
        ("collection", "treats", "big", {"value": 25}),
        ("collection", "lire", "eur", {"value": 10}),
        ("collection", "lire", "eur", {"value": 25, "codeQuantity": 150}),
        ("template", "hello", "big", {}),
        ("template", "hello", "big", {"recipients": [{"email": "sam@example.com"}]}),
        ("template", "bonjour", "eur", {}),
        ("gift", "penny", "big", {"value": 0.01, "codeQuantity": 120}),
    ]
    calls = [
        (reference, sending(service, what, name, account=account, externalReference=reference, **members))
        for reference in (f"once-{n}" for n in range(references))
        for what, name, account, members in bodies
    ]
    random.Random(1).shuffle(calls)
    answers = await all_at_once(service, "hr", [call for _, call in calls])
    assert Counter(answer.status for answer in answers) == {200: references, 409: 9 * references}
    holders: dict[str, str] = {}
    for (reference, _), answer in zip(calls, answers, strict=True):
        if answer.status == 200:
            assert reference not in holders
            holders[reference] = answer.body["reference"]
            assert answer.body["externalReference"] == reference
    for (reference, _), answer in zip(calls, answers, strict=True):
        if answer.status == 409:
            assert answer.body["instance"] == f"/orders/{holders[reference]}"
    assert len(holders) == references
    assert service.findings() == []


async def test_an_invoiced_customers_orders_all_fall_due(service) -> None:
    calls = [
        sending(service, "gift", "coffee", account=None, value=5, externalReference=f"due-{n}") for n in range(ORDERS)
    ]
    answers = await all_at_once(service, "owes", calls)
    assert Counter(answer.status for answer in answers) == {200: ORDERS}
    owed = service.sql("SELECT balance_minor FROM accounts WHERE kind = 'receivable' AND customer_id = $1", 2)
    assert [row[0] for row in owed] == [-ORDERS * 500]
    assert service.findings() == []


async def test_the_last_pennies_are_spent_once(service) -> None:
    """Orders of many sizes on one pound: what is placed adds up to what is gone."""
    sizes = [1 + n % 9 for n in range(128)]
    calls = [sending(service, "gift", "penny", account="pence", value=0.01, codeQuantity=size) for size in sizes]
    answers = await all_at_once(service, "hr", calls)
    assert {answer.status for answer in answers} == {200, 402}
    spent = sum(size for size, answer in zip(sizes, answers, strict=True) if answer.status == 200)
    assert service.balance("pence") == pytest.approx((100 - spent) / 100)
    # One-penny orders were among them, so nothing that fits was left over.
    assert spent == 100
    assert service.findings() == []


async def test_large_orders_do_not_hold_up_small_ones(service) -> None:
    """Three orders of 2,000 codes and 61 of one: all are placed whole."""
    calls = [
        sending(service, "gift", "penny", account="big", value=0.01, codeQuantity=2000 if n % 24 == 0 else 1)
        for n in range(64)
    ]
    answers = await all_at_once(service, "hr", calls)
    assert Counter(answer.status for answer in answers) == {200: 64}
    codes = [code["code"] for answer in answers for code in answer.body["codes"]]
    assert len(codes) == len(set(codes)) == 3 * 2000 + 61
    assert service.findings() == []


async def test_two_processes_share_references_and_balances(service, start_service) -> None:
    """Two services on one database, as two `largesse serve` would be."""
    other = start_service(like=service)
    before = service.balance("eur")

    def calls(at) -> list[Call]:
        return [
            sending(at, "gift", "books", account="eur", value=5 + n % 7, country="FR", externalReference=f"both-{n}")
            for n in range(ORDERS)
        ]

    here, there = await asyncio.gather(
        all_at_once(service, "hr", calls(service)), all_at_once(other, "hr", calls(other))
    )
    assert {tuple(sorted((a.status, b.status))) for a, b in zip(here, there, strict=True)} == {(200, 409)}
    assert service.balance("eur") == before - sum(5 + n % 7 for n in range(ORDERS))
    assert service.findings() == []
