"""What customers and members of staff see of deliveries."""

import json

import pytest
from tests.distributed import IS_DISTRIBUTED
from tests.plans import ROUNDED, rows_read
from tests.webhooks.conftest import Receiver, World, make_principal

from largesse.base.errors import InvalidRequest, NotFound
from largesse.db.roles import Role
from largesse.db.scope import OPERATOR, for_customer
from largesse.webhooks import delivery_store, store


async def listed(world: World, subscription_id: object, **arguments: int) -> list[delivery_store.DeliveryRecord]:
    async with world.database.connection(OPERATOR) as connection:
        return await delivery_store.list_deliveries(connection, world.principal, subscription_id, **arguments)  # type: ignore[arg-type]


async def test_deliveries_are_listed_with_their_attempts_newest_first(world: World, receiver: Receiver) -> None:
    subscription = await world.subscribe(receiver.url())
    receiver.answers(503, body=b"\xff out \0of order")
    await world.send()
    receiver.answers(200, body=b"thanks")
    await world.advance(5)
    await world.send()
    second, first = await listed(world, subscription.id)
    assert (first.state, second.state) == ("delivered", "delivered")
    assert (first.event, first.order_id, first.next_attempt_at, first.attempts_left) == ("order.created", 1, None, 0)
    assert first.finished_at is not None
    one, two = first.attempts
    assert (one.number, one.status, one.error, one.answer) == (1, 503, None, "\ufffd out \ufffdof order")
    assert (two.number, two.status, two.answer) == (2, 200, "thanks")
    assert len(second.attempts) == 1
    assert [d.id for d in await listed(world, subscription.id, limit=1)] == [second.id]
    assert [d.id for d in await listed(world, subscription.id, before=second.id)] == [first.id]


async def test_an_attempt_without_a_status_tells_its_error(world: World) -> None:
    subscription = await world.subscribe("http://127.0.0.1:1/")
    await world.send()
    [delivery] = await listed(world, subscription.id)
    [attempt] = delivery.attempts
    assert (attempt.status, attempt.error, attempt.answer) == (None, "connect", None)
    assert (delivery.state, delivery.attempts_left) == ("pending", 11)
    assert delivery.next_attempt_at is not None


@pytest.mark.parametrize("status", [200, 404])
async def test_a_finished_delivery_is_made_again_with_all_its_attempts(
    world: World, receiver: Receiver, status: int
) -> None:
    subscription = await world.subscribe(receiver.url())
    receiver.answers(status)
    [body] = await world.send()
    [delivery] = await listed(world, subscription.id)
    receiver.answers(500)
    async with world.database.transaction(OPERATOR) as connection:
        again = await delivery_store.redeliver(connection, world.principal, subscription.id, delivery.id)
    assert (again.state, again.attempts_left, len(again.attempts)) == ("pending", 12, 1)
    await world.deliver()
    assert [got.body for got in receiver.got] == [body, body]
    assert {got.headers["webhook-id"] for got in receiver.got} == {str(delivery.id)}
    [delivery] = await listed(world, subscription.id)
    assert [attempt.number for attempt in delivery.attempts] == [1, 2]
    assert delivery.attempts_left == 11
    assert delivery.next_attempt_at is not None
    assert 1 <= (delivery.next_attempt_at - delivery.attempts[1].started_at).total_seconds() <= 6


async def test_a_pending_delivery_is_made_now_and_keeps_its_count(world: World, receiver: Receiver) -> None:
    subscription = await world.subscribe(receiver.url())
    receiver.answers(500)
    await world.send()
    [delivery] = await listed(world, subscription.id)
    async with world.database.transaction(OPERATOR) as connection:
        assert (
            await delivery_store.redeliver(connection, world.principal, subscription.id, delivery.id)
        ).attempts_left == 11
    await world.deliver()
    assert len(receiver.got) == 2
    assert (await listed(world, subscription.id))[0].attempts_left == 10


