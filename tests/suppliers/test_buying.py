"""Gifts that are bought from a supplier over real HTTP: each line gets one voucher, whatever the supplier does."""

import asyncio
from typing import Any

import pytest
import structlog
from tests.suppliers.conftest import SETTLED, Opened, claim, pool, states, verified, work
from tests.suppliers.conftest import WORLD as WORLD  # noqa: PLC0414 - the service's
from tests.suppliers.server import Bought as Purchase
from tests.suppliers.server import SupplierServer, describe, serving
from tests.waiting import until

from largesse.db.scope import OPERATOR, WORKER
from largesse.fulfilment.tasks import expire_late
from largesse.fulfilment.vouchers import read_allocated
from largesse.suppliers.buyer import Buyer, open_lanes

ONE = pytest.mark.parametrize(
    ("behaviour", "attempts"),
    [
        ("well", 1), ("pending", 1), ("lose_answer", 1), ("time_out", 1), ("no_json", 1), ("foreign", 1), ("malformed", 1),
        ("expired", 1), ("redirect", 1), ("huge", 1),
    ],
)  # fmt: skip


@pytest.mark.sampled(9)
@ONE
async def test_a_line_gets_its_voucher_and_it_is_bought_once(
    service: Any, opened: Opened, behaviour: str, attempts: int
) -> None:
    server = SupplierServer({behaviour: 1}, prefix=f"ONE-{behaviour}")
    with serving(server):
        async with pool(service) as (database, vault):
            buyer = Buyer(database, vault, opened("cards", server))
            with structlog.testing.capture_logs() as logs:
                (key,) = await claim(database, service, "bought", 1)
                await work([buyer], database, SETTLED)
            async with database.connection(WORKER) as connection:
                voucher = await read_allocated(connection, vault, key)
            assert voucher is not None
            assert (voucher.voucher.pin, voucher.voucher.use_by) == ("1234", None)
            (order,) = server.orders.values()
            assert voucher.voucher.number == order.number
            assert sum(server.order_calls.values()) == attempts
            assert order.number not in str(logs)
            refused = [one["reason"] for one in logs if one["event"] == "supplier.voucher_refused"]
            assert refused == [f"{behaviour}_voucher"] * (behaviour in {"foreign", "malformed", "expired"})
            row = await database.fetchrow(
                WORKER, "SELECT state, cost_minor, cost_currency FROM supplier_orders ORDER BY id DESC LIMIT 1"
            )
            assert row is not None
            assert tuple(row) == ("delivered", 900, "GBP")
            assert (await verified(database, vault)).findings == []


@pytest.mark.parametrize(("said", "kept"), [(912.5, 912), (912.51, 913), (0.25, 0)])
async def test_a_cost_finer_than_the_smallest_unit_is_rounded(
    service: Any, opened: Opened, said: float, kept: int
) -> None:
    server = SupplierServer({"well": 1}, prefix=f"FINE-{said}")
    server.cost = said  # type: ignore[assignment]
    with serving(server):
        async with pool(service) as (database, vault):
            await claim(database, service, "bought", 1)
            await work([Buyer(database, vault, opened("cards", server))], database, SETTLED)
            row = await database.fetchrow(
                WORKER, "SELECT state, cost_minor, cost_currency FROM supplier_orders ORDER BY id DESC LIMIT 1"
            )
            assert row is not None
            assert tuple(row) == ("delivered", kept, "GBP")
            assert (await verified(database, vault)).findings == []


async def test_a_refusal_goes_on_to_the_next_supplier_and_then_to_stock(service: Any, opened: Opened) -> None:
    first, second = SupplierServer({"refuse": 1}), SupplierServer({"well": 1}, prefix="SECOND", cost=700)
    with serving(first), serving(second):
        async with pool(service) as (database, vault):
            buyers = [
                Buyer(database, vault, opened("cards", first)), Buyer(database, vault, opened("other", second)),
            ]  # fmt: skip
            await claim(database, service, "bought", 3)
            await work(buyers, database, SETTLED)
            assert (len(first.orders), len(second.orders)) == (0, 3)
            second.behaviours = {"refuse": 1}
            (key,) = await claim(database, service, "bought", 1)
            await work(buyers, database, SETTLED)
            waits = await database.fetch(WORKER, "SELECT order_id, number FROM voucher_waits")
            assert [tuple(row) for row in waits] == [tuple(key)[1:]]
            assert (await verified(database, vault)).findings == []


