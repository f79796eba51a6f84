"""A key that is narrowed while a body is on its way, or while an order waits, does no more than it may by then."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import asyncpg
import pytest
from tests.distributed import SOMEBODY_WAITS
from tests.web.api.conftest import Service, on_database
from tests.web.half_sent import in_two

NARROWED = {
    "scope": ("UPDATE api_keys SET scopes = '{read}' WHERE key = 'hr'", "/problems/scope-required"),
    "network": ("UPDATE api_keys SET networks = '{192.0.2.0/24}' WHERE key = 'hr'", "/problems/network-not-allowed"),
}
CODES_ALONE = "UPDATE api_keys SET scopes = '{send}' WHERE key = 'hr'"
WIDE = "UPDATE api_keys SET scopes = NULL, networks = NULL WHERE key = 'hr'"


@pytest.fixture(autouse=True)
def wide(service: Service) -> None:
    service.sql(WIDE)


def requests(service: Service) -> dict[str, tuple[str, Any]]:
    recipients = [{"email": "ada@example.com", "name": "Ada"}]
    return {
        "order": ("/send/gift", service.body("gift", "coffee", value=10, recipients=recipients)),
        "batch": ("/send/gift", service.body("gift", "coffee", value=10, codeQuantity=2)),
        "large": ("/send/gift", service.body("gift", "coffee", value=10, codeQuantity=150)),
        "webhook": ("/webhooks", {"event": "order.created", "targetUrl": "https://hooks.example/x"}),
    }


@pytest.mark.parametrize("what", ["order", "batch", "large", "webhook"])
@pytest.mark.parametrize("narrowed", NARROWED)
def test_what_was_narrowed_meanwhile_is_refused(service: Service, what: str, narrowed: str) -> None:
    change, problem = NARROWED[narrowed]
    path, body = requests(service)[what]
    before = service.state(), service.sql("SELECT count(*) FROM webhook_subscriptions")
    answer = in_two(service, service.keys["hr"], path, body, partial(service.sql, change))
    assert (answer.status, answer.json["type"]) == (403, problem)
    assert (service.state(), service.sql("SELECT count(*) FROM webhook_subscriptions")) == before


def test_a_key_without_codes_gets_none_and_sends_all_the_same(service: Service) -> None:
    for what, status in (("batch", 403), ("order", 200)):
        service.sql(WIDE)
        path, body = requests(service)[what]
        answer = in_two(service, service.keys["hr"], path, body, partial(service.sql, CODES_ALONE))
        assert answer.status == status


def test_narrowing_waits_for_what_is_being_written(service: Service) -> None:
    """As deleting does: whatever the key has sent is there by then, and nothing comes after."""
    from largesse.customers.key_store import narrow_key

    key_id = service.sql("SELECT id FROM api_keys WHERE key = 'hr'")[0][0]

    async def narrow(connection: asyncpg.Connection) -> None:
        other = await asyncpg.connect(service.database_url)
        try:
            async with other.transaction():
                await other.execute("SELECT FROM api_keys WHERE id = $1 FOR KEY SHARE", key_id)
                narrowing = asyncio.create_task(narrow_key(connection, key_id, scopes=["read"], networks=None))
                while not await other.fetchval(SOMEBODY_WAITS):
                    assert not narrowing.done()
                    await asyncio.sleep(0.005)
            await narrowing
        finally:
            await other.close()

    on_database(service.database_url, narrow)
    assert service.sql("SELECT scopes FROM api_keys WHERE id = $1", key_id)[0][0] == ["read"]
