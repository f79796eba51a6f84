import asyncio
import itertools
from ipaddress import ip_network
from uuid import uuid4

import pytest
from aiohttp import web
from msgspec.structs import replace
from tests.webhooks.conftest import LOOPBACK, Receiver, World, answering, make_principal, no_names
from tests.webhooks.nameserver import name_server
from tests.webhooks.receivers import broken_receiver

from largesse.db.scope import OPERATOR, WORKER
from largesse.webhooks import resolver
from largesse.webhooks.deliverer import Deliverer
from largesse.webhooks.resolver import Resolver
from largesse.webhooks.store import CANCELLED_AT_ONCE, cancel_rest, delete_subscription, insert_subscription
from largesse.webhooks.targets import check_target, parse_target
from largesse.webhooks.transport import HttpTransport


async def test_a_delivery_is_the_signed_body_with_the_headers_of_the_spec(world: World, receiver: Receiver) -> None:
    subscription = await world.subscribe(receiver.url("/hook?a=%2F"))
    [body] = await world.send()
    [got] = receiver.got
    assert got.body == body
    assert got.path == "/hook?a=%2F"
    assert got.is_signed_with(subscription.secret)
    assert got.headers["X-Service-Event"] == "order.created"
    assert got.headers["Content-Type"] == "application/json"
    assert got.headers["User-Agent"].startswith("Largesse/")
    assert got.headers["webhook-id"] == str((await world.delivery())["id"])
    assert got.headers["webhook-timestamp"].isdigit()
    assert await world.states() == ["delivered"]
    assert not await world.deliverer.step(failing=False)


async def test_every_subscription_of_the_customer_and_environment_hears_and_no_other(
    world: World, receiver: Receiver
) -> None:
    async with world.database.connection(OPERATOR) as connection:
        other = await make_principal(connection, "other")
    staging = replace(world.principal, environment="staging")
    for path, principal in (("/1", world.principal), ("/2", world.principal), ("/3", staging), ("/4", other)):
        await world.subscribe(receiver.url(path), principal)
    await world.send(3)
    assert sorted(got.path for got in receiver.got) == ["/1"] * 3 + ["/2"] * 3


@pytest.mark.parametrize(
    ("status", "headers", "state", "due_in_s"),
    [
        (200, {}, "delivered", None),
        (204, {}, "delivered", None),
        (299, {}, "delivered", None),
        (400, {}, "dropped", None),
        (404, {}, "dropped", None),
        (408, {"Retry-After": "9"}, "dropped", None),
        (418, {}, "dropped", None),
        (500, {}, "pending", (3.2, 4.8)),
        (503, {}, "pending", (3.2, 4.8)),
        (599, {}, "pending", (3.2, 4.8)),
        (429, {}, "pending", (3.2, 4.8)),
        (429, {"Retry-After": "60"}, "pending", (60, 60)),
        (503, {"Retry-After": "1"}, "pending", (3.2, 4.8)),
        (429, {"Retry-After": "99999999999"}, "pending", (21600, 21600)),
        (429, {"Retry-After": "soon"}, "pending", (3.2, 4.8)),
        (429, {"Retry-After": "Thu, 01 Jan 99999999999999999999 00:00:00 GMT"}, "pending", (3.2, 4.8)),
        (429, {"Retry-After": "Thu, 01 Jan 2099 00:00:00 +99999999999999999999"}, "pending", (3.2, 4.8)),
        (429, {"Retry-After": "Thu, 01 Jan 2099 00:00:00 GMT"}, "pending", (21600, 21600)),
        (429, {"Retry-After": "Thu, 01 Jan 1970 00:00:00 GMT"}, "pending", (3.2, 4.8)),
        (300, {}, "pending", (3.2, 4.8)),
        (304, {}, "pending", (3.2, 4.8)),
        (307, {"Location": "/elsewhere"}, "pending", (3.2, 4.8)),
        (301, {"Location": "http://10.0.0.1/"}, "pending", (3.2, 4.8)),
    ],
)
async def test_the_table_of_receiver_answers(
    world: World,
    receiver: Receiver,
    status: int,
    headers: dict[str, str],
    state: str,
    due_in_s: tuple[float, float] | None,
) -> None:
    await world.subscribe(receiver.url())
    receiver.answers(status, headers)
    await world.send()
    delivery = await world.delivery()
    assert delivery["state"] == state
    assert [got.path for got in receiver.got] == ["/hook"], "redirects are never followed"
    assert (delivery["finished_at"] is None) == (state == "pending")
    if due_in_s is not None:
        shortest, longest = due_in_s
        assert shortest - 2 <= delivery["due_in_s"] <= longest