async def test_stock_first_buys_nothing_while_there_is_stock_and_buys_after(service: Any, opened: Opened) -> None:
    server = SupplierServer(prefix="MIXED")
    with serving(server):
        async with pool(service) as (database, vault):
            buyer = Buyer(database, vault, opened("cards", server))
            await claim(database, service, "mixed", 2)
            await work([buyer], database, SETTLED)
            assert len(server.orders) == 2


_ONE_IS_LEFT = """
    SELECT count(*) = 1 FROM supplier_orders WHERE state IN ('new', 'asked', 'pending', 'cancelling', 'late')
"""


async def test_an_answer_that_takes_long_keeps_no_other_lane_waiting(service: Any, opened: Opened) -> None:
    server = SupplierServer({"hold": 1}, prefix="LANES")
    with serving(server):
        async with pool(service) as (database, vault):
            lanes = open_lanes(database, vault, opened("cards", server, timeout_s=60.0, at_once=6))
            assert [lane.at_once for lane in lanes] == [2, 2, 1, 1]
            await claim(database, service, "bought", 1)
            held = asyncio.create_task(lanes[0].step())
            await until(lambda: server.behaved["hold"])
            server.behaviours = {"well": 1}
            await claim(database, service, "bought", 5)
            await work(lanes[1:], database, _ONE_IS_LEFT)
            assert not held.done()
            assert len(server.orders) == 6
            server.released.set()
            assert await held
            await work(lanes, database, SETTLED)


async def test_lanes_share_the_calls_that_may_be_made_at_once(service: Any, opened: Opened) -> None:
    server = SupplierServer(url="http://127.0.0.1:9")
    async with pool(service) as (database, vault):
        for at_once, shares in {1: [1], 3: [1, 1, 1], 4: [1, 1, 1, 1], 64: [16, 16, 16, 16]}.items():
            lanes = open_lanes(database, vault, opened("cards", server, at_once=at_once))
            assert [lane.at_once for lane in lanes] == shares


@pytest.mark.slow
async def test_a_late_answer_is_recorded_and_cancelled(service: Any, opened: Opened) -> None:
    server = SupplierServer({"late": 1}, prefix="LATE")
    other = SupplierServer({"well": 1}, prefix="OTHER")
    with serving(server), serving(other):
        async with pool(service) as (database, vault):
            buyers = [
                Buyer(database, vault, opened("cards", server, attempts=1)),
                Buyer(database, vault, opened("other", other)),
            ]
            await claim(database, service, "bought", 1)
            await work(buyers, database, "SELECT EXISTS (SELECT FROM supplier_orders WHERE state = 'returned')")
            assert [order.state for order in server.orders.values()] == ["cancelled"]
            assert len(other.orders) == 1
            assert (await verified(database, vault)).findings == []


@pytest.mark.long
async def test_a_late_answer_that_cannot_be_cancelled_fills_the_stock(service: Any, opened: Opened) -> None:
    server = SupplierServer({"late": 1}, prefix="KEPT", can_cancel=False)
    other = SupplierServer({"well": 1}, prefix="OTHER2")
    with serving(server), serving(other):
        async with pool(service) as (database, vault):
            buyers = [
                Buyer(database, vault, opened("cards", server, attempts=1)),
                Buyer(database, vault, opened("other", other)),
            ]
            await claim(database, service, "bought", 1)
            await work(buyers, database, "SELECT EXISTS (SELECT FROM supplier_orders WHERE state = 'kept')")
            free = await database.fetchval(
                WORKER,
                "SELECT count(*) FROM vouchers v JOIN products p ON p.id = product_id WHERE order_id IS NULL AND key = 'bought'",
            )
            assert free == 1
            assert (await verified(database, vault)).findings == []


_PAID = "SELECT coalesce(sum(cost_minor), 0) FROM supplier_costs"


class SameNumber(SupplierServer):
    """Delivers one number for every order."""

    def buy(self, id_: str, state: str = "done") -> Purchase:
        order = super().buy(id_, state)
        order.number = "SAME-1"
        return order