async def test_a_sample_is_signed_and_is_no_order(world: World, receiver: Receiver) -> None:
    subscription = await world.subscribe(receiver.url())
    await world.subscribe(receiver.url("/other"))
    async with world.database.transaction(OPERATOR) as connection:
        sample = await delivery_store.insert_sample(connection, world.principal, subscription.id)
    assert (sample.state, sample.order_id) == ("pending", None)
    await world.deliver()
    [got] = receiver.got
    assert got.path == "/hook"
    assert got.is_signed_with(subscription.secret)
    record = json.loads(got.body)
    assert (record["id"], record["event"], record["customerId"]) == (0, "order.created", world.principal.customer_id)
    assert len(record) == 18, "the members of an order record"


async def test_an_event_of_another_release_has_no_sample(world: World, receiver: Receiver) -> None:
    subscription = await world.subscribe(receiver.url())
    await world.database.execute(OPERATOR, "UPDATE webhook_subscriptions SET event = 'order.lost'")
    async with world.database.transaction(OPERATOR) as connection:
        with pytest.raises(InvalidRequest, match=r"`order\.lost` is no longer sent"):
            await delivery_store.insert_sample(connection, world.principal, subscription.id)
    assert await listed(world, subscription.id) == []


async def test_a_delivery_is_not_found_at_another_subscription(world: World, receiver: Receiver) -> None:
    subscription, other = [await world.subscribe(receiver.url()) for _ in range(2)]
    await world.send()
    [delivery] = await listed(world, subscription.id)
    async with world.database.transaction(OPERATOR) as connection:
        with pytest.raises(NotFound):
            await delivery_store.redeliver(connection, world.principal, other.id, delivery.id)


async def failing(world: World, customer_id: int | None = None) -> list[delivery_store.FailingWebhook]:
    async with world.database.connection(OPERATOR) as connection:
        return await delivery_store.list_failing(connection, customer_id)


async def test_webhooks_are_listed_while_they_fail_and_with_what_failed_for_good(
    world: World, receiver: Receiver
) -> None:
    async with world.database.transaction(OPERATOR) as connection:
        other = await make_principal(connection, "globex")
    mine, theirs = await world.subscribe(receiver.url()), await world.subscribe(receiver.url("/other"), other)
    receiver.answers(200)
    await world.send()
    assert await failing(world) == []
    receiver.answers(503)
    await world.place()
    await world.send(principal=other)
    assert {one.id for one in await failing(world)} == {mine.id, theirs.id}
    (one,) = await failing(world, world.principal.customer_id)
    assert (one.id, one.is_failing, one.failed, one.environment) == (mine.id, True, 0, "production")
    receiver.answers(404)
    await world.advance(60)
    await world.deliver()
    assert await failing(world) == []
    (one,) = await failing(world, world.principal.customer_id)
    assert (one.id, one.is_failing, one.failed) == (mine.id, False, 1)
    async with world.database.transaction(OPERATOR) as connection:
        assert await delivery_store.redeliver_failed(connection, world.principal, mine.id) == 1
    assert await failing(world, world.principal.customer_id) == []


async def test_for_a_subscription_without_deliveries_none_of_others_are_read(world: World) -> None:
    busy = await world.subscribe("https://hooks.example/busy")
    for number in range(3):
        await world.subscribe(f"https://hooks.example/idle-{number}")
    async with world.database.connection(OPERATOR) as connection:
        await connection.execute(
            """
            INSERT INTO deliveries (customer_id, subscription_id, event, sample, state, due_at, created_at)
            SELECT $1, $2, 'order.created', '', 'delivered', now(), now() FROM generate_series(1, 5000)
            """,
            world.principal.customer_id,
            busy.id,
        )
        await connection.execute(
            """
            INSERT INTO subscription_queues (customer_id, subscription_id, due_at, failing)
            SELECT customer_id, id, now(), true FROM webhook_subscriptions
            """
        )
        await connection.execute("ANALYZE deliveries, subscription_queues, webhook_subscriptions")
        listed = Role.APP, "deliveries", store._SUBSCRIPTIONS_WITH_STATE, world.principal.customer_id, "production"
        assert await rows_read(connection, *listed) == pytest.approx(1, abs=ROUNDED * 4)
        of_all = (
            Role.OFFICE,
            "deliveries",
            delivery_store._OF_ALL,
            delivery_store.MOST_REDELIVERED,
            *delivery_store.FIRST,
            51,
        )
        assert await rows_read(connection, *of_all) == 0


