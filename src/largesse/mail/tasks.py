"""Retention, gauges, erasing and key rotation of the tables of mail.

Erasing removes recipients from messages, from answers of mail servers, and from the captured mailbox.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

import structlog

from largesse.base.email import email_key, erased_email, is_erased
from largesse.db.pool import Connection
from largesse.db.scope import WORKER
from largesse.db.shard_groups import Customers
from largesse.db.statements import count_changed
from largesse.encryption.columns import sealed_column
from largesse.jobs import metrics
from largesse.jobs.outbox import lock_mail_job
from largesse.jobs.registry import DueTimes, Old, PeriodicTask, RoomTasks, Waiting, WorkerContext
from largesse.ledger.low_balance_store import CUSTOMERS_WATCHING
from largesse.lines.states import LineKey
from largesse.mail import store
from largesse.mail.mailbox import sealing_context
from largesse.mail.messages import fan_out
from largesse.mail.outcomes import Fault
from largesse.mail.people.writing import queue_low_balances
from largesse.mail.requeue import release

log = structlog.get_logger(__name__)


class ErasedMail(NamedTuple):
    """How many messages were erased, how many of them will no longer be sent, and how many captured copies were deleted."""

    messages: int
    cancelled: int
    captured: int


async def find_notified_lines(connection: Connection, email: str) -> list[LineKey]:
    """Returns the lines with notifications to that address, which the person who claimed the gift gave."""
    rows = await connection.fetch(store.NOTIFIED_LINES, email_key(email))
    return [
        LineKey(row["customer_id"], row["order_id"], row["number"])
        for row in rows
        if email_key(row["email"]) == email_key(email)
    ]


async def erase_mail(
    connection: Connection, order: tuple[int, int], numbers: Collection[int], stand_ins: Mapping[str, str]
) -> ErasedMail:
    """Erases the recipients of some lines of an order from its mail. Mail that has not left is not sent.

    `stand_ins` has the placeholder of each address of the lines. The caller has locked the lines.
    """
    await lock_mail_job(connection, order)
    rows = await connection.fetch(store.LOCK_MAIL, *order)
    erased: dict[int, str] = {}
    for row in rows:
        if is_erased(row["email"]):
            continue
        stand_in = stand_ins.get(email_key(row["email"]))
        if row["kind"] != "gift" and row["edition"] in numbers:
            stand_in = erased_email(row["edition"])
        if stand_in is not None:
            erased[row["id"]] = stand_in
    # A worker that has leased one of these messages loses the lease, and writes no outcome.
    states = await connection.fetch(store.ERASE_MAIL, order[0], list(erased), list(erased.values()))
    captured = await count_changed(connection, store.DELETE_CAPTURED, order[0], list(erased))
    cancelled = sum(row["state"] == "cancelled" for row in states)
    return ErasedMail(len(erased), cancelled, captured)


async def drop_copies(connection: Connection, order: tuple[int, int]) -> int:
    """Deletes the captured copies of an order's mail, which hold its texts. Returns how many."""
    return await count_changed(connection, store.DELETE_CAPTURED_OF_ORDER, *order)


async def erase_campaign_codes(connection: Connection, order: tuple[int, int]) -> None:
    """Erases the addresses that codes of an ended campaign were mailed to. Mail that has not left is not sent. Captured copies are deleted."""
    erased = [row["id"] for row in await connection.fetch(store.ERASE_CODES_OF_ORDER, *order)]
    await connection.execute(store.DELETE_CAPTURED, order[0], erased)


async def erase_codes_to(connection: Connection, email: str, customer_id: int | None) -> int:
    """Erases an address from mails with codes of campaigns and from reminders, of one customer or of all. Returns how many. Reads all such mails."""
    rows = await connection.fetch(store.CODES_TO, email_key(email), customer_id)
    own = [row for row in rows if email_key(row["email"]) == email_key(email)]
    for row in own:
        await connection.execute(store.ERASE_CODE, row["customer_id"], row["id"])
        await connection.execute(store.DELETE_CAPTURED, row["customer_id"], [row["id"]])
    return len(own)


