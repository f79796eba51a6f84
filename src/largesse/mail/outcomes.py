"""Writes the outcomes of messages, many at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from largesse.db.pool import Connection
from largesse.events.order_changes import record_changes
from largesse.jobs.leases import held_columns
from largesse.mail.messages import SPREAD_S, Message


@dataclass(frozen=True, slots=True, repr=False)
class Sent:
    """What became of a message. `captured` is its whole text, sealed, when it goes to the captured mailbox."""

    message: Message
    state: str  # sent, held, captured, bounced, exhausted; pending: again in `delay_s`
    delay_s: float = 0.0
    code: int | None = None  # the mail server's
    reason: str | None = None
    fault: str | None = None  # of a refusal: recipient or server
    subject: str = ""
    captured: bytes | None = None

    @property
    def needs_transaction(self) -> bool:
        """Whether more is written than the outcome: its text, or that its order has changed."""
        return self.captured is not None or self.is_given_up

    @property
    def is_given_up(self) -> bool:
        """Whether it will not be tried again."""
        return self.state in {"bounced", "exhausted"}


async def record(connection: Connection, sent: Sequence[Sent], watched: Sequence[Message] = ()) -> tuple[int, set[int]]:
    """Writes the outcomes of messages where the lease still holds; returns for how many it does not, and which may go next.

    Those are the ids of the `watched` that may go out as they were read: leased by nobody else, and no code in them voided,
    since. Captured ones go into the mailbox with the outcome, and of those given up the read models hear: then call it inside a transaction. An outcome that was written
    before changes nothing, and counts as one whose lease is gone: what was written or given back is leased by nobody.
    """
    rows = await connection.fetch(
        """
        WITH written AS (
        UPDATE messages SET
            state = new.state,
            attempts = attempts + (new.state <> 'held')::int,
            reason = new.reason,
            fault = new.fault,
            due_at = CASE WHEN new.state = 'pending' THEN now + new.delay_s * interval '1 second' ELSE due_at END,
            rank_at = CASE WHEN new.state = 'pending' THEN now + (new.delay_s + $8) * interval '1 second' ELSE rank_at END,
            finished_at = CASE WHEN new.state NOT IN ('pending', 'held') THEN now END,
            leased_until = '-infinity'
        -- Limited to what there is, for the planner's sake: it expects a row or two whatever the arrays hold, so that one
        -- plan of a connection serves all its batches. Planning each anew took a quarter of what a message
        -- costs the database.
        FROM (SELECT * FROM unnest(
                $1::int[], $2::bigint[], $3::bigint[], $4::text[], $5::float8[], $6::text[], $7::text[]) LIMIT $13)
                AS new (customer_id, id, fence, state, delay_s, reason, fault),
            (SELECT clock_now()) AS clock (now)
        -- What is pending is told by what is leased and has not finished: asked for by state, all that are pending might be
        -- read, by the index of those.
        WHERE messages.customer_id = new.customer_id AND messages.id = new.id AND messages.fence = new.fence
            AND messages.finished_at IS NULL AND leased_until > '-infinity'
        RETURNING messages.id)
        SELECT id, true AS is_written FROM written
        UNION ALL
        SELECT next.id, false
        FROM (SELECT * FROM unnest($9::int[], $10::bigint[], $11::bigint[], $12::text[]) LIMIT $14)
            AS next (customer_id, id, fence, lines)
        WHERE (SELECT fence = next.fence AND state = 'pending' AND line_numbers::text = next.lines
               FROM messages WHERE messages.customer_id = next.customer_id AND messages.id = next.id)
        """,
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
    captured = [one for one in sent if one.captured is not None and one.message.lease.key in ours]
    if captured:
        await _write_captured(connection, captured)
    if given_up := {(one.message.lease.customer_id, one.message.order_id) for one in sent if one.is_given_up}:
        await record_changes(connection, given_up)
    return len(sent) - len(ours), {row["id"] for row in rows if not row["is_written"]}


async def _write_captured(connection: Connection, captured: Sequence[Sent]) -> None:
    await connection.execute(
        """
        INSERT INTO captured_mail (customer_id, message_id, environment, recipient, subject, sealed, captured_at)
        SELECT *, clock_now() FROM unnest($1::int[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::bytea[])
        ON CONFLICT DO NOTHING
        """,
        [one.message.lease.customer_id for one in captured],
        [one.message.lease.key for one in captured],
        [one.message.letter.environment for one in captured],
        [one.message.letter.email for one in captured],
        [one.subject for one in captured],
        [one.captured for one in captured],
    )
