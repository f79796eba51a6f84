"""Claims that race really race: over HTTP, many at once, each on the database."""

import asyncio
import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.chained import actor_on
from tests.waiting import until
from tests.web.claim.conftest import Codes, Recipient, form_of, link, lookup_of, wrong

from largesse.db.pool import Database
from largesse.db.scope import OPERATOR
from largesse.db.session import COMMANDS
from largesse.encryption.vault import Vault
from largesse.fulfilment.inventory import find_inventory_product, import_vouchers
from largesse.fulfilment.store import IS_STOCKED, LOCK_PRODUCT

_AT_ONCE = 100
# How many race: few in the suite, more on demand.
CLAIMS = int(os.environ.get("RACING_CLAIMS", "100"))


@pytest.fixture
def flood(service: Any) -> Callable[..., list[int]]:
    """Posts forms, many at once, each from a host of its own unless it says; gives the statuses in their order."""

    def run(posts: Sequence[tuple[str, dict[str, str]]], hosts: Sequence[str] | None = None) -> list[int]:
        async def all_posts(_: Any) -> list[int]:
            connector = aiohttp.TCPConnector(limit=_AT_ONCE)
            async with aiohttp.ClientSession(
                service.url, connector=connector, cookie_jar=aiohttp.DummyCookieJar()
            ) as session:

                async def post(at: int, path: str, form: dict[str, str]) -> int:
                    host = hosts[at] if hosts else f"10.{at >> 16}.{at >> 8 & 255}.{at & 255}"
                    headers = {"X-Forwarded-For": host}
                    async with session.post(path, data=form, headers=headers, allow_redirects=False) as answer:
                        await answer.read()
                        return answer.status

                return list(await asyncio.gather(*(post(at, *one) for at, one in enumerate(posts))))

        statuses: list[int] = service.run(all_posts)
        return statuses

    return run


def test_many_claims_of_one_code_give_it_once(service: Any, codes: Codes, flood: Callable[..., list[int]]) -> None:
    code = codes("collection", "treats", value=10)[0]
    statuses = Counter(flood([(link(code), {"pin": code["pin"]})] * CLAIMS))
    assert statuses == {303: 1, 409: CLAIMS - 1}
    events = service.sql(
        "SELECT event FROM line_events JOIN lines USING (customer_id, order_id, number) WHERE code_lookup = $1",
        lookup_of(service, code),
    )
    assert Counter(row["event"] for row in events) == {"opened": 1, "claimed": 1}


@pytest.mark.slow
def test_of_fifty_guesses_at_once_five_are_evaluated(
    service: Any, codes: Codes, flood: Callable[..., list[int]]
) -> None:
    code = codes("collection", "treats", value=10)[0]
    statuses = flood([(link(code), {"pin": wrong(code, by)}) for by in range(1, 51)])
    assert statuses == [403] * 50
    paused = "SELECT failures, pauses FROM pin_failures WHERE NOT decoy AND key = $1"
    row = service.sql(paused, lookup_of(service, code))[0]
    assert (row["failures"], row["pauses"]) == (0, 1), "one pause after five; the others were not evaluated"
    assert flood([(link(code), {"pin": code["pin"]})]) == [403]


@pytest.mark.slow
def test_numbers_for_three_in_five_go_to_the_first_and_each_once(
    service: Any, codes: Codes, flood: Callable[..., list[int]], stock: Callable[..., Any]
) -> None:
    fifth = CLAIMS // 5
    issued = codes("gift", "cinema", 5 * fifth)

    def fill(first: int, count: int) -> Any:
        return stock("cinema", [f"CINE-{number}" for number in range(first, first + count)])

    assert fill(0, 3 * fifth).added == 3 * fifth
    assert Counter(flood([(link(code), {"pin": code["pin"]}) for code in issued])) == {303: 5 * fifth}
    product = service.ids["products"]["cinema"]
    handed = service.sql("SELECT order_id, number FROM vouchers WHERE product_id = $1", product)
    assert len(handed) == 3 * fifth
    assert len({tuple(row) for row in handed} - {(None, None)}) == 3 * fifth
    waiting = service.sql(
        "SELECT order_id, number FROM voucher_waits WHERE product_id = $1 ORDER BY since, id", product
    )
    assert len(waiting) == 2 * fifth
    assert fill(3 * fifth, fifth).served == fifth
    left = service.sql("SELECT order_id, number FROM voucher_waits WHERE product_id = $1 ORDER BY since, id", product)
    assert [tuple(row) for row in left] == [tuple(row) for row in waiting[fifth:]], "the oldest were served"
    assert fill(4 * fifth, fifth + 20).served == fifth
    states = Counter(
        row["state"] for row in service.sql("SELECT state FROM line_states WHERE product_id = $1", product)
    )
    assert states == {"fulfilled": 5 * fifth}
    assert service.sql("SELECT count(*) FROM vouchers WHERE product_id = $1 AND order_id IS NULL", product)[0][0] == 20


