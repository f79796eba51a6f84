"""The request log: what a key asked is in it, whichever way it was answered, and slows nothing."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest
from prometheus_client import REGISTRY
from tests.closing import closing
from tests.distributed import IS_DISTRIBUTED
from tests.waiting import wait_until

from largesse.base import clock
from largesse.customers.principal import Principal
from largesse.db.pool import Database
from largesse.db.roles import Role
from largesse.db.scope import OPERATOR, for_customer
from largesse.housekeeping import RETENTION
from largesse.request_log import store
from largesse.request_log.model import DAYS, RequestFilter, loggable_path
from largesse.request_log.service import NotedRequest, RequestLog
from largesse.request_log.store import LOOKED_AT, last, list_newest, list_since, newest, read_request


@pytest.fixture
def written(service: Any) -> Callable[[int], list[Any]]:
    """Waits until so many requests are in the log since the test began, and returns them, the oldest first."""
    (last,) = service.sql("SELECT coalesce(max(id), 0) AS id FROM api_requests")

    def rows() -> list[Any]:
        return service.sql("SELECT * FROM api_requests WHERE id > $1 ORDER BY id", last["id"])

    return lambda count: wait_until(lambda: len(found := rows()) >= count and found)


def test_each_request_of_a_key_is_logged(service: Any, written: Any) -> None:
    client = service.client("hr")
    order = service.send("gift", "coffee", value=5)  # the short way of whole requests
    reference = order.json()["reference"]
    asked = [
        client.get(f"/orders/{reference}", headers={"X-Request-Id": "by-asgi"}),
        client.get("/products/999999"),
        client.post("/send/gift", json={}, headers={"X-Request-Id": "refused"}),
        client.get("/me", headers={"X-Request-Id": "whole"}),
        client.head("/me"),
        client.put("/me"),
    ]
    service.client().get("/me")  # of nobody
    client.get("/nowhere")  # no operation
    rows = written(6)
    assert [(row["method"], row["route"], row["path"], row["status"], row["problem"]) for row in rows] == [
        ("POST", "/send/gift", None, 200, None),
        ("GET", "/orders/{reference}", f"/orders/{reference}", 200, None),
        ("GET", "/products/{id}", "/products/999999", 404, "not-found"),
        ("POST", "/send/gift", None, 400, "invalid-request"),
        ("GET", "/me", None, 200, None),
        ("HEAD", "/me", None, 200, None),
    ]
    assert [row["request_id"] for row in rows] == [one.headers["X-Request-Id"] for one in (order, *asked[:-1])]
    assert {(row["customer_id"], row["environment"], str(row["address"])) for row in rows} == {
        (service.ids["customers"]["acme"], "production", "127.0.0.1")
    }
    (key,) = service.sql("SELECT id FROM api_keys WHERE key = 'hr'")
    assert {row["key_id"] for row in rows} == {key["id"]}
    assert all(0 < row["duration_us"] < 30_000_000 for row in rows)
    (now,) = service.sql("SELECT clock_now()")
    assert all(timedelta() < now[0] - row["at"] < timedelta(seconds=60) for row in rows)


@pytest.mark.parametrize(
    ("path", "stored"),
    [
        ("/orders/0WBQK7M2PXR4D9VA1C3E", "/orders/0WBQK7M2PXR4D9VA1C3E"),
        ("/orders/ABCD-EFGH-JKMN-PQRS-T", "/orders/***"),
        ("/orders/abcdefghjkmnpqrst/cancel", "/orders/***/cancel"),
        ("/contacts/sam@example.com", "/contacts/***"),
        ("/orders/lgs_live_0123", "/orders/***"),
        ("/orders/key=LGS_live_0123", "/orders/***"),
        ("/orders/VwLaDEzLKETDplSSX2HAQNq-sKlR0N3vSZUCP7qd", "/orders/***"),  # the token of a claim link
        ("/webhooks/3f2b8c1e-5d0a-4b7e-9c61-0a8d4e2f7b15", "/webhooks/3f2b8c1e-5d0a-4b7e-9c61-0a8d4e2f7b15"),
        ("/orders/a\0b", "/orders/ab"),
        ("/orders/a\nb\x1b[31mc\u202ed", "/orders/ab[31mcd"),  # `largesse requests` prints it on a terminal
        ("/webhooks/whsec_9sRsxmNh9Jr0WQM5zlvRksSYqVrOS3npEsEtvJyjgxap/test", "/webhooks/***/test"),
        ("/" + "x" * 400, "/" + "x" * 299),
        # Cut off after it is hidden: a part of a code or of an address would not be known for one.
        ("/" + "x" * 289 + "/ABCD-EFGH-JKMN-PQRS-T", "/" + "x" * 289 + "/***"),
        ("/" + "x" * 289 + "/sam.doe.with.a.name@example.com", "/" + "x" * 289 + "/***"),
    ],
)
def test_a_path_holds_no_code_secret_or_address(path: str, stored: str) -> None:
    assert loggable_path(path) == stored


def test_a_key_is_no_request_id(service: Any, written: Any) -> None:
    secret = service.keys["hr"]
    for path in ("/me", "/orders/x"):
        for named in (secret, f"id-{secret}", secret.upper()):
            answer = service.client("hr").get(path, headers={"X-Request-Id": named})
            assert re.fullmatch("[0-9a-f]{16}", answer.headers["X-Request-Id"]), named
    assert not any(secret.lower() in row["request_id"].lower() for row in written(6))


def test_what_a_path_may_hold_can_be_stored(service: Any, written: Any) -> None:
    for path in ("/orders/%00", "/orders/%ff%fe", "/orders/%F0%9F%8E%81", "/orders/'%22", "/orders/" + "x" * 2_000):
        assert service.client("hr").get(path).status_code == 404
    assert [row["status"] for row in written(5)] == [404] * 5


def dropped(reason: str) -> float:
    return REGISTRY.get_sample_value("largesse_requests_not_in_log_total", {"reason": reason}) or 0.0


def requests_of(service: Any, count: int, status: int = 200, name: str = "acme") -> list[NotedRequest]:
    principal = Principal(1, "production", service.ids["customers"][name], name, "pro", "balance", 1, "Bot", True)
    return [
        NotedRequest(principal, "GET", "/me", "/me", status, None, f"r{at}".encode(), None, clock.passed_s(), 0.001)
        for at in range(count)
    ]


@pytest.fixture
async def database(service: Any) -> Any:
    database = await Database.connect(service.database_url, max_connections=2)
    yield database
    await database.close()


def note(log: RequestLog, requests: list[NotedRequest]) -> int:
    """Notes the requests that the log takes, and returns how many."""
    taken = 0
    for request in requests:
        if log.takes(request.principal.customer_id, request.status):
            log.note(request)
            taken += 1
    return taken


async def test_too_many_are_dropped_and_counted(service: Any, database: Database) -> None:
    log, before = RequestLog(database, 10), dropped("load")
    assert note(log, requests_of(service, 300)) == 150, "three quarters of the room of twenty seconds"
    assert note(log, requests_of(service, 51, 500, "globex")) == 50, "refusals of others have room"
    await log.flush()
    assert dropped("load") - before == 151
    assert note(log, requests_of(service, 20)) == 8, "three quarters of a second's worth"
    await log.close()


async def test_refusals_of_one_customer_leave_room_for_others(service: Any, database: Database) -> None:
    log = RequestLog(database, 10)
    assert note(log, requests_of(service, 300, 500)) == 150
    assert note(log, requests_of(service, 300, 500, "globex")) == 50
    await log.close()


async def test_a_log_of_zero_writes_nothing(service: Any, database: Database) -> None:
    log, before = RequestLog(database, 0), dropped("load")
    (request,) = requests_of(service, 1, 500)
    assert not log.takes(request.principal.customer_id, 500)
    await log.close()
    assert dropped("load") == before, "it is not wanted"


async def test_what_the_database_refuses_is_counted_and_forgotten(service: Any, database: Database) -> None:
    log, before = RequestLog(database, 10), dropped("database")
    (request,) = requests_of(service, 1)
    log.note(request._replace(address="no address"))
    await log.flush()
    assert dropped("database") - before == 1
    log.note(request)
    await log.close()
    assert dropped("database") - before == 1


async def test_lists_are_filtered_and_of_their_customer_alone(service: Any, database: Database) -> None:
    log = RequestLog(database, 1_000)
    (first,) = requests_of(service, 1)
    variants = [
        first,
        first._replace(status=404, problem="not-found", route="/products/{id}", path="/products/9"),
        first._replace(method="POST", status=503, request_id=b"one-of-them"),
        first._replace(principal=requests_of(service, 1, name="initech")[0].principal),
    ]
    for one in variants:
        log.note(one)
    await log.close()
    acme = service.ids["customers"]["acme"]

    async def found(limit: int = 3, **filters: Any) -> list[tuple[str, int]]:
        async with database.connection(for_customer(acme, "production")) as connection:
            rows, _ = await list_newest(
                connection, (acme, "production"), RequestFilter(**filters), before=2**62, limit=limit
            )
            return [(row.path, row.status) for row in rows]

    assert await found() == [("/me", 503), ("/products/9", 404), ("/me", 200)]
    assert await found(1, status_class=4) == [("/products/9", 404)]
    assert await found(1, status_class=5) == [("/me", 503)]
    assert await found(1, method="POST") == [("/me", 503)]
    assert await found(request_id="one-of-them") == [("/me", 503)]
    assert await found(1, route="/products/{id}") == [("/products/9", 404)]
    assert await found(1, path="/products/9", status_class=4, method="GET", key_id=1) == [("/products/9", 404)]
    assert await found(path="/products/9", status_class=5) == []
    initech = service.ids["customers"]["initech"]
    async with database.connection(OPERATOR) as connection:
        (row,), _ = await list_newest(connection, (initech, "production"), RequestFilter(), before=2**62, limit=1)
        assert await read_request(connection, (initech, "production"), row.id) == row
        assert await read_request(connection, (acme, "production"), row.id) is None
        assert await read_request(connection, (initech, "staging"), row.id) is None


async def test_pages_look_at_a_bounded_number_of_requests(
    service: Any, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "LOOKED_AT", 3)
    service.sql(
        """
        INSERT INTO api_requests (customer_id, environment, at, key_id, method, route, path, status, duration_us, request_id)
        SELECT 9, 'production', clock_now(), 1, CASE WHEN n % 2 = 1 THEN 'GET' ELSE 'POST' END, '/me', NULL,
               CASE WHEN n IN (1, 2, 10) THEN 500 ELSE 200 END, 1, 'r' || n
        FROM generate_series(1, 10) AS n
        """
    )

    async def pages(**filters: Any) -> list[list[str]]:
        found, before = list[list[str]](), 2**62
        async with database.connection(for_customer(9, "production")) as connection:
            while before is not None:
                requests, before = await list_newest(
                    connection, (9, "production"), RequestFilter(**filters), before=before, limit=2
                )
                found.append([one.request_id for one in requests])
        return found

    try:
        assert await pages(status_class=5) == [["r10"], [], ["r2"], ["r1"]]
        assert await pages(status_class=5, method="POST") == [["r10"], ["r2"]]
        assert await pages(status_class=2, method="GET") == [["r9", "r7"], ["r5", "r3"], []]
        assert await pages(method="POST") == [["r10", "r8"], ["r6", "r4"], ["r2"]]
        assert await pages(key_id=2) == [[]]
    finally:
        service.sql("DELETE FROM api_requests WHERE customer_id = 9")


async def test_each_request_since_an_instant_comes_once(service: Any, database: Database) -> None:
    """Also where pieces end among requests of one instant."""
    service.sql(
        """
        INSERT INTO api_requests (customer_id, environment, at, key_id, method, route, path, status, duration_us, request_id)
        SELECT customer, 'production', '2040-01-01Z', 1, 'GET', '/me', NULL, 200, 1, 'r' || n
        FROM generate_series(1, 2001) AS n, unnest('{8, 9}'::int[]) AS customer
        """
    )
    start = datetime(2040, 1, 1, tzinfo=UTC)
    for customer, count in ((8, 2001), (None, 4002)):
        async with database.connection(OPERATOR) as connection:
            pieces = [piece async for piece in list_since(connection, start, customer, RequestFilter())]
        ids = [row.id for piece in pieces for row in piece]
        assert (len(ids), len(set(ids))) == (count, count)
    service.sql("DELETE FROM api_requests WHERE customer_id IN (8, 9)")


@pytest.mark.parametrize(
    ("filters", "index"),
    [
        ({}, "api_requests_pkey"),
        ({"status_class": 5}, "api_requests_pkey"),
        ({"method": "DELETE"}, "api_requests_of_method"),
        ({"key_id": 2}, "api_requests_of_key"),
        ({"route": "/products/{id}"}, "api_requests_of_route"),
        ({"path": "/products/9"}, "api_requests_of_path"),
        ({"request_id": "r7"}, "api_requests_by_request_id"),
        ({"status_class": 5, "method": "GET", "path": "/products/9"}, "api_requests_of_path"),
    ],
)
async def test_an_index_serves_each_filter(service: Any, filters: dict[str, Any], index: str) -> None:
    service.sql(
        """
        INSERT INTO api_requests (customer_id, environment, at, key_id, method, route, path, status, duration_us, request_id)
        SELECT 7, 'production', clock_now() - n * interval '1 second', 1, 'GET', '/me', NULL, 200, 1, 'r' || n FROM generate_series(1, 5000) AS n
        WHERE NOT EXISTS (SELECT FROM api_requests WHERE customer_id = 7)
        """
    )
    service.sql("ANALYZE api_requests")
    wanted = RequestFilter(**filters)
    async with closing(asyncpg.connect(service.database_url)) as connection, connection.transaction():
        await connection.execute(
            f"SET LOCAL ROLE {Role.APP}; SET LOCAL largesse.customers = '{{7}}'; SET LOCAL largesse.environments = '{{production}}'"
        )
        for statement in (newest(wanted), last(wanted)):
            plan = await connection.fetch(f"EXPLAIN {statement}", 7, "production", 2**62, 50, *wanted.values, LOOKED_AT)
            text = "\n".join(row[0] for row in plan)
            assert index in text
            assert "Seq Scan on api_requests" not in text
        assert "Sort" not in text, "it would sort all requests with the same value"


@pytest.mark.skipif(IS_DISTRIBUTED, reason="the rows are read on a node")
@pytest.mark.parametrize("filters", [{}, {"method": "GET"}, {"key_id": 1}, {"route": "/me"}, {"path": "/products/9"}])
async def test_a_page_reads_its_own_requests_alone(database_url: str, filters: dict[str, Any]) -> None:
    """A page of a filter that most requests of a large customer pass read and sorted all of them."""
    so_far = "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'api_requests'"
    async with closing(asyncpg.connect(database_url)) as connection:
        await connection.execute(
            """
            INSERT INTO api_requests (customer_id, environment, at, key_id, method, route, path, status, duration_us, request_id)
            SELECT CASE WHEN n <= 3000 THEN 7 ELSE n END, 'production', clock_now(), 1, 'GET', '/me', '/products/9', 200, 1, 'r' || n
            FROM generate_series(1, 9000) AS n;
            ANALYZE api_requests
            """
        )
        async with connection.transaction():
            await connection.execute(
                f"SET LOCAL ROLE {Role.APP}; SET LOCAL largesse.customers = '{{7}}'; SET LOCAL largesse.environments = '{{production}}'"
            )
            before = await connection.fetchval(so_far)
            for _ in range(7):  # the last ones by the plan for any arguments
                found, _ = await list_newest(
                    connection, (7, "production"), RequestFilter(**filters), before=2**62, limit=50
                )
                assert len(found) == 50
            assert await connection.fetchval(so_far) - before == 7 * 51


def test_requests_are_removed_after_thirty_days() -> None:
    (old,) = [one for one in RETENTION if one.table == "api_requests"]
    assert (old.age, old.days, old.done) == ("at", DAYS, "true")