async def count_codes_to(connection: Connection, email: str, customer_id: int | None) -> int:
    """Returns how many mails with codes of campaigns, and reminders, went to an address."""
    rows = await connection.fetch(store.CODES_TO, email_key(email), customer_id)
    return sum(email_key(row["email"]) == email_key(email) for row in rows)


async def drop_copies_to(connection: Connection, email: str, customer_id: int | None) -> int:
    """Deletes the captured copies of mail to an address, of one customer or of all. Returns how many. Reads all copies."""
    rows = await connection.fetch(store.COPIES_TO, email_key(email), customer_id)
    own = [row for row in rows if email_key(row["recipient"]) == email_key(email)]
    for row in own:
        await connection.execute(store.DELETE_CAPTURED, row["customer_id"], [row["message_id"]])
    return len(own)


async def erase_from_reasons(connection: Connection, email: str, customer_id: int | None) -> int:
    """Erases answers of the mail server that contain an address, for one customer's mail or all mail. Returns how many. Reads all messages."""
    return await count_changed(connection, store.ERASE_FROM_REASONS, email_key(email), customer_id)


async def erase_old_requeues(connection: Connection, days: int) -> None:
    """Erases the search words of requeues that are older than so many days."""
    await connection.execute(store.ERASE_OLD_REQUEUES, days)


async def erase_from_requeues(connection: Connection, email: str) -> int:
    """Erases the address from the search words of requeues. Returns how many had it."""
    return await count_changed(connection, store.ERASE_FROM_REQUEUES, email_key(email))


CAPTURED = sealed_column(
    "captured_mail",
    "sealed",
    {"customer_id": "int", "id": "bigint"},
    lambda vault: vault.captured,
    lambda row: sealing_context(row["message_id"]),
    more=("message_id",),
)

_MAIL_JOBS_AT_ONCE = 100


async def _fan_out_mail(context: WorkerContext) -> bool:
    async def step(connection: Connection, customers: Customers) -> tuple[int, int]:
        return await fan_out(connection, _MAIL_JOBS_AT_ONCE, customers)

    made = await context.in_shard_groups(store.CUSTOMERS_WAITING, step)
    if messages := sum(messages for _, messages in made):
        metrics.FANNED_OUT.labels("message").inc(messages)
        context.wake("mail")
    return any(jobs for jobs, _ in made)


async def _release_held(context: WorkerContext) -> bool:
    async with context.database.transaction(WORKER) as connection:
        released = await release(connection)
    if released:
        log.info("mail.released", messages=released)
        context.wake("mail")
    return False


async def _watch_balances(context: WorkerContext) -> bool:
    if mails := sum(await context.in_shard_groups(CUSTOMERS_WATCHING, queue_low_balances)):
        log.info("balances.low", mails=mails)
    return bool(mails)


TASKS = RoomTasks(
    periodic=(
        PeriodicTask("fan_out_mail", _fan_out_mail, finishes=True, on_orders=True),
        PeriodicTask("watch_balances", _watch_balances, every_s=10.0),
        PeriodicTask("release_held", _release_held, every_s=2.0, needs_mail_server=True),
    ),
    retention=(Old("captured_mail", "captured_at", 30),),
    queues=(
        Waiting("mail_jobs", "fanned_out_at IS NULL", "mail_jobs_waiting", "due_at"),
        Waiting("messages", "state = 'pending'", "messages_pending", "rank_at"),
    ),
    due_times=(
        DueTimes("mail_jobs", ("due_at",), "fanned_out_at IS NULL"),
        DueTimes("messages", ("due_at", "rank_at"), "state = 'pending'", since=("trying_since", "created_at")),
    ),
    gauges=(
        (metrics.MAIL_HELD, Waiting("messages", "state = 'held'", "messages_held", "rank_at")),
        (
            metrics.MAIL_PUT_OFF.labels(Fault.SERVER),
            Waiting("messages", "finished_at IS NULL AND fault = 'server'", "messages_put_off", "rank_at"),
        ),
        (
            metrics.MAIL_PUT_OFF.labels(Fault.SERVICE),
            Waiting("messages", "finished_at IS NULL AND fault = 'service'", "messages_put_off", "rank_at"),
        ),
    ),
)
