"""A key that is deleted or narrowed while a request with it is under way: the request has written nothing that it may not by then."""

import asyncio
import secrets
from collections.abc import Callable
from functools import partial
from typing import Any

import asyncpg
import httpx
import pytest
from tests.closing import closing
from tests.distributed import IS_DISTRIBUTED, SOMEBODY_WAITS
from tests.waiting import until
from tests.web.api.conftest import Service, on_database
from tests.web.half_sent import in_two

from largesse.customers.key_store import delete_key
from largesse.web.api.routes import OPERATIONS

SAM = "sam@example.com"
TARGET = {"targetUrl": "https://93.184.215.14/hook", "event": "order.created"}
# Each operation that writes: path and body of a request that would be served. Reading codes writes that they were read.
WRITING: dict[str, Callable[[Any], tuple[str, Any]]] = {
    "sendGift": lambda s: ("/send/gift", s.body("gift", "coffee", value=5)),
    "sendCollection": lambda s: ("/send/collection", s.body("collection", "treats", value=10)),
    "sendTemplate": lambda s: ("/send/template", s.body("template", "welcome", codeQuantity=101)),
    "getOrder": lambda s: (f"/orders/{batch_of(s)}", None),
    "cancelOrder": lambda s: (f"/orders/{batch_of(s)}/cancel", None),
    "resendOrderMail": lambda s: (f"/orders/{mailed_by(s)}/resend", {"email": SAM}),
    "createContact": lambda _: ("/contacts", new_contact()),
    "saveContacts": lambda _: ("/contacts/bulk", {"contacts": [new_contact()]}),
    "changeContact": lambda s: (f"/contacts/{contact_of(s)}", {"name": "Sam"}),
    "deleteContact": lambda s: (f"/contacts/{contact_of(s)}", None),
    "createWebhook": lambda _: ("/webhooks", TARGET),
    "deleteWebhook": lambda s: (f"/webhooks/{subscription_of(s)}", None),
    "rotateWebhookSecret": lambda s: (f"/webhooks/{subscription_of(s)}/rotate-secret", None),
    "testWebhook": lambda s: (f"/webhooks/{subscription_of(s)}/test", None),
    "redeliverWebhook": lambda s: (redelivery_of(s), None),
}
# A quote is posted as a send is, and writes nothing.
NOT_WRITING = {"quoteGift", "quoteCollection", "quoteTemplate"}
METHODS = {operation.name: operation.method for operation in OPERATIONS if operation.name not in NOT_WRITING}
# Which a server writes to by itself, from time to time: when a key was last used, which requests it sent, and that it still seals under a master key.
TOLD = ("api_keys", "api_requests", "master_keys")
WITH_BODY = [operation.name for operation in OPERATIONS if operation.body is not None and operation.name in METHODS]


def batch_of(service: Any) -> str:
    reference: str = service.send("gift", "coffee", value=5).json()["reference"]
    return reference


def mailed_by(service: Any) -> str:
    """The reference of an order whose one mail has gone out."""
    reference: str = service.send("gift", "coffee", value=5, recipients=[{"email": SAM}]).json()["reference"]
    mark_mailed(service, reference)
    return reference


def mark_mailed(service: Any, reference: str) -> None:
    service.sql(
        """
        INSERT INTO messages
            (customer_id, order_id, environment, email, line_numbers, state, due_at, rank_at, created_at, finished_at)
        SELECT customer_id, id, environment, $2, '{1}', 'sent', now(), now(), now(), now() FROM orders WHERE reference = $1
        """,
        reference,
        SAM,
    )


def new_contact() -> dict[str, str]:
    name = secrets.token_hex(6)
    return {"email": f"{name}@example.com", "externalId": name}


def contact_of(service: Any) -> int:
    contact_id: int = service.client("hr").post("/contacts", json=new_contact()).json()["id"]
    return contact_id


def subscription_of(service: Any) -> str:
    subscription: str = service.client("hr").post("/webhooks", json=TARGET).json()["id"]
    return subscription


def redelivery_of(service: Any) -> str:
    subscription = subscription_of(service)
    tested = service.client("hr").post(f"/webhooks/{subscription}/test").json()
    return f"/webhooks/{subscription}/deliveries/{tested['id']}/redeliver"


def everything(service: Any) -> dict[str, str]:
    """A digest of every table but those a server writes to by itself."""
    tables = service.sql("SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'")
    digest = """SELECT '{0}', (SELECT md5(string_agg(t::text, '|' ORDER BY t::text)) FROM "{0}" t)"""
    names = [table[0] for table in tables if table[0] not in TOLD]
    return dict(map(tuple, service.sql(" UNION ALL ".join(map(digest.format, names)))))


async def waits_for(connection: asyncpg.Connection, *others: asyncio.Future[Any]) -> bool:
    """Whether somebody waits for a lock of this connection's transaction, or one of the others is done and need not."""
    query = "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid)))"
    return any(other.done() for other in others) or await connection.fetchval(
        SOMEBODY_WAITS if IS_DISTRIBUTED else query
    )