async def test_410_deletes_the_subscription_and_cancels_what_is_pending(world: World, receiver: Receiver) -> None:
    await world.subscribe(receiver.url("/gone"))
    await world.subscribe(receiver.url("/other"))

    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=410 if request.path == "/gone" else 200)

    receiver.answer = answer
    await world.send(200)
    heard = [got.path for got in receiver.got]
    assert heard.count("/other") == 200
    assert 1 <= heard.count("/gone") <= 4, "only what was in flight already"
    assert await world.database.fetchval(OPERATOR, "SELECT count(*) FROM webhook_subscriptions") == 1
    assert sorted(await world.states()) == ["cancelled"] * 200 + ["delivered"] * 200
    await world.send()
    assert [got.path for got in receiver.got][-1] == "/other"


async def test_deleting_a_subscription_cancels_what_is_pending(world: World, receiver: Receiver) -> None:
    subscription = await world.queue(receiver.url(), 2)
    async with world.database.connection(OPERATOR) as connection:
        await delete_subscription(connection, world.principal, subscription.id)
    await world.deliver()
    assert receiver.got == []
    assert await world.states() == ["cancelled"] * 2


async def test_of_a_subscription_with_many_deliveries_the_worker_cancels_those_that_its_deletion_does_not(
    world: World, receiver: Receiver
) -> None:
    other = await world.queue(receiver.url("/other"))
    subscription = await world.queue(receiver.url())
    add = """
        INSERT INTO deliveries (customer_id, subscription_id, event, sample, due_at, created_at)
        SELECT $1, $2, 'order.created', '', clock_now(), clock_now() FROM generate_series(1, $3)
    """
    await world.database.execute(OPERATOR, add, world.principal.customer_id, subscription.id, 2 * CANCELLED_AT_ONCE)
    left = "SELECT subscription_id, count(*) FROM deliveries WHERE state = 'pending' GROUP BY subscription_id"
    async with world.database.connection(OPERATOR) as connection:
        await delete_subscription(connection, world.principal, subscription.id)
        assert dict(await connection.fetch(left)) == {other.id: 2, subscription.id: CANCELLED_AT_ONCE + 1}
    async with world.database.connection(WORKER) as connection:
        assert [await cancel_rest(connection) for _ in range(3)] == [True, True, False]
        assert dict(await connection.fetch(left)) == {other.id: 2}


async def test_a_dead_receiver_is_tried_12_times_on_schedule(world: World, receiver: Receiver) -> None:
    await world.subscribe(receiver.url())
    receiver.answers(500)
    await world.send()
    waits = []
    while (delivery := await world.delivery())["state"] == "pending":
        before = len(receiver.got)
        due_in_s = delivery["due_in_s"]
        assert isinstance(due_in_s, float)
        waits.append(due_in_s)
        await world.advance(due_in_s - 1)
        await world.deliver()
        assert len(receiver.got) == before, "not before its time"
        await world.advance(1)
        await world.deliver()
    assert len(receiver.got) == 12
    assert delivery["state"] == "exhausted"
    expected = [4, 16, 64, 256, 1024, 4096, 16384, 21600, 21600, 21600, 21600]
    for wait, middle in zip(waits, expected, strict=True):
        assert 0.8 * middle - 2 <= wait <= min(1.2 * middle, 21600)
    started = [
        row["started_at"]
        for row in await world.database.fetch(OPERATOR, "SELECT started_at FROM delivery_attempts ORDER BY number")
    ]
    for (earlier, later), middle in zip(itertools.pairwise(started), expected, strict=True):
        assert 0.8 * middle - 1 <= (later - earlier).total_seconds() <= 1.2 * middle + 2


async def test_attempts_keep_the_first_2_kib_of_the_answer(world: World, receiver: Receiver) -> None:
    await world.subscribe(receiver.url())
    receiver.answers(500, body=b"x" * 3000)
    await world.send()
    attempt = await world.database.fetchrow(OPERATOR, "SELECT * FROM delivery_attempts")
    assert attempt is not None
    assert (attempt["number"], attempt["status"], attempt["error"]) == (1, 500, None)
    assert attempt["answer"] == b"x" * 2048


