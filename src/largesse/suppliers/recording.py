"""Writes the outcomes of calls to suppliers, many at once: hands the voucher to its line, or orders at the next supplier."""

from collections.abc import Sequence
from datetime import datetime

import msgspec
import structlog
from msgspec.structs import replace
from prometheus_client import Counter

from largesse.catalogue.model import STOCK
from largesse.db.pool import Connection, commit_as_one
from largesse.db.statements import read_now
from largesse.encryption.vault import Vault
from largesse.fulfilment.vouchers import Voucher, add_bought, hand_over, take_from_stock, wait_for_stock
from largesse.jobs.notifier import notify
from largesse.suppliers import model, store

ENDED = Counter("largesse_supplier_orders_total", "Supplier orders that ended, by how.", ["supplier", "state"])

BAD = Counter(
    "largesse_supplier_bad_vouchers_total", "Vouchers of suppliers that were refused.", ["supplier", "reason"]
)
_PAID = frozenset({model.State.DELIVERED, model.State.KEPT})

log = structlog.get_logger(__name__)


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
