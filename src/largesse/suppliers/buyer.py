"""Buys vouchers: a worker leases supplier orders, calls the supplier outside of any transaction, and writes the outcome under the lease.

Each order is placed at the supplier at most once: the state `asked` is stored before the call. After that, workers poll for the order.
Outcomes are written many at once: the voucher goes to its line, or the next supplier gets an order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec
import structlog
from msgspec.structs import replace
from prometheus_client import Counter

from largesse.base import clock
from largesse.base.email import is_erased
from largesse.catalogue.model import STOCK
from largesse.db.pool import DATABASE_AWAY, Connection, Database, Row, commit_as_one
from largesse.db.scope import WORKER
from largesse.db.statements import members_of, plan_by_index, read_now
from largesse.encryption.vault import Vault
from largesse.fulfilment.vouchers import (
    Voucher,
    add_bought,
    hand_over,
    lock_waits,
    stop_waiting,
    take_from_stock,
    wait_for_stock,
)
from largesse.jobs.leases import StillHeldError, Terms
from largesse.jobs.notifier import notify
from largesse.lines.states import LineKey
from largesse.suppliers import model, store
from largesse.suppliers.description import OpenSupplier

ENDED = Counter("largesse_supplier_orders_total", "Supplier orders that ended, by how.", ["supplier", "state"])

BAD = Counter(
    "largesse_supplier_bad_vouchers_total", "Vouchers of suppliers that were refused.", ["supplier", "reason"]
)
_PAID = frozenset({model.State.DELIVERED, model.State.KEPT})


class Done(msgspec.Struct, frozen=True):
    """A call that was made for an order, and its outcome."""

    order: model.SupplierOrder
    answer: model.Answer | model.SupplierFailed
    outcome: model.Outcome


def refuse_voucher(order: model.SupplierOrder, fault: str) -> model.SupplierFailed:
    """Logs and counts a refused voucher, without its number. Returns the failure that replaces the answer."""
    assert fault in model.BAD_VOUCHERS, "reasons are labels of a metric"
    BAD.labels(order.supplier, fault).inc()
    log.error("supplier.voucher_refused", supplier=order.supplier, supplier_order_id=order.wanted.id, reason=fault)
    return model.SupplierFailed(fault)


async def record(connection: Connection, vault: Vault, policy: model.RetryPolicy, done: Sequence[Done]) -> None:
    """Writes the outcomes of orders whose lease is still valid. Skips orders that another worker has leased meanwhile."""
    await commit_as_one(connection)
    held = await connection.fetch(
        store.LOCK_HELD,
        [one.order.customer_id for one in done],
        [one.order.id for one in done],
        [one.order.fence for one in done],
    )
    ours = {(row["customer_id"], row["id"]) for row in held}
    now = await read_now(connection)
    goes_on = False
    paid: list[tuple[object, ...]] = []
    for one in sorted(done, key=lambda one: (one.order.customer_id, one.order.id)):
        if (one.order.customer_id, one.order.id) in ours:
            outcome, is_due = await _record(connection, vault, policy, one, now)
            goes_on |= is_due
            if outcome.state in _PAID:
                paid.append(_cost_of(one.order, outcome))
    if paid:  # last and sorted, so that two workers cannot deadlock
        await connection.execute(store.ADD_COSTS, now, *(list(column) for column in zip(*paid, strict=True)))
    if goes_on:
        await notify(connection)


def _cost_of(order: model.SupplierOrder, outcome: model.Outcome) -> tuple[object, ...]:
    """Returns the values of ADD_COSTS for an order, without the time."""
    bought, is_kept = outcome.bought, outcome.state is model.State.KEPT
    currency = bought.cost_currency if bought is not None else None
    cost_minor = bought.cost_minor if bought is not None else None
    value_minor = 0 if is_kept else order.wanted.value_minor
    return (
        order.supplier,
        order.product_id,
        currency or "",
        int(not is_kept),
        int(is_kept),
        value_minor,
        cost_minor or 0,
    )


async def _record(
    connection: Connection, vault: Vault, policy: model.RetryPolicy, done: Done, now: datetime
) -> tuple[model.Outcome, bool]:
    """Writes one outcome. Returns the outcome as it was written, and whether another supplier order is due now."""
    order, outcome = done.order, done.outcome
    if outcome.bought is not None:
        outcome = await _take_voucher(connection, vault, policy, done, outcome.bought, now)
    await _write(connection, order, outcome, now)
    if order.state in model.OPEN and outcome.goes_on:
        return outcome, await _ask_next(connection, vault, policy, order, outcome, now)
    return outcome, False


async def _write(connection: Connection, order: model.SupplierOrder, outcome: model.Outcome, now: datetime) -> None:
    bought = outcome.bought if outcome.state in _PAID else None
    await connection.execute(
        store.WRITE_OUTCOME,
        order.customer_id,
        order.id,
        outcome.state,
        outcome.reason,
        outcome.failures,
        outcome.again_s,
        now,
        bought.cost_minor if bought is not None else None,
        bought.cost_currency if bought is not None else None,
    )
    if outcome.state not in model.OPEN and outcome.state is not order.state:
        ENDED.labels(order.supplier, outcome.state).inc()


async def _take_voucher(
    connection: Connection, vault: Vault, policy: model.RetryPolicy, done: Done, bought: model.Bought, now: datetime
) -> model.Outcome:
    """Assigns a bought voucher to its line, or to the stock if it came too late. Refuses a duplicate."""
    order = done.order
    voucher = Voucher(bought.number, bought.pin, model.last_day_of(bought))
    voucher_id = await add_bought(connection, vault, order.product_id, order.wanted.value_minor, voucher)
    if voucher_id is None:
        outcome = model.judge(order, refuse_voucher(order, model.TWICE), now, policy)
        return replace(outcome, bought=bought) if outcome.state is model.State.KEPT else outcome
    if done.outcome.state is model.State.DELIVERED:
        await hand_over(connection, vault, order.line, voucher_id, now)
    return done.outcome


async def _ask_next(
    connection: Connection,
    vault: Vault,
    policy: model.RetryPolicy,
    order: model.SupplierOrder,
    outcome: model.Outcome,
    now: datetime,
) -> bool:
    """Makes the next attempt, orders at the next supplier, or lets the line wait for stock. Returns True if a supplier order is due."""
    (product,) = await connection.fetch(store.PRODUCTS, [order.product_id])
    supplier, attempt, again = (
        order.supplier,
        order.attempt,
        outcome.state is model.State.LOST and outcome.reason == "not_there",
    )
    value_minor = order.wanted.value_minor
    while (
        following := model.next_step(product["suppliers"], supplier, attempt, again=again, attempts=policy.attempts)
    ) is not None:
        supplier, attempt = following
        again = False
        if supplier != STOCK:
            attempt = await store.next_attempt(connection, order.line, supplier)
            await store.add_order(connection, order.line, order.product_id, value_minor, supplier, attempt, now)
            return True
        if await take_from_stock(connection, vault, order.line, order.product_id, value_minor, now):
            return False
    orders = await store.count_orders(connection, order.line)
    await wait_for_stock(connection, order.line, order.product_id, value_minor, now, orders=orders)
    log.warning("supplier.all_refused", supplier_order_id=order.wanted.id)
    return False


CALLS = Counter("largesse_supplier_calls_total", "Calls of suppliers, by outcome.", ["supplier", "call", "outcome"])
LATE = Counter(
    "largesse_supplier_late_total", "Orders that a supplier had after all, after they were given up.", ["supplier"]
)
_WRITING_S = 20.0  # the part of a lease for writing outcomes after the calls
# Lanes of a worker for one supplier. Each polls for work, so there are fewer lanes than calls at once.
_LANES = 4
_AGAIN_AT_ONCE = 100  # lines that are ordered again in a transaction

log = structlog.get_logger(__name__)


def open_lanes(database: Database, vault: Vault, supplier: OpenSupplier) -> list[Buyer]:
    """Returns the buyers of a worker for one supplier. They share the number of calls that the supplier allows at once.

    A step waits for the slowest of its calls, so a slow answer delays only its own lane.
    """
    at_once = supplier.description.at_once
    lanes = min(at_once, _LANES)
    shares = [at_once // lanes + (lane < at_once % lanes) for lane in range(lanes)]
    return [Buyer(database, vault, supplier, at_once=share) for share in shares]


async def ask_again(database: Database, described: Collection[str]) -> bool:
    """Orders again for lines that wait for stock because all suppliers refused, as one may be back. Returns True if there may be more.

    `described` are the suppliers that this worker can call. The first of them gets the order, and then those that follow it.
    """
    async with database.transaction(WORKER) as connection:
        await plan_by_index(connection)
        products = await connection.fetch(store.PRODUCTS_WAITING)
    goes_on = False
    for product_id, suppliers in products:
        first = next((name for name in suppliers if name in described), None)
        if first is not None:
            goes_on |= await _ask_again(database, product_id, first)
    return goes_on


async def _ask_again(database: Database, product_id: int, supplier: str) -> bool:
    async with database.transaction(WORKER) as connection:
        await commit_as_one(connection)
        await plan_by_index(connection)
        await lock_waits(connection, product_id)
        waits = await connection.fetch(store.DUE_AGAIN, product_id, _AGAIN_AT_ONCE)
        at = await read_now(connection)
        for wait in waits:
            line = LineKey(wait["customer_id"], wait["order_id"], wait["number"])
            await stop_waiting(connection, line.customer_id, wait["id"])
            attempt = await store.next_attempt(connection, line, supplier)
            await store.add_order(connection, line, product_id, wait["value_minor"], supplier, attempt, at)
        if waits:
            await notify(connection)
            log.info("supplier.asked_again", supplier=supplier, lines=len(waits))
    return len(waits) == _AGAIN_AT_ONCE


class Buyer:
    """Buys at a supplier. `step` leases due orders, makes up to `at_once` calls, and writes their outcomes."""

    def __init__(self, database: Database, vault: Vault, supplier: OpenSupplier, *, at_once: int | None = None) -> None:
        self.at_once = at_once or supplier.description.at_once
        self._database = database
        self._vault = vault
        self._supplier = supplier
        self.name = supplier.description.name

    async def step(self) -> bool:
        """Serves as many orders as it may make calls at once. Returns True if more may be due."""
        orders, at = await self._take()
        if not orders:
            return False
        since = clock.passed_s()
        await self._record(await asyncio.gather(*(self._serve(order, at, since) for order in orders)))
        return True

    async def _record(self, done: Sequence[Done]) -> None:
        """Writes outcomes together. If that fails, writes each alone. An order whose outcome cannot be written is polled again later."""
        try:
            async with self._database.transaction(WORKER) as connection:
                await record(connection, self._vault, self._supplier.policy, done)
        except DATABASE_AWAY:
            raise
        except Exception:
            if len(done) == 1:
                supplier_order_id = done[0].order.wanted.id
                log.exception("supplier.not_recorded", supplier=self.name, supplier_order_id=supplier_order_id)
                return
            for one in done:
                await self._record([one])

    async def _take(self) -> tuple[list[model.SupplierOrder], datetime]:
        """Leases due orders, and returns them with the database's time. Sets new ones to `asked`."""
        terms = Terms(2 * self._supplier.description.timeout_s + _WRITING_S)
        try:
            async with self._database.transaction(WORKER) as connection:
                rows = await store.SUPPLIER_QUEUE.take(connection, self.at_once, self.name, terms=terms)
                new = [row for row in rows if row["state"] == model.State.NEW]
                if new:
                    columns = [row["customer_id"] for row in new], [row["id"] for row in new]
                    await connection.execute(store.BEGIN_ASKING, *columns)
                return await self._read(connection, rows), await read_now(connection)
        except StillHeldError:  # never, as it has no leases between two steps
            return [], clock.now()

    async def _read(self, connection: Connection, rows: Sequence[Row]) -> list[model.SupplierOrder]:
        products = {
            row["id"]: row for row in await connection.fetch(store.PRODUCTS, [row["product_id"] for row in rows])
        }
        return [await self._order(connection, row, products) for row in rows]

    async def _order(self, connection: Connection, row: Row, products: Mapping[int, Row]) -> model.SupplierOrder:
        line = LineKey(row["customer_id"], row["order_id"], row["number"])
        product = products[row["product_id"]]
        email: str | None = None
        country = ""
        if row["state"] == model.State.NEW:
            country = await connection.fetchval(store.COUNTRY, line.customer_id, line.order_id)
            if self._supplier.supplier.needs_recipient:
                email = await connection.fetchval(store.RECIPIENT, *line)
        wanted = model.SupplierLine(
            id=str(row["supplier_order_id"]),
            product=product["key"],
            value_minor=row["value_minor"],
            currency=product["currency"],
            country=country,
            recipient_email=None if email is None or is_erased(email) else email,
        )
        members = members_of(model.SupplierOrder, row)
        return model.SupplierOrder(**members | {"state": model.State(row["state"]), "line": line, "wanted": wanted})

    async def _serve(self, order: model.SupplierOrder, at: datetime, since: float) -> Done:
        """Makes the next call for an order, by its state."""
        answer = await self._call(_CALLS.get(order.state, "poll"), order)
        if order.state is model.State.LATE and isinstance(answer, model.NotCancellable):
            answer = await self._call("poll", order)
            if isinstance(answer, model.Cancelled | model.Unknown | model.Refused):
                # Cancelling failed, so one such answer does not mean that the order is gone.
                answer = model.SupplierFailed("unclear")
        if order.state not in model.WATCHED:
            fault = model.fault_of(answer, order.wanted, at.date()) if isinstance(answer, model.Bought) else None
            if isinstance(answer, model.SupplierFailed) and answer.error in model.BAD_VOUCHERS:
                fault = answer.error
            if fault is not None:
                answer = refuse_voucher(order, fault)
        if order.state in model.WATCHED and isinstance(answer, model.Bought):
            LATE.labels(self.name).inc()
            log.warning("supplier.late_answer", supplier=self.name, supplier_order_id=order.wanted.id)
        now = at + timedelta(seconds=clock.passed_s() - since)
        return Done(order, answer, model.judge(order, answer, now, self._supplier.policy))

    async def _call(self, name: str, order: model.SupplierOrder) -> model.Answer | model.SupplierFailed:
        answer: model.Answer | model.SupplierFailed
        try:
            async with asyncio.timeout(self._supplier.description.timeout_s):
                answer = await getattr(self._supplier.supplier, name)(order.wanted)
        except model.SupplierFailed as failed:
            answer = failed
        except TimeoutError:
            answer = model.SupplierFailed("timeout")
        except Exception as error:  # noqa: BLE001 - others' code; its text may hold secrets
            log.error("supplier.code_failed", supplier=self.name, call=name, error=type(error).__name__)  # noqa: TRY400
            answer = model.SupplierFailed("code_failed")
        outcome = answer.error if isinstance(answer, model.SupplierFailed) else type(answer).__name__.lower()
        CALLS.labels(self.name, name, outcome).inc()
        log.info("supplier.call", supplier=self.name, call=name, supplier_order_id=order.wanted.id, outcome=outcome)
        return answer


_CALLS = {model.State.NEW: "order", model.State.CANCELLING: "cancel", model.State.LATE: "cancel"}