@pytest.mark.skipif(IS_DISTRIBUTED, reason="the rows are read on a node")
async def test_lists_read_their_own_deliveries_among_many_small_webhooks(world: World) -> None:
    # Reads the one in the middle: for an id near the largest, the planner reads rows too, to learn the largest.
    mine = sorted([(await world.subscribe(f"https://hooks.example/{number}")).id for number in range(5)])
    async with world.database.connection(OPERATOR) as connection:
        await connection.execute("SET session_replication_role = replica")  # the webhooks of others are not needed
        await connection.execute(
            """
            INSERT INTO deliveries (customer_id, subscription_id, event, sample, state, due_at, created_at)
            SELECT $1, ($2::uuid[])[1 + n % 5], 'order.created', ''::bytea, 'delivered', now(), now() FROM generate_series(1, 20000) AS n
            UNION ALL
            SELECT 1000 + n % 2000, md5((n % 2000)::text)::uuid, 'order.created', ''::bytea, 'delivered', now(), now() FROM generate_series(1, 20000) AS n
            """,
            world.principal.customer_id,
            mine,
        )
        await connection.execute(
            """
            INSERT INTO delivery_attempts (customer_id, delivery_id, number, started_at, duration_ms, status)
            SELECT customer_id, id, n, now(), 1, 200 FROM deliveries, generate_series(1, 2) AS n
            """
        )
        await connection.execute("RESET session_replication_role; ANALYZE deliveries, delivery_attempts")
    read = "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'deliveries'"
    read_attempts = read.replace("'deliveries'", "'delivery_attempts'")
    async with world.database.transaction(for_customer(world.principal.customer_id, "production")) as connection:
        # Also what the connection read above, if PostgreSQL has not reported it yet.
        before, attempts_before = await connection.fetchval(read), await connection.fetchval(read_attempts)
        assert len(await store.list_subscription_records(connection, world.principal)) == 5
        assert await connection.fetchval(read) - before == 5
        ids = [
            number
            for (number,) in await connection.fetch(
                "SELECT id FROM deliveries WHERE subscription_id = $1 ORDER BY id", mine[2]
            )
        ]
        before = await connection.fetchval(read)
        for _ in range(7):  # the last ones by the plan for any arguments
            page = await delivery_store.list_deliveries(
                connection, world.principal, mine[2], before=ids[1000], limit=10
            )
            assert [one.id for one in page] == ids[999:989:-1]
            assert [[one.number for one in delivery.attempts] for delivery in page] == 10 * [[1, 2]]
        assert await connection.fetchval(read) - before == 7 * 10
        assert await connection.fetchval(read_attempts) - attempts_before == 7 * 20


@pytest.mark.skipif(IS_DISTRIBUTED, reason="the rows are read on a node")
async def test_failed_deliveries_are_found_without_reading_those_that_arrived(world: World) -> None:
    mine = await world.subscribe("https://hooks.example/busy")
    async with world.database.connection(OPERATOR) as connection:
        await connection.execute(
            """
            INSERT INTO deliveries (customer_id, subscription_id, event, sample, state, due_at, attempts, created_at)
            SELECT $1, $2, 'order.created', '', CASE WHEN n % 1000 = 0 THEN 'exhausted' WHEN n % 1000 = 1 THEN 'pending' ELSE 'delivered' END,
                clock_now() + interval '1 hour', 1, now()
            FROM generate_series(1, 5000) AS n
            """,
            world.principal.customer_id,
            mine.id,
        )
        await connection.execute("ANALYZE deliveries")
        again = Role.APP, "deliveries", delivery_store._REDELIVER_FAILED, world.principal.customer_id, mine.id
        assert await rows_read(connection, *again, 7) <= 5 + 5 + 7 * 2
        async with connection.transaction():
            assert await delivery_store.redeliver_failed(connection, world.principal, mine.id) == 3
