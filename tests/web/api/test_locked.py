"""What somebody else has locked in the database keeps only those waiting who need it."""

import asyncio

import asyncpg
import httpx
import pytest
from tests.distributed import SOMEBODY_WAITS
from tests.waiting import until

WORLD = """
customers:
  - key: locked
    name: Locked
    plan: pro
    funding: invoiced
    service_accounts: [{key: bot, name: Bot}]
    api_keys: [{key: hr, service_account: bot, environment: production}]
  - key: other
    name: Other
    plan: pro
    funding: invoiced
    service_accounts: [{key: bot2, name: Bot}]
    api_keys: [{key: other, service_account: bot2, environment: production}]
products:
  - {key: coffee, name: Coffee, digital: true, currency: GBP, countries: [GB], denominations: [5, 10]}
  - {key: kaffee, name: Kaffee, digital: true, currency: EUR, countries: [DE], denominations: [5, 10]}
"""


@pytest.mark.slow
async def test_cancellations_that_wait_leave_connections_to_others(service) -> None:
    """Twenty of them wait for one account, twice as many as the process has connections."""
    body = service.body("gift", "coffee", account=None, value=5)
    send = service.client("hr").post("/send/gift", json=body)
    reference = send.json()["reference"]
    headers = {name: {"Authorization": f"Bearer {service.keys[name]}"} for name in ("hr", "other")}
    holder = await asyncpg.connect(service.database_url)
    limits = httpx.Limits(max_connections=50)
    async with httpx.AsyncClient(base_url=service.url, timeout=60, limits=limits) as client:
        await holder.execute("BEGIN; SELECT FROM accounts WHERE customer_id = 1 FOR UPDATE")
        cancelling = [
            asyncio.create_task(client.post(f"/orders/{reference}/cancel", headers=headers["hr"])) for _ in range(20)
        ]
        try:
            # Those of this database alone: with others', a look takes longer than a cancellation waits.
            await until(lambda: holder.fetchval(SOMEBODY_WAITS))
            for _ in range(10):
                assert (await client.get("/orders", headers=headers["other"])).status_code == 200
                answer = await client.post("/send/gift", json=body, headers=headers["other"])
                assert answer.status_code == 200
        finally:
            await holder.close()
        answers = [answer.status_code for answer in await asyncio.gather(*cancelling)]
    assert 200 in answers
    assert set(answers) <= {200, 503}


async def test_orders_whose_accounts_are_locked_keep_no_other_order_of_the_customer_waiting(service) -> None:
    """Twenty of them wait, more than one customer may have under way while another orders; those that wait do not count."""
    pounds = service.body("gift", "coffee", account=None, value=5)
    euros = service.body("gift", "kaffee", account=None, value=5, country="DE")
    headers = {name: {"Authorization": f"Bearer {service.keys[name]}"} for name in ("hr", "other")}
    holder = await asyncpg.connect(service.database_url)
    limits = httpx.Limits(max_connections=50)
    async with httpx.AsyncClient(base_url=service.url, timeout=60, limits=limits) as client:

        async def send(body: dict[str, object], key: str) -> int:
            return (await client.post("/send/gift", json=body, headers=headers[key])).status_code

        assert [await send(body, "hr") for body in (pounds, euros)] == [200, 200]
        await holder.execute("BEGIN; SELECT FROM accounts WHERE customer_id = 1 AND currency = 'GBP' FOR UPDATE")
        try:
            assert await send(pounds, "other") == 200
            locked = [asyncio.create_task(send(pounds, "hr")) for _ in range(20)]
            for _ in range(5):
                assert await send(pounds, "other") == 200
                assert await send(euros, "hr") == 200
            assert not any(task.done() for task in locked)
        finally:
            await holder.close()
        assert set(await asyncio.gather(*locked)) == {200}