@pytest.mark.slow
def test_an_import_that_races_with_claims_leaves_nobody_waiting(service: Any, codes: Codes, tmp_path: Path) -> None:
    file = tmp_path / "numbers.csv"
    file.write_text("\n".join(f"SHOP-{number}" for number in range(200)))
    issued = codes("gift", "shop", 200, value=3)

    async def race(_: Any) -> Any:
        database = await Database.connect(service.database_url)
        vault = Vault(service.settings.master_keys)
        async with database.connection(OPERATOR) as connection:
            stocked = await find_inventory_product(connection, "shop")
        async with aiohttp.ClientSession(service.url, cookie_jar=aiohttp.DummyCookieJar()) as session:

            async def claim(at: int) -> int:
                headers = {"X-Forwarded-For": f"10.9.0.{at}"}
                form = {"pin": issued[at]["pin"]}
                async with session.post(link(issued[at]), data=form, headers=headers, allow_redirects=False) as answer:
                    return answer.status

            claims = [asyncio.create_task(claim(at)) for at in range(200)]
            await asyncio.wait(claims, return_when=asyncio.FIRST_COMPLETED)
            imported = await import_vouchers(await actor_on(database, vault), vault, stocked, file, value="3")
            statuses = await asyncio.gather(*claims)
        await database.close()
        return imported, Counter(statuses)

    imported, statuses = service.run(race)
    assert imported.added == 200
    assert statuses == {303: 200}
    product = service.ids["products"]["shop"]
    assert service.sql("SELECT count(*) FROM voucher_waits WHERE product_id = $1", product)[0][0] == 0
    lines = service.sql("SELECT DISTINCT order_id, number FROM vouchers WHERE product_id = $1", product)
    assert len(lines) == 200


@pytest.mark.slow
def test_a_cancellation_that_races_with_claims_takes_each_line_or_leaves_it(
    service: Any, verified: Callable[[], list[str]]
) -> None:
    before = service.balance("gbp")
    orders = [service.send("collection", "treats", value=10, codeQuantity=10).json() for _ in range(CLAIMS // 10)]
    key = {"Authorization": f"Bearer {service.keys['hr']}"}

    async def race(_: Any) -> Counter[str]:
        outcomes: Counter[str] = Counter()
        connector = aiohttp.TCPConnector(limit=_AT_ONCE)
        async with aiohttp.ClientSession(
            service.url, connector=connector, cookie_jar=aiohttp.DummyCookieJar()
        ) as session:

            async def claim(at: int, code: dict[str, str]) -> None:
                headers = {"X-Forwarded-For": f"10.8.{at >> 8}.{at & 255}"}
                async with session.post(
                    link(code), data={"pin": code["pin"]}, headers=headers, allow_redirects=False
                ) as answer:
                    outcomes[f"claim {answer.status}"] += 1

            async def cancel(reference: str) -> None:
                async with session.post(f"/orders/{reference}/cancel", headers=key) as answer:
                    outcomes[f"cancel {answer.status}"] += 1

            for at, order in enumerate(orders):
                first, *racing, last = (claim(at * 10 + of, code) for of, code in enumerate(order["codes"]))
                racing.insert(at % 9, cancel(order["reference"]))
                # One is there before and one comes too late, so that both ends are met however the race goes.
                await first
                await asyncio.gather(*racing)
                await last
        return outcomes

    outcomes = service.run(race)
    references = [order["reference"] for order in orders]
    states = Counter(
        row["state"]
        for row in service.sql(
            "SELECT s.state FROM line_states s JOIN orders o ON o.customer_id = s.customer_id AND o.id = s.order_id WHERE o.reference = ANY($1::text[])",
            references,
        )
    )
    assert states["claimed"] + states["cancelled"] == 10 * len(orders)
    assert states["claimed"] >= len(orders), states
    assert states["cancelled"] >= len(orders), states
    assert outcomes == {"claim 303": states["claimed"], "claim 410": states["cancelled"], "cancel 200": len(orders)}
    assert service.balance("gbp") == pytest.approx(before - 10 * states["claimed"])
    assert verified() == []


@pytest.mark.slow
def test_neither_a_dump_nor_the_logs_hold_what_is_secret(
    service: Any, recipient: Any, codes: Codes, capfd: pytest.CaptureFixture[str]
) -> None:
    code = codes("gift", "hamper")[0]
    path = recipient.gift(code)
    page = recipient.get(path)
    key = form_of(page)["key"]
    address = {"name": "Quentin Zyx", "street_address": "77 Obscure Alley", "city": "Leeds", "postal_code": "LS1 4DY"}
    assert recipient.post(f"{path}/address", key=key, email="quentin@example.com", **address).status_code == 303
    recipient.post("/claim", code=code["code"], pin=wrong(code))
    secrets = [
        code["code"],
        code["code"].replace("-", ""),
        code["redemptionUrl"].rsplit("/", 1)[1],
        "Quentin Zyx",
        "Obscure Alley",
        "quentin@example.com",
        "CINE-1",
    ]
    tables = [
        row["table_name"]
        for row in service.sql("SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'")
    ]
    everything = "\n".join(
        str(row["line"]) for table in tables for row in service.sql(f'SELECT t::text AS line FROM "{table}" t')
    )
    logged = "".join(capfd.readouterr())
    for secret in secrets:
        assert secret not in everything
        assert secret.encode().hex() not in everything
        assert secret not in logged
    assert not re.search(rf"\b{code['pin']}\b", everything + logged)


def test_a_claim_while_a_large_import_is_allocated_succeeds(
    service: Any, recipient: Recipient, codes: Codes, tmp_path: Path
) -> None:
    first, second = codes("gift", "shop", 2, value=4)
    recipient.gift(first)  # waits
    (tmp_path / "shop.csv").write_text("number\nRACE-1\nRACE-2\n")

    async def work(database: Database, vault: Vault) -> int:
        async with database.connection(OPERATOR) as connection:
            stocked = await find_inventory_product(connection, "shop")
        async with database.transaction(OPERATOR) as holder:
            await holder.execute(LOCK_PRODUCT, stocked.id)
            actor = await actor_on(database, vault)
            importing = asyncio.create_task(import_vouchers(actor, vault, stocked, tmp_path / "shop.csv", value="4"))
            await until(lambda: database.fetchval(OPERATOR, IS_STOCKED, stocked.id))
            claimed = await asyncio.to_thread(Recipient(service).claim, second)
            assert claimed.status_code == 303, claimed.text
        return (await importing).served

    assert service.on_pool(work, limits=COMMANDS) == 2