def test_every_operation_that_writes_is_tried_here() -> None:
    assert set(WRITING) - {"getOrder"} == {name for name, method in METHODS.items() if method != "GET"}


@pytest.mark.parametrize("name", WRITING)
def test_the_deletion_wins(service, problem, name: str) -> None:
    """The key is found when the request comes in, and is being deleted when it would write."""
    path, body = WRITING[name](service)
    key_id, secret = service.new_key()
    before = everything(service)

    def request() -> httpx.Response:
        headers = {"X-Api-Key": secret}
        return httpx.request(METHODS[name], service.url + path, json=body, headers=headers, timeout=60)

    async def delete_meanwhile(connection: asyncpg.Connection) -> httpx.Response:
        async with connection.transaction():
            await delete_key(connection, key_id)
            answering = asyncio.ensure_future(asyncio.to_thread(request))
            await until(lambda: waits_for(connection, answering))
        return await answering

    refused = service.run(delete_meanwhile)
    assert problem(refused, 401, "unauthorized") == "The API key was deleted."
    assert everything(service) == before
    served = service.client("hr").request(METHODS[name], path, json=body)
    assert served.status_code < 300, served.text
    assert everything(service) != before


@pytest.mark.parametrize("name", WITH_BODY)
def test_deleted_while_the_body_is_under_way(service, name: str) -> None:
    path, body = WRITING[name](service)
    key_id, secret = service.new_key()
    before = everything(service)
    answer = in_two(service, secret, path, body, lambda: service.delete_key(key_id), method=METHODS[name])
    assert (answer.status, answer.json["detail"]) == (401, "The API key was deleted.")
    assert everything(service) == before


@pytest.mark.parametrize(
    ("table", "key", "off", "on", "status"),
    [
        ("service_accounts", "globex-bot", "active = false", "active = true", 403),
        ("customers", "globex", "plan = 'starter'", "plan = 'pro'", 402),
    ],
)
@pytest.mark.parametrize("name", ["sendGift", "createWebhook"])
def test_switched_off_while_the_body_is_under_way(
    service, name: str, table: str, key: str, off: str, on: str, status: int
) -> None:
    gift = service.body("gift", "coffee", account="globex-gbp", value=5)
    path, body = ("/send/gift", gift) if name == "sendGift" else ("/webhooks", TARGET)
    assert service.client("globex").post(path, json=body).status_code < 300

    def set_to(value: str) -> None:
        service.sql(f"UPDATE {table} SET {value} WHERE key = '{key}'")

    set_to(off)
    before = everything(service)
    set_to(on)
    try:
        answer = in_two(service, service.keys["globex"], path, body, lambda: set_to(off))
        assert answer.status == status, answer.body
        assert everything(service) == before
    finally:
        set_to(on)


def test_the_deletion_waits(service) -> None:
    """What has looked at its key and found it writes to its end first."""
    reference = batch_of(service)
    key_id, secret = service.new_key()

    def cancel() -> httpx.Response:
        headers = {"X-Api-Key": secret}
        return httpx.post(f"{service.url}/orders/{reference}/cancel", headers=headers, timeout=60)

    async def hold_up(connection: asyncpg.Connection) -> tuple[bool, httpx.Response, httpx.Response]:
        async with closing(asyncpg.connect(service.database_url)) as deleter:
            async with connection.transaction():
                order = await connection.fetchrow("SELECT customer_id, id FROM orders WHERE reference = $1", reference)
                await connection.execute(
                    "SELECT FROM lines WHERE customer_id = $1 AND order_id = $2 FOR UPDATE", *order
                )
                cancelling = asyncio.ensure_future(asyncio.to_thread(cancel))
                await until(lambda: waits_for(connection, cancelling))
                deleting = asyncio.ensure_future(delete_key(deleter, key_id))
                waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = $1"
                pid = deleter.get_server_pid()
                await until(lambda: done_or(deleting, connection.fetchval(waiting, pid)))
                waited = not deleting.done()
            cancelled = await cancelling
            await deleting
        return waited, cancelled, await asyncio.to_thread(cancel)

    waited, cancelled, again = service.run(hold_up)
    assert waited
    assert (cancelled.status_code, cancelled.json()["cancelledCount"]) == (200, 1)
    assert again.status_code == 401


async def done_or(future: asyncio.Future[Any], otherwise: Any) -> Any:
    return await otherwise or future.done()


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
        async with closing(asyncpg.connect(service.database_url)) as other:
            async with other.transaction():
                await other.execute("SELECT FROM api_keys WHERE id = $1 FOR KEY SHARE", key_id)
                narrowing = asyncio.create_task(narrow_key(connection, key_id, scopes=["read"], networks=None))
                while not await other.fetchval(SOMEBODY_WAITS):
                    assert not narrowing.done()
                    await asyncio.sleep(0.005)
            await narrowing

    on_database(service.database_url, narrow)
    assert service.sql("SELECT scopes FROM api_keys WHERE id = $1", key_id)[0][0] == ["read"]
