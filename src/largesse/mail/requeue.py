"""Lists mail that was not delivered, newest first, and releases or requeues it when the cause is corrected."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from largesse.base.email import masked
from largesse.customers.actor import Actor
from largesse.customers.staff_roles import StaffRight
from largesse.db.fragments import Fragment
from largesse.db.pool import Connection, Row
from largesse.db.shard_groups import list_shard_groups
from largesse.db.sharding import arguments
from largesse.db.statements import count_changed, members_of
from largesse.events.store import record_changes
from largesse.jobs.notifier import notify
from largesse.mail import resending_store
from largesse.mail.messages import SPREAD_S

REASON = "no mail server is set"
_ADDRESS = re.compile(r"[^\s<>@]+@[^\s<>@]*")

# Held mail is released in batches. Each waits until the batch before is sent, so that new mail is not delayed.
_BITE = 1_000

# What is sent again is due at 200 messages a second.
_DUE_TOGETHER = 50
_DUE_GAP_S = 0.25


async def release(connection: Connection) -> int:
    """Makes held messages due, oldest first, until a whole batch of due messages waits. Returns how many it made due.

    Messages of a large order rank later than they are due, by up to SPREAD_S: they count too. Several workers may run it at once: each takes other messages. Each message is tried for three days from now.
    """
    return await count_changed(connection, resending_store.RELEASE, _BITE, SPREAD_S)


_START = datetime(1970, 1, 1, tzinfo=UTC), 0


STATES = ("bounced", "exhausted", "held", "pending")
MOST_REQUEUED = 10_000  # messages that a member of staff can requeue at once


class RequeueFilter(msgspec.Struct, frozen=True):
    """Which mail to send again: given up, held, or put off since a time, of all customers or one. The reason must contain a text, in any letter case."""

    since: datetime
    reason: str | None = None
    customer_id: int | None = None
    states: Sequence[str] = STATES

    @property
    def audited(self) -> dict[str, object]:
        """Returns the filter for the audit log, without addresses of recipients."""
        also = {"customer": self.customer_id, "states": None if self.states == STATES else self.states}
        reason = self.reason and _ADDRESS.sub(lambda found: masked(found[0]), self.reason)
        return {"since": self.since, "reason": reason} | {name: one for name, one in also.items() if one}

    async def fetch(
        self, connection: Connection, statements: tuple[Fragment, Fragment], past: tuple[datetime, int], limit: int
    ) -> list[Row]:
        """Returns the next rows of a statement of `resending_store`, after a time and an id."""
        values = (list(self.states), self.reason, self.since, *past, limit)
        if self.customer_id is None:
            return await connection.fetch(statements[0], *values)
        return await connection.fetch(statements[1], *values, self.customer_id)


async def count_given_up(actor: Actor, wanted: RequeueFilter, *, most: int | None = None) -> int:
    """Returns how many messages `requeue` would send again."""
    found = 0
    after = _START
    async with actor.transaction(StaffRight.SEE_DELIVERIES) as transaction:
        while rows := await wanted.fetch(
            transaction.connection, resending_store.CANDIDATES, after, _batch(most, found)
        ):
            found += len(await _still_valid(transaction.connection, rows))
            after = rows[-1]["given_up_at"], rows[-1]["id"]
    return found


async def requeue(actor: Actor, wanted: RequeueFilter, *, most: int | None = None) -> int:
    """Makes messages due again, up to a limit, for three more days and without cancelled codes. Returns how many.

    The request is stored in `mail_requeues` with that number. It runs in batches. If interrupted, it can be repeated.
    """
    made = 0
    after = _START
    async with actor.transaction(StaffRight.DELIVERIES) as transaction:
        run_id = await transaction.connection.fetchval(resending_store.NEW_REQUEUE, wanted.since, wanted.reason)
        await transaction.record("mail.requeued", "mail", after=wanted.audited)
    while True:
        async with actor.transaction(StaffRight.DELIVERIES) as transaction:
            connection = transaction.connection
            rows = await wanted.fetch(connection, resending_store.CANDIDATES, after, _batch(most, made))
            if not rows:
                return made
            after = rows[-1]["given_up_at"], rows[-1]["id"]
            made += await _make_due(connection, rows, rank=made)
            await connection.execute(resending_store.NOTE_REQUEUED, run_id, made)
            await notify(connection)


def _batch(most: int | None, done: int) -> int:
    return _BITE if most is None else max(min(_BITE, most - done), 0)


async def _make_due(connection: Connection, rows: Sequence[Row], *, rank: int) -> int:
    """Makes one batch of messages due one after the other, from `rank` on, so that new mail can go between them."""
    # A cancellation locks the mail job too: either this sees the cancellation, or the cancellation sees the pending messages.
    for shard_group in await list_shard_groups(connection, None):
        await connection.execute(
            resending_store.LOCK_JOBS.of(shard_group),
            [row["customer_id"] for row in rows],
            [row["order_id"] for row in rows],
            *arguments(shard_group),
        )
    still_valid = await _still_valid(connection, rows)
    made = await count_changed(
        connection,
        resending_store.MAKE_DUE,
        [row["customer_id"] for row, _ in still_valid],
        [row["id"] for row, _ in still_valid],
        [f"{{{','.join(map(str, numbers))}}}" for _, numbers in still_valid],
        rank,
        _DUE_TOGETHER,
        _DUE_GAP_S,
        SPREAD_S,
    )
    await record_changes(connection, {(row["customer_id"], row["order_id"]) for row, _ in still_valid})
    return made


async def _still_valid(connection: Connection, rows: Sequence[Row]) -> list[tuple[Row, list[int]]]:
    """Returns each message that has lines that were not cancelled, with these lines. Orders may be on nodes; messages are not."""
    cancelled = await connection.fetch(
        resending_store.CANCELLED_LINES, [row["customer_id"] for row in rows], [row["order_id"] for row in rows]
    )
    gone = {tuple(line) for line in cancelled}
    still_valid = [
        (row, [n for n in sorted(row["line_numbers"]) if (row["customer_id"], row["order_id"], n) not in gone])
        for row in rows
    ]
    return [(row, numbers) for row, numbers in still_valid if numbers]


NEWEST = datetime(9999, 1, 1, tzinfo=UTC), 0


class GivenUp(msgspec.Struct, frozen=True):
    """A message that was given up, is held, or waits for its next try."""

    id: int
    customer_id: int
    customer: str
    environment: str
    reference: str  # the reference of its order
    number: int  # the number of the recipient's first line
    email: str
    name: str | None
    kind: str
    state: str
    reason: str | None
    fault: str | None
    given_up_at: datetime

    @property
    def masked(self) -> str:
        """Returns the address with most of its local part hidden."""
        return masked(self.email)

    @property
    def said(self) -> str:
        """Returns the mail server's answer, with the address masked."""
        return re.sub(re.escape(self.email), self.masked, self.reason or "", flags=re.IGNORECASE)


async def list_given_up(
    connection: Connection, wanted: RequeueFilter, *, past: tuple[datetime, int] = NEWEST, limit: int = 50
) -> list[GivenUp]:
    """Returns the newest messages that pass a filter, before a time and an id. Includes those without valid codes, which `requeue` does not send."""
    rows = await wanted.fetch(connection, resending_store.NEWEST_GIVEN_UP, past, limit)
    orders = await connection.fetch(
        resending_store.ORDERS_OF, [row["customer_id"] for row in rows], [row["order_id"] for row in rows]
    )
    known = {(row["customer_id"], row["id"]): row for row in orders}
    return [
        GivenUp(
            **members_of(GivenUp, row),
            customer=known[row["customer_id"], row["order_id"]]["customer"],
            reference=known[row["customer_id"], row["order_id"]]["reference"],
            number=min(row["line_numbers"], default=0),
        )
        for row in rows
    ]
