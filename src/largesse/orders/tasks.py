"""The worker's tasks for orders: reminds recipients, and cancels and refunds codes that nobody has claimed by the claim-by date."""

from datetime import datetime, timedelta

import structlog
from prometheus_client import Counter

from largesse.audit.service import Acting, by_worker
from largesse.base.email import email_key, is_erased
from largesse.db.pool import DATABASE_AWAY, Connection, Row, commit_as_one
from largesse.db.scope import WORKER
from largesse.db.statements import plan_by_index, read_now
from largesse.encryption.chain_keys import Chains
from largesse.jobs.outbox import add_reminders
from largesse.jobs.registry import DueTimes, PeriodicTask, RoomTasks, Waiting, WorkerContext
from largesse.lines.states import lock_issued
from largesse.orders import claim_by_store as store
from largesse.orders.acts import void_lines
from largesse.orders.follow_ups import Schedule

# Orders in one step, and codes that one transaction cancels. It locks the account that gets the refund.
_ORDERS_AT_ONCE = 20
_CODES_AT_ONCE = 500
_AGAIN_AFTER = timedelta(minutes=1)
# The least time between two mails about a gift to one recipient. It is zero in staging, where the test clock makes days pass at once.
_APART = {"production": timedelta(days=1), "staging": timedelta()}

_LAPSED = Counter(
    "largesse_codes_lapsed", "Codes cancelled and refunded as nobody had claimed them by the claim-by date."
)
_REMINDED = Counter("largesse_reminders_made", "Reminders made for recipients who have not claimed.")
log = structlog.get_logger(__name__)


async def follow_up(context: WorkerContext) -> bool:
    """Carries out due follow-ups, each order in its own transaction. Returns whether there may be more to do.

    If the process is killed, only whole transactions have taken effect, and the next step continues.
    """
    due = await context.database.fetch(WORKER, store.DUE, _ORDERS_AT_ONCE)
    done = 0
    for customer_id, order_id in due:
        try:
            async with context.database.transaction(WORKER) as connection:
                done += await _carry_out(connection, await context.open_chains(connection), (customer_id, order_id))
        except DATABASE_AWAY:
            raise
        except Exception:
            log.exception("follow_up.failed", customer=customer_id, order=order_id)
            done += await _put_off(context, (customer_id, order_id))
    return done > 0


async def _put_off(context: WorkerContext, key: tuple[int, int]) -> bool:
    """Postpones an order that failed, so that it does not stop the orders after it. Returns True."""
    async with context.database.transaction(WORKER) as connection:
        await connection.execute(store.PUT_OFF, *key, await read_now(connection) + _AGAIN_AFTER)
    return True


async def _carry_out(connection: Connection, chains: Chains, key: tuple[int, int]) -> bool:
    """Makes the due reminders, or cancels the next codes after the claim-by date. Returns False if another worker has locked the order."""
    await commit_as_one(connection)
    await plan_by_index(connection)
    row = await connection.fetchrow(store.LOCK_DUE, *key)
    if row is None:
        return False
    order = await connection.fetchrow(store.ORDER, *key)
    assert order is not None, "orders are never deleted"
    now = await read_now(connection)
    if row["claim_by"] is not None and row["claim_by"] <= now:
        await _lapse(connection, chains, order)
        return True
    schedule, count = Schedule(environment=order["environment"], country=order["country"], **row), 0
    if order["delivery_mode"] == "send":
        schedule, count = await _remind(connection, order, schedule, now)
        due_at = schedule.due_at(now)
    else:
        due_at = schedule.claim_by
    await connection.execute(store.GO_ON, *key, schedule.reminded, schedule.reminded_last, due_at)
    _REMINDED.inc(count)
    return True


async def _lapse(connection: Connection, chains: Chains, order: Row) -> None:
    """Cancels and refunds the next codes that nobody has claimed. Claims lock the same lines, so that a code is either claimed or refunded."""
    key = (order["customer_id"], order["id"])
    numbers = [row["number"] for row in await connection.fetch(store.UNCLAIMED, *key, _CODES_AT_ONCE)]
    issued = await lock_issued(connection, *key, numbers) if numbers else []
    if len(numbers) < _CODES_AT_ONCE:
        await connection.execute(store.END, *key)
    if not issued:
        return
    at = await read_now(connection)
    await void_lines(connection, chains.entries, order, issued, at, lapsed=True)
    refunded_minor = order["total_minor"] // order["code_count"] * len(issued)
    await Acting(by_worker("claim-by"), chains).record(
        connection,
        "order.lapsed",
        f"order {order['reference']}",
        customer_id=key[0],
        environment=order["environment"],
        after={"cancelled": len(issued), "refunded_minor": refunded_minor},
    )
    _LAPSED.inc(len(issued))


async def _remind(connection: Connection, order: Row, schedule: Schedule, now: datetime) -> tuple[Schedule, int]:
    """Makes the due reminders of an order, if it is daytime in its country. Returns the schedule after that, and how many were made.

    If several are due, for example because no worker ran, only the last is made. A claim, and a recipient who stops reminders, lock the lines
    too: they come first, or find the reminder and withdraw it. Call it inside a transaction that has locked the follow-up.
    """
    ready = [one for one in schedule.reminders() if one.at <= now]
    if not ready or schedule.leaves_at(now) > now:
        return schedule, 0
    key = (order["customer_id"], order["id"])
    recipients = await _recipients_of(connection, key, _APART[order["environment"]])
    if recipients:
        await add_reminders(
            connection, key, ready[-1].kind, now, environment=order["environment"], recipients=recipients
        )
    return schedule.without(ready), len(recipients)


async def _recipients_of(
    connection: Connection, key: tuple[int, int], apart: timedelta
) -> list[tuple[str, str | None, list[int]]]:
    """Returns the recipients to remind: address, name, and the lines that nobody has claimed. Locks these lines."""
    rows = await connection.fetch(store.TO_REMIND, *key)
    if not rows:
        return []
    issued = set(await lock_issued(connection, *key, [row["number"] for row in rows]))
    # A recipient may have stopped the reminders while this waited for the locks.
    issued -= {row["number"] for row in await connection.fetch(store.STOPPED, *key)}
    mailed = {email_key(row["email"]) for row in await connection.fetch(store.MAILED, *key)}
    left_out = {email_key(row["email"]) for row in await connection.fetch(store.NOT_NOW, *key, apart)}
    found: dict[str, tuple[str, str | None, list[int]]] = {}
    for row in rows:
        at = email_key(row["email"])
        if row["number"] in issued and at in mailed and at not in left_out and not is_erased(row["email"]):
            found.setdefault(at, (row["email"], row["name"], []))[2].append(row["number"])
    return list(found.values())


async def _count_from_earlier(connection: Connection, customer_id: int, by: timedelta) -> None:
    """Moves the start of the reminder days back by `by`, for orders that are due and that no worker has processed yet."""
    await connection.execute(store.COUNT_FROM_EARLIER, customer_id, by)


TASKS = RoomTasks(
    periodic=(PeriodicTask("follow_up", follow_up, finishes=True),),
    due_times=(
        DueTimes("follow_ups", ("due_at",), "due_at IS NOT NULL", since=("sent_at",), prepare=_count_from_earlier),
        DueTimes("follow_ups", ("claim_by",), "due_at IS NOT NULL AND claim_by IS NOT NULL"),
    ),
    queues=(Waiting("follow_ups", "due_at IS NOT NULL", "follow_ups_due", "due_at"),),
)
