"""Measures supplier orders for the worker's metrics."""

from prometheus_client import Gauge

from largesse.db.scope import WORKER
from largesse.jobs.registry import PeriodicTask, RoomTasks, WorkerContext
from largesse.suppliers import store

ORDERS_OPEN = Gauge(
    "largesse_supplier_orders_open", "Supplier orders that wait for an answer or a voucher.", ["supplier"]
)
ORDERS_STUCK = Gauge(
    "largesse_supplier_orders_stuck",
    "Supplier orders without a clear answer again and again, or too slow.",
    ["supplier"],
)


async def _measure(context: WorkerContext) -> bool:
    rows = await context.database.fetch(WORKER, store.WAITING)
    ORDERS_OPEN.clear()
    ORDERS_STUCK.clear()
    for row in rows:
        ORDERS_OPEN.labels(row["supplier"]).set(row["waiting"])
        ORDERS_STUCK.labels(row["supplier"]).set(row["stuck"])
    return False


# Supplier orders and costs are records of money and name no person, so they are never removed.
TASKS = RoomTasks(periodic=(PeriodicTask("measure_suppliers", _measure, every_s=60.0),))
