"""Messages in the database: made from mail jobs, leased, read with their codes, and written back in batches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from largesse.base.email import address_key
from largesse.base.i18n import language_of
from largesse.base.vault import Vault
from largesse.database import Connection, Row
from largesse.delivery.mail.letter import CHOICE, PARCEL, VOUCHER, Letter, LetterCode
from largesse.delivery.queue import Lease, Queue, Terms, plan_by_index
from largesse.lines import open_code
from largesse.orders.recipients import MAX_CODES
from largesse.orders.shapes import claim_link

_TERMS = Terms()

# How a large order is spread in the line: this many of its messages, then a gap in rank that others may use.
RANKED_TOGETHER = 50
RANK_GAP_S = 0.25
# So far behind the instant it is due is a message ranked at most; one that is tried again, just so far. Then what is ranked
# later than so far from now is not due yet, and the index of ranks need not be read any further.
_SPREAD_S = MAX_CODES / RANKED_TOGETHER * RANK_GAP_S

MESSAGES = Queue(
    "messages", "id", "bigint", ready="state = 'pending'", order="rank_at", order_ahead_s=_SPREAD_S
)

_MAX_CODES = 10_000  # of the orders fanned out in one transaction, unless one order alone has more


@dataclass(frozen=True, slots=True, repr=False)
class Message:
    """A leased message with all that is needed to send it."""

    lease: Lease
    order_id: int
    due_at: datetime
    age_s: float  # since it was made, or made due again
    attempts: int
    line_numbers: list[int]  # whose codes the letter holds
    letter: Letter


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


async def fan_out(connection: Connection, limit: int) -> tuple[int, int]:
    """Makes the messages of up to `limit` mail jobs that are due; returns how many of each.

    Call it inside a transaction. Several workers may do so at once: each takes other jobs.
    """
    await plan_by_index(connection)
    jobs = await connection.fetch(
        """
        SELECT order_id, due_at, code_count FROM mail_jobs JOIN orders ON orders.id = order_id
        WHERE fanned_out_at IS NULL AND due_at <= (SELECT clock_now())
        ORDER BY due_at LIMIT $1 FOR UPDATE OF mail_jobs SKIP LOCKED
        """,
        limit,
    )
    if not jobs:
        return 0, 0
    taken = _within(jobs, _MAX_CODES)
    made = await _make_messages(connection, taken)
    await connection.execute(
        "UPDATE mail_jobs SET fanned_out_at = (SELECT clock_now()) WHERE order_id = ANY($1::int[])",
        [job["order_id"] for job in taken],
    )
    return len(taken), made


async def take(
    connection: Connection,
    limit: int,
    vault: Vault,
    public_url_of: Callable[[str], str],
    terms: Terms = _TERMS,
) -> list[Message]:
    """Leases up to `limit` messages that are due, with their letters. Call it inside a transaction."""
    taken = await MESSAGES.take(connection, limit, terms=terms)
    ids = [row["id"] for row in taken]
    orders = await connection.fetch(
        """
        SELECT messages.id, orders.reference, orders.message, orders.from_name, orders.wrapping_key, orders.value_minor,
               orders.currency, orders.country, orders.expiry_after_days, orders.recipient_count,
               extract(epoch FROM clock_now() - coalesce(messages.trying_since, messages.created_at))::float8 AS age_s,
               products.name AS product, products.is_digital, collections.name AS collection,
               settled.name AS settled, carrier, tracking_number,
               -- Whoever claimed a gift has chosen a language.
               (SELECT language FROM line_states AS claimed WHERE claimed.order_id = orders.id
                AND claimed.number = ANY(line_numbers) AND language IS NOT NULL
                ORDER BY claimed_at DESC LIMIT 1) AS language
        FROM messages JOIN orders ON orders.id = messages.order_id
        LEFT JOIN products ON products.id = orders.product_id
        LEFT JOIN collections ON collections.id = orders.collection_id
        -- A notification is of one line, whose number is its edition.
        LEFT JOIN line_states ON kind <> 'gift' AND line_states.order_id = orders.id AND line_states.number = edition
        LEFT JOIN products AS settled ON settled.id = line_states.product_id
        LEFT JOIN shipments ON kind = 'shipped' AND shipments.order_id = orders.id AND shipments.number = edition
        WHERE messages.id = ANY($1::bigint[])
        """,
        ids,
    )
    lines = await connection.fetch(
        """
        SELECT messages.id, lines.number, sealed
        FROM messages CROSS JOIN LATERAL unnest(line_numbers) AS wanted (number)
        JOIN lines ON lines.order_id = messages.order_id AND lines.number = wanted.number
        WHERE messages.id = ANY($1::bigint[]) ORDER BY lines.number
        """,
        ids,
    )
    order_of = {row["id"]: row for row in orders}
    lines_of: dict[int, list[Row]] = defaultdict(list)
    for line in lines:
        lines_of[line["id"]].append(line)
    return [
        _message(row, order_of[row["id"]], lines_of[row["id"]], vault, public_url_of(row["environment"]))
        for row in sorted(taken, key=lambda row: (row["rank_at"], row["id"]))
    ]


async def record(connection: Connection, sent: Sequence[Sent]) -> int:
    """Writes what became of messages where the lease still holds; returns for how many it does not.

    Captured ones go into the mailbox with that: then call it inside a transaction. An outcome that was written before
    changes nothing, and counts as one whose lease is gone: what was written or given back is leased by nobody.
    """
    written = await connection.fetch(
        """
        UPDATE messages SET
            state = new.state,
            attempts = attempts + (new.state <> 'held')::int,
            reason = new.reason,
            fault = new.fault,
            due_at = CASE WHEN new.state = 'pending' THEN now + new.delay_s * interval '1 second' ELSE due_at END,
            rank_at = CASE WHEN new.state = 'pending' THEN now + (new.delay_s + $7) * interval '1 second' ELSE rank_at END,
            finished_at = CASE WHEN new.state NOT IN ('pending', 'held') THEN now END,
            leased_until = '-infinity'
        FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::float8[], $5::text[], $6::text[])
                AS new (id, fence, state, delay_s, reason, fault),
            (SELECT clock_now()) AS clock (now)
        -- What is pending is told by what is leased and has not finished: asked for by state, all that are pending might be
        -- read, by the index of those.
        WHERE messages.id = new.id AND messages.fence = new.fence AND messages.finished_at IS NULL
            AND leased_until > '-infinity'
        RETURNING messages.id
        """,
        [one.message.lease.key for one in sent],
        [one.message.lease.fence for one in sent],
        [one.state for one in sent],
        [one.delay_s for one in sent],
        [one.reason for one in sent],
        [one.fault for one in sent],
        _SPREAD_S,
    )
    ours = {row["id"] for row in written}
    captured = [one for one in sent if one.captured is not None and one.message.lease.key in ours]
    if captured:
        await _write_captured(connection, captured)
    return len(sent) - len(ours)


async def still_stands(connection: Connection, message: Message) -> bool:
    """Whether a message may go out as it was read: leased by nobody else, and no code in it voided, since."""
    stands: bool | None = await connection.fetchval(
        "SELECT fence = $2 AND state = 'pending' AND line_numbers = $3 FROM messages WHERE id = $1",
        message.lease.key,
        message.lease.fence,
        message.line_numbers,
    )
    return bool(stands)


async def put_back(connection: Connection, leases: Sequence[Lease], reason: str) -> None:
    """Frees messages that the mail server could not even be offered, with the reason; it costs them no attempt."""
    await connection.execute(
        """
        UPDATE messages SET leased_until = '-infinity', reason = $3, fault = 'server'
        FROM unnest($1::bigint[], $2::bigint[]) AS held (held_id, held_fence)
        WHERE id = held_id AND fence = held_fence AND state = 'pending'
        """,
        [lease.key for lease in leases],
        [lease.fence for lease in leases],
        reason,
    )


def _within(jobs: Sequence[Row], codes: int) -> list[Row]:
    """The first of `jobs` that together have at most `codes` codes; one at least."""
    taken: list[Row] = []
    for job in jobs:
        codes -= job["code_count"]
        if taken and codes < 0:
            break
        taken.append(job)
    return taken


async def _make_messages(connection: Connection, jobs: Sequence[Row]) -> int:
    # A cancellation locks the mail job too, so it is either seen here or sees the messages.
    lines = await connection.fetch(
        """
        SELECT order_id, number, recipient_email, recipient_name FROM lines
        WHERE order_id = ANY($1::int[]) AND recipient_email IS NOT NULL AND NOT EXISTS (
            SELECT FROM line_states AS states
            WHERE states.order_id = lines.order_id AND states.number = lines.number AND states.state = 'cancelled')
        ORDER BY order_id, number
        """,
        [job["order_id"] for job in jobs],
    )
    # One message for each distinct address, letter case ignored, as the order's recipientCount counts them.
    numbers: dict[tuple[int, str], list[int]] = defaultdict(list)
    first: dict[tuple[int, str], Row] = {}
    for line in lines:
        key = (line["order_id"], address_key(line["recipient_email"]))
        numbers[key].append(line["number"])
        first.setdefault(key, line)
    await connection.execute(
        """
        INSERT INTO messages (order_id, environment, email, name, line_numbers, due_at, rank_at, created_at)
        SELECT order_id, environment, email, name, line_numbers::int[], due_at,
               due_at + (row_number() OVER (PARTITION BY order_id ORDER BY place) / $6::int) * $7::float8 * interval '1 second', now
        FROM unnest($1::int[], $2::text[], $3::text[], $4::text[]) WITH ORDINALITY
                AS new (order_id, email, name, line_numbers, place)
        JOIN mail_jobs USING (order_id), (SELECT clock_now()) AS clock (now)
        WHERE order_id = ANY($5::int[])
        ORDER BY place
        ON CONFLICT DO NOTHING
        """,
        [order_id for order_id, _ in first],
        [line["recipient_email"] for line in first.values()],
        [line["recipient_name"] for line in first.values()],
        [f"{{{','.join(map(str, numbers[key]))}}}" for key in first],
        [job["order_id"] for job in jobs],
        RANKED_TOGETHER,
        RANK_GAP_S,
    )
    return len(first)


def _message(row: Row, order: Row, lines: Sequence[Row], vault: Vault, public_url: str) -> Message:
    reference = order["reference"]
    codes = []
    for line in lines:
        code = open_code(vault, line["sealed"], reference, line["number"])
        codes.append(LetterCode(code.code_text, code.pin_text, claim_link(code, vault, public_url)))
    comes_as = CHOICE if order["collection"] else VOUCHER if order["is_digital"] else PARCEL
    letter = Letter(
        kind=row["kind"],
        reference=reference,
        edition=row["edition"],
        environment=row["environment"],
        language=language_of(order["language"], order["country"]),
        email=row["email"],
        name=row["name"],
        sender=order["from_name"],
        message=order["message"],
        wrapping_key=order["wrapping_key"],
        gift=order["settled"] or order["product"] or order["collection"] or "",
        comes_as=comes_as,
        # What a physical gift costs is between the sender and us.
        value_minor=None if comes_as == PARCEL else order["value_minor"],
        currency=order["currency"],
        expiry_days=order["expiry_after_days"],
        recipients=order["recipient_count"],
        codes=codes,
        carrier=order["carrier"],
        tracking_number=order["tracking_number"],
    )
    lease = Lease(row["id"], row["fence"])
    return Message(
        lease, row["order_id"], row["due_at"], order["age_s"], row["attempts"], row["line_numbers"], letter
    )


async def _write_captured(connection: Connection, captured: Sequence[Sent]) -> None:
    await connection.execute(
        """
        INSERT INTO captured_mail (message_id, environment, recipient, subject, sealed, captured_at)
        SELECT *, clock_now() FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bytea[])
        ON CONFLICT DO NOTHING
        """,
        [one.message.lease.key for one in captured],
        [one.message.letter.environment for one in captured],
        [one.message.letter.email for one in captured],
        [one.subject for one in captured],
        [one.captured for one in captured],
    )
