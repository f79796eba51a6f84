"""Writes the outcomes of messages, many at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from largesse.db.pool import Connection, Database, commit_as_one, is_distributed
from largesse.db.statements import read_now
from largesse.events.order_changes import record_changes
from largesse.jobs.leases import held_columns
from largesse.lines.lifecycle import record_lifecycle
from largesse.mail import store
from largesse.mail.letter import GIFT
from largesse.mail.messages import SPREAD_S, Message


@dataclass(frozen=True, slots=True, repr=False)
class Sent:
    """The outcome of a message. `captured` is its encrypted text, if it goes to the captured mailbox."""

    message: Message
    state: str  # sent, held, captured, bounced, exhausted; pending: again in `delay_s`
    delay_s: float = 0.0
    code: int | None = None  # the mail server's
    reason: str | None = None
    fault: str | None = None  # the cause of a refusal: recipient or server
    subject: str = ""
    captured: bytes | None = None
    claims: bool = False  # whether the recipient claims the gift when the mail was captured: an address of the test lab

    @property
    def is_given_up(self) -> bool:
        """Whether the message will not be tried again."""
        return self.state in {"bounced", "exhausted"}


def need_transaction(database: Database, sent: Sequence[Sent]) -> bool:
    """Returns whether `record` takes more than one statement for these outcomes."""
    return database.is_distributed or any(one.captured is not None or one.is_given_up for one in sent)


async def _record_on_nodes(connection: Connection, sent: Sequence[Sent]) -> None:
    """Records the events of messages where orders may lie on other nodes than messages."""
    await commit_as_one(connection)
    at = await read_now(connection)
    for one in sent:
        event, letter = store.EVENTS.get(one.state), one.message.letter
        if event is not None and letter.kind == GIFT:
            order = one.message.lease.customer_id, one.message.order_id
            occurrence = f"{event.name}/{letter.edition}/{one.message.lease.fence}"
            await record_lifecycle(connection, event, *order, one.message.line_numbers, at, occurrence=occurrence)


async def record(connection: Connection, sent: Sequence[Sent], watched: Sequence[Message] = ()) -> tuple[int, set[int]]:
    """Writes the outcomes of messages whose lease is still valid. Returns for how many it is not, and which messages may be sent next.

    The latter are the ids of the `watched` messages that nobody else has leased since they were read, and of which no code was voided. The
    same statement records the events of gifts that were sent or bounced. It stores captured mail in the mailbox, and updates the read models
    for messages that were given up: in these cases, and if customers are distributed, call it inside a transaction. An outcome that was
    written before changes nothing, and counts as one whose lease is gone.
    """
    rows = await connection.fetch(
        store.RECORD_ON_NODES if is_distributed(connection) else store.RECORD,
        *held_columns([one.message.lease for one in sent]),
        [one.state for one in sent],
        [one.delay_s for one in sent],
        [one.reason for one in sent],
        [one.fault for one in sent],
        SPREAD_S,
        *held_columns([message.lease for message in watched]),
        [f"{{{','.join(map(str, message.line_numbers))}}}" for message in watched],
        len(sent),
        len(watched),
    )
    ours = {row["id"] for row in rows if row["is_written"]}
    if is_distributed(connection):
        await _record_on_nodes(connection, [one for one in sent if one.message.lease.key in ours])
    captured = [one for one in sent if one.captured is not None and one.message.lease.key in ours]
    if captured:
        await _write_captured(connection, captured)
    if given_up := {(one.message.lease.customer_id, one.message.order_id) for one in sent if one.is_given_up}:
        await record_changes(connection, given_up)
    return len(sent) - len(ours), {row["id"] for row in rows if not row["is_written"]}


async def _write_captured(connection: Connection, captured: Sequence[Sent]) -> None:
    await connection.execute(
        store.CAPTURE_ALL,
        [one.message.lease.customer_id for one in captured],
        [one.message.lease.key for one in captured],
        [one.message.letter.environment for one in captured],
        [one.message.letter.email for one in captured],
        [one.subject for one in captured],
        [one.captured for one in captured],
        [one.claims for one in captured],
    )