@pytest.mark.slow
async def test_a_line_whose_voucher_came_before_gets_another_though_it_cannot_be_cancelled(
    service: Any, opened: Opened
) -> None:
    same = SameNumber({"well": 1}, prefix="SAME", cost=910, can_cancel=False)
    other = SupplierServer({"well": 1}, prefix="OTHER4", cost=870)
    with serving(same), serving(other):
        async with pool(service) as (database, vault):
            buyers = [
                Buyer(database, vault, opened("cards", same, attempts=1)),
                Buyer(database, vault, opened("other", other)),
            ]
            before = await states(database)
            paid_before = await database.fetchval(WORKER, _PAID)
            await claim(database, service, "bought", 2)
            await work(
                buyers, database, f"SELECT count(*) > {before.get('kept', 0)} FROM supplier_orders WHERE state = 'kept'"
            )
            assert (await states(database))["line fulfilled"] == before.get("line fulfilled", 0) + 2
            assert (len(same.orders), len(other.orders)) == (2, 1)
            assert await database.fetchval(WORKER, _PAID) == paid_before + same.charged + other.charged
            assert (await verified(database, vault)).findings == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "reason"), [({"worth": 999}, "other_value"), ({"ends": "2026-01-01"}, "expired_voucher")]
)
async def test_a_voucher_of_another_value_or_that_is_over_is_given_to_nobody_though_it_cannot_be_cancelled(
    service: Any, opened: Opened, wrong: dict[str, Any], reason: str
) -> None:
    small = SupplierServer({"well": 1}, prefix=f"SMALL-{reason}", can_cancel=False, **wrong)
    whole = SupplierServer({"well": 1}, prefix=f"WHOLE-{reason}")
    with serving(small), serving(whole):
        async with pool(service) as (database, vault):
            options: dict[str, Any] = describe("cards", small)["options"]
            options["answer"] |= {"value": "worth", "currency": "cost.in"}
            buyers = [
                Buyer(database, vault, opened("cards", small, attempts=1, options=options)),
                Buyer(database, vault, opened("other", whole)),
            ]
            (key,) = await claim(database, service, "bought", 1)
            with structlog.testing.capture_logs() as logs:
                kept = f"SELECT EXISTS (SELECT FROM supplier_orders WHERE state = 'kept' AND reason = '{reason}')"
                await work(buyers, database, kept, 60.0)
            assert {one["reason"] for one in logs if one["event"] == "supplier.voucher_refused"} == {reason}
            async with database.connection(WORKER) as connection:
                voucher = await read_allocated(connection, vault, key)
            assert voucher is not None
            assert voucher.voucher.number == next(iter(whole.orders.values())).number
            assert (len(small.orders), len(whole.orders)) == (1, 1)
            assert (await verified(database, vault)).findings == []


@pytest.mark.slow
async def test_a_supplier_that_cannot_be_reached_is_not_asked_and_the_next_one_is(service: Any, opened: Opened) -> None:
    away = SupplierServer(url="http://127.0.0.1:9")
    other = SupplierServer({"well": 1}, prefix="OTHER3")
    with serving(other):
        async with pool(service) as (database, vault):
            buyers = [
                Buyer(database, vault, opened("cards", away, pace=0.001)),
                Buyer(database, vault, opened("other", other)),
            ]
            await claim(database, service, "bought", 1)
            await work(buyers, database, SETTLED)
            reason = await database.fetchval(
                WORKER, "SELECT reason FROM supplier_orders WHERE state = 'refused' ORDER BY id DESC LIMIT 1"
            )
            assert reason == "unreachable"
            assert len(other.orders) == 1


async def test_a_network_that_is_not_allowed_is_never_dialled(service: Any, opened: Opened) -> None:
    server = SupplierServer()
    with serving(server):
        supplier = opened("cards", server, allowed_networks=[])
        result = await supplier.transport.request("GET", f"{server.url}/balance", b"", {}, 0)
        assert (result.status, result.error) == (None, "forbidden_target")


