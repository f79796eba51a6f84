"""Buys vouchers: a worker leases supplier orders, calls the supplier outside of any transaction, and writes the outcome under the lease.

Each order is placed at the supplier at most once: the state `asked` is stored before the call. After that, workers poll for the order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

import structlog
from prometheus_client import Counter

from largesse.base import clock
from largesse.base.email import is_erased
from largesse.db.pool import DATABASE_AWAY, Connection, Database, Row, commit_as_one
from largesse.db.scope import WORKER
from largesse.db.statements import plan_by_index, read_now
from largesse.encryption.vault import Vault
from largesse.fulfilment.vouchers import lock_waits, stop_waiting
from largesse.jobs.leases import StillHeldError, Terms
from largesse.jobs.notifier import notify
from largesse.lines.states import LineKey
from largesse.suppliers import model, store
from largesse.suppliers.description import OpenSupplier
from largesse.suppliers.recording import Done, record, refuse_voucher

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
        return model.SupplierOrder(
            customer_id=row["customer_id"],
            id=row["id"],
            fence=row["fence"],
            state=model.State(row["state"]),
            line=line,
            supplier=row["supplier"],
            attempt=row["attempt"],
            product_id=row["product_id"],
            wanted=wanted,
            created_at=row["created_at"],
            asked_at=row["asked_at"],
            failures=row["failures"],
            reason=row["reason"],
        )

    async def _serve(self, order: model.SupplierOrder, at: datetime, since: float) -> Done:
        """Makes the next call for an order, by its state."""
        answer = await self._call(_CALLS.get(order.state, "poll"), order)
        if order.state is model.State.LATE and isinstance(answer, model.NotCancellable):
            answer = await self._call("poll", order)
            if isinstance(answer, model.Cancelled | model.Unknown | model.Refused):
                answer = model.SupplierFailed(
                    "unclear"
                )  # cancelling failed, so one such answer does not mean that the order is gone
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