@pytest.mark.parametrize(
    ("kind", "error"),
    [("hangs", "timeout"), ("drips headers", "timeout"), ("drips the body", "timeout"), ("resets", "connection_lost"),
     ("talks nonsense", "bad_answer"), ("is not there", "connect"), ("has a bad certificate", "tls"),
     ("has no such name", "dns"), ("drips its handshake", "timeout"), ("says nothing of its certificate", "timeout")],
)  # fmt: skip
async def test_a_broken_receiver_is_a_failure_to_retry(world: World, kind: str, error: str) -> None:
    async with HttpTransport(LOOPBACK, 0.5, no_names) as transport, broken_receiver(kind) as url:
        world.deliverer = Deliverer(world.database, world.vault, transport, lambda: None)
        await world.database.execute(OPERATOR, "UPDATE subscription_queues SET due_at = 'infinity'")
        await world.subscribe(url)
        await world.send()
        await world.deliverer.close()
    delivery = await world.delivery()
    assert delivery["state"] == "pending"
    assert await world.database.fetchval(OPERATOR, "SELECT error FROM delivery_attempts") == error


async def test_an_endless_answer_is_cut_off_and_its_status_counts(world: World, receiver: Receiver) -> None:
    sent = 0

    async def endless(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse(status=200)
        await response.prepare(request)
        while True:
            await response.write(b"x" * 65536)
            sent += 65536

    receiver.answer = endless
    await world.subscribe(receiver.url())
    await world.send()
    assert await world.states() == ["delivered"]
    assert sent < 50_000_000


async def test_a_hanging_receiver_delays_nobody_and_has_at_most_4_in_flight(world: World, receiver: Receiver) -> None:
    hanging = Receiver()
    await hanging.start()
    hanging.answer = hanging.hang
    for _ in range(3):
        await world.subscribe(hanging.url())
    await world.queue(receiver.url(), 100)
    await world.deliverer.step(failing=False)
    async with asyncio.timeout(4):
        while len(receiver.got) < 100:
            await asyncio.sleep(0.01)
            await world.deliverer.step(failing=False)
    assert hanging.most_in_flight == 12, "4 for each of the three"
    hanging.released.set()
    await world.deliver()
    await hanging.close()
    assert set(await world.states()) == {"delivered"}


@pytest.mark.slow
async def test_names_that_hang_delay_no_other_customer(
    world: World, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit in ("LONGEST_S", "_TRY_S"):
        monkeypatch.setattr(resolver, limit, 100.0)  # longer than the test waits for anything
    async with world.database.connection(OPERATOR) as connection:
        other = await make_principal(connection, "other")
    for number in range(100):
        await world.subscribe(f"http://{number}.silent.example/")
    await world.place(4)
    await world.fan_out()
    async with name_server({"good.example": ["127.0.0.1"]}) as server:
        names = Resolver(nameservers=[server.address])
        async with HttpTransport(LOOPBACK, 100.0, names.look_up) as transport:
            world.deliverer = Deliverer(world.database, world.vault, transport, lambda: None)
            while await world.deliverer.step(failing=False):
                pass
            await world.subscribe(receiver.url().replace("127.0.0.1", "good.example"), other)
            await world.place(20, other)
            await world.fan_out()
            async with asyncio.timeout(30):
                while len(receiver.got) < 20:
                    await world.deliverer.step(failing=False)
                    await asyncio.sleep(0.01)
            assert (
                await world.database.fetchval(OPERATOR, "SELECT count(*) FROM delivery_attempts WHERE error = 'dns'")
                == 0
            )
            world.deliverer.drain()
            await names.close()
            await world.deliverer.close()
    assert sorted(await world.states()) == ["delivered"] * 20 + ["pending"] * 400
    assert await world.database.fetchval(OPERATOR, "SELECT count(*) FROM delivery_attempts WHERE error = 'dns'") == 400


@pytest.mark.long
async def test_the_time_out_counts_from_before_the_look_up(receiver: Receiver) -> None:
    receiver.answer = receiver.hang
    async with name_server({"slow.example": ["127.0.0.1"]}, delay_s=1.0) as server:
        names = Resolver(nameservers=[server.address])
        async with HttpTransport(LOOPBACK, 1.5, names.look_up) as transport:
            answer = await transport.post(receiver.url().replace("127.0.0.1", "slow.example"), b"{}", {}, 1)
            silent = await transport.post("http://a.silent.example/", b"{}", {}, 1)
        await names.close()
    assert len(receiver.got) == 1, "it was heard, in what the look-up left of the time"
    for one in (answer, silent):
        assert one.error == "timeout"
        assert 1.4 < one.duration_s < 2.4


@pytest.mark.parametrize("inside", ["127.0.0.1", "::1"])
async def test_a_name_that_turns_inward_is_never_dialled(
    world: World, monkeypatch: pytest.MonkeyPatch, inside: str
) -> None:
    """Public when the subscription is made, and an address inside, with a listener at it, when it is dialled."""
    connections = 0

    def connected(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        writer.close()

    listener = await asyncio.start_server(connected, inside, 0)
    port = listener.sockets[0].getsockname()[1]
    loop = asyncio.get_running_loop()
    real_connect = loop.create_connection

    def connect(factory: object, host: str, asked: int, **more: object) -> object:
        there = port if asked == 443 else asked  # the target's is the listener's; a database is dialled, too
        return real_connect(factory, host, there, **more)  # type: ignore[call-overload]

    monkeypatch.setattr(loop, "create_connection", connect)
    target = parse_target("https://rebinds.example.com/", ())
    await check_target(target, (), answering("1.1.1.1"), world.principal.customer_id)
    async with world.database.connection(OPERATOR) as connection:
        await insert_subscription(connection, world.principal, world.vault, target, "order.created")
    errors = []
    for allowed in ((), (ip_network(inside),)):
        async with HttpTransport(allowed, 2.0, answering(inside)) as transport:
            world.deliverer = Deliverer(world.database, world.vault, transport, lambda: None)
            await world.send()
            await world.deliverer.close()
        errors.append((await world.database.fetch(OPERATOR, "SELECT error FROM delivery_attempts"), connections))
        await world.advance(60)
    listener.close()
    await listener.wait_closed()
    (refused, dialled), (_, dialled_when_allowed) = errors
    assert [row["error"] for row in refused] == ["forbidden_address"]
    assert dialled == 0
    assert dialled_when_allowed > 0, "the listener would have heard"


async def test_a_target_that_is_no_longer_allowed_is_not_dialled(receiver: Receiver) -> None:
    async with HttpTransport((), 2.0, no_names) as transport:
        assert (await transport.post(receiver.url(), b"{}", {}, 1)).error == "forbidden_target"
    assert receiver.got == []


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "fe80::1", "64:ff9b::a00:1"])
async def test_no_inner_address_is_dialled(address: str) -> None:
    async with HttpTransport((), 2.0, answering(address)) as transport:
        answer = await transport.post("https://example.com/", b"{}", {}, 1)
    assert answer.error == "forbidden_address"


async def test_allowed_networks_do_not_open_plain_http_to_the_world() -> None:
    async with HttpTransport(LOOPBACK, 2.0, answering("1.1.1.1")) as transport:
        assert (await transport.post("http://example.com/", b"{}", {}, 1)).error == "forbidden_address"


async def test_a_queue_whose_secret_does_not_open_harms_no_other(world: World, receiver: Receiver) -> None:
    await world.subscribe(receiver.url("/good"))
    broken = await world.subscribe(receiver.url("/bad"))
    await world.database.execute(
        OPERATOR,
        "UPDATE webhook_subscriptions SET sealed_secret = $2 WHERE id = $1",
        broken.id,
        world.vault.webhooks.seal(b"whsec_other", uuid4().bytes),
    )
    await world.send()
    assert [got.path for got in receiver.got] == ["/good"]
    assert sorted(await world.states()) == ["delivered", "pending"]


async def test_a_subscription_to_several_events_gets_each_once(world: World, receiver: Receiver) -> None:
    one = await world.subscribe(receiver.url("/one"))
    async with world.database.connection(OPERATOR) as connection:
        target = parse_target(receiver.url("/several"), LOOPBACK)
        names = ["gift.sent", "order.created"]
        several = await insert_subscription(connection, world.principal, world.vault, target, names)
    bodies = await world.place(2)
    await world.database.execute(
        OPERATOR,
        """
        INSERT INTO events (order_id, customer_id, environment, event, line_number, body, created_at)
        SELECT 1, $1, 'production', event, 1, convert_to(event, 'UTF8'), clock_now() FROM unnest($2::text[]) AS event
        """,
        world.principal.customer_id,
        ["gift.sent", "gift.opened"],
    )
    await world.deliver()
    got = {path: sorted(one.body for one in receiver.got if one.path == path) for path in ("/one", "/several")}
    assert got == {"/one": sorted(bodies), "/several": sorted([*bodies, b"gift.sent"])}
    for one_got in receiver.got:
        assert one_got.is_signed_with((one if one_got.path == "/one" else several).secret)
    assert {one.headers["X-Service-Event"] for one in receiver.got if one.body == b"gift.sent"} == {"gift.sent"}