async def test_a_worker_that_dies_after_the_call_buys_nothing_twice(service: Any, opened: Opened) -> None:
    server = SupplierServer({"time_out": 1}, prefix="DEAD", slow_s=0.3)
    with serving(server):
        async with pool(service) as (database, vault):
            dying = Buyer(database, vault, opened("cards", server))
            await claim(database, service, "bought", 4)
            task = asyncio.create_task(dying.step())
            await until(lambda: len(server.orders) == 4)  # all are bought, and no answer has come
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert (await states(database)).get("asked") == 4
            await database.execute(
                WORKER, "UPDATE supplier_orders SET leased_until = '-infinity' WHERE state = 'asked'"
            )
            await work([Buyer(database, vault, opened("cards", server))], database, SETTLED)
            assert set(server.order_calls.values()) == {1}
            assert len(server.orders) == 4


@pytest.mark.slow
async def test_a_worker_that_lost_its_lease_writes_nothing(service: Any, opened: Opened) -> None:
    server = SupplierServer({"time_out": 1}, prefix="FENCED", slow_s=0.3)
    with serving(server):
        async with pool(service) as (database, vault):
            slow, quick = (Buyer(database, vault, opened("cards", server)) for _ in range(2))
            await claim(database, service, "bought", 1)
            task = asyncio.create_task(slow.step())
            await until(lambda: server.orders)
            await database.execute(
                WORKER, "UPDATE supplier_orders SET leased_until = '-infinity' WHERE state = 'asked'"
            )
            await work([quick], database, SETTLED)
            await task
            assert len(server.orders) == 1
            assert (await verified(database, vault)).findings == []


async def test_a_line_that_waits_for_a_supplier_does_not_expire(service: Any) -> None:
    async with pool(service) as (database, _):
        (key,) = await claim(database, service, "bought", 1)
        await database.execute(
            OPERATOR, "UPDATE line_states SET expires_at = now() - interval '1 day' WHERE order_id = $1", key.order_id
        )
        async with database.transaction(WORKER) as connection:
            await expire_late(connection)
        state = await database.fetchval(WORKER, "SELECT state FROM line_states WHERE order_id = $1", key.order_id)
        assert state == "chosen"


async def test_an_outcome_that_cannot_be_written_stops_no_other(service: Any, opened: Opened) -> None:
    """The others of the same step would be asked for again and again, and none would get its voucher."""
    server = SupplierServer(prefix="ODD")
    with serving(server):
        async with pool(service) as (database, vault):
            buyer = Buyer(database, vault, opened("cards", server, at_once=4))
            odd, *_ = await claim(database, service, "bought", 3)
            left = "UPDATE line_states SET sealed_email = $4 WHERE customer_id = $1 AND order_id = $2 AND number = $3"
            await database.execute(OPERATOR, left, *odd, b"not encrypted by us")
            with structlog.testing.capture_logs() as logs:
                assert await buyer.step()
            told = "SELECT number, state FROM supplier_orders WHERE order_id = $1 ORDER BY number"
            rows = await database.fetch(WORKER, told, odd.order_id)
            assert [tuple(row) for row in rows] == [(1, "asked"), (2, "delivered"), (3, "delivered")]
            assert [one["event"] for one in logs if one["log_level"] == "error"] == ["supplier.not_recorded"]
            await database.execute(OPERATOR, left, *odd, None)
            await database.execute(
                WORKER, "UPDATE supplier_orders SET leased_until = '-infinity' WHERE state = 'asked'"
            )
            await work([buyer], database, SETTLED)
            assert set(server.order_calls.values()) == {1}
            assert (await verified(database, vault)).findings == []


async def test_a_cost_that_is_no_amount_is_refused_at_once(service: Any, opened: Opened) -> None:
    server = SupplierServer(prefix="DEAR", cost="1E+999999")  # type: ignore[arg-type]
    with serving(server):
        async with pool(service) as (database, vault):
            buyer = Buyer(database, vault, opened("cards", server))
            await claim(database, service, "bought", 1)
            async with asyncio.timeout(10):
                assert await buyer.step()
            row = await database.fetchrow(WORKER, "SELECT state, reason FROM supplier_orders ORDER BY id DESC LIMIT 1")
            assert row is not None
            assert tuple(row) == ("asked", "malformed_voucher")
            for order in server.orders.values():
                order.cost = 900
            await work([buyer], database, SETTLED)
            assert set(server.order_calls.values()) == {1}
