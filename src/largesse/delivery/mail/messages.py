"""Messages in the database: leased, and read with their codes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from largesse.base.i18n import language_of
from largesse.base.vault import Vault
from largesse.catalogue import Details, picture_path
from largesse.database import Connection, Row, is_spread
from largesse.delivery.mail.letter import CHOICE, PARCEL, VOUCHER, Letter, LetterCode
from largesse.delivery.queue import Lease, Queue, Terms, held_columns
from largesse.lines import claim_link, open_code
from largesse.orders.recipients import MAX_CODES

_TERMS = Terms()

# How a large order is spread in the line: this many of its messages, then a gap in rank that others may use.
RANKED_TOGETHER = 50
RANK_GAP_S = 0.25
# So far behind the instant it is due is a message ranked at most; one that is tried again, just so far. Then what is ranked
# later than so far from now is not due yet, and the index of ranks need not be read any further.
SPREAD_S = MAX_CODES / RANKED_TOGETHER * RANK_GAP_S

MESSAGES = Queue(
    "messages", "id", "bigint", ready="state = 'pending'", order="rank_at", order_ahead_s=SPREAD_S
)


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


async def take(
    connection: Connection,
    limit: int,
    vault: Vault,
    public_url_of: Callable[[str], str],
    terms: Terms = _TERMS,
) -> list[Message]:
    """Leases up to `limit` messages that are due, with their letters. Call it inside a transaction."""
    taken = await MESSAGES.take(connection, limit, terms=terms)
    ids = [row["customer_id"] for row in taken], [row["id"] for row in taken]
    orders = await connection.fetch(
        """
        SELECT messages.id, orders.reference, orders.message, orders.from_name, orders.wrapping_key, orders.value_minor,
               orders.currency, orders.country, orders.expiry_after_days, orders.recipient_count,
               extract(epoch FROM clock_now() - coalesce(messages.trying_since, messages.created_at))::float8 AS age_s,
               products.name AS product, products.is_digital, collections.name AS collection,
               settled.name AS settled, carrier, tracking_number, coalesce(settled.picture, products.picture) AS picture,
               coalesce(settled.description, products.description) AS description,
               coalesce(settled.how_to_redeem, products.how_to_redeem) AS how_to_redeem,
               coalesce(settled.terms, products.terms) AS terms,
               -- Whoever claimed a gift has chosen a language.
               (SELECT language FROM line_states AS claimed
                WHERE claimed.customer_id = orders.customer_id AND claimed.order_id = orders.id
                AND claimed.number = ANY(line_numbers) AND language IS NOT NULL
                ORDER BY claimed_at DESC LIMIT 1) AS language
        FROM unnest($1::int[], $2::bigint[]) AS taken (customer_id, id)
        JOIN messages ON messages.customer_id = taken.customer_id AND messages.id = taken.id
        JOIN orders ON orders.customer_id = messages.customer_id AND orders.id = messages.order_id
        LEFT JOIN products ON products.id = orders.product_id
        LEFT JOIN collections ON collections.id = orders.collection_id
        -- A notification is of one line, whose number is its edition.
        LEFT JOIN line_states ON kind <> 'gift' AND line_states.customer_id = orders.customer_id
            AND line_states.order_id = orders.id AND line_states.number = edition
        LEFT JOIN products AS settled ON settled.id = line_states.product_id
        LEFT JOIN shipments ON kind = 'shipped' AND shipments.customer_id = orders.customer_id
            AND shipments.order_id = orders.id AND shipments.number = edition
        """,
        *ids,
    )
    lines = await connection.fetch(
        """
        SELECT messages.id, lines.number, sealed
        FROM unnest($1::int[], $2::bigint[]) AS taken (customer_id, id)
        JOIN messages ON messages.customer_id = taken.customer_id AND messages.id = taken.id
        CROSS JOIN LATERAL unnest(line_numbers) AS wanted (number)
        JOIN lines ON lines.customer_id = messages.customer_id AND lines.order_id = messages.order_id
            AND lines.number = wanted.number
        ORDER BY lines.number
        """,
        *ids,
    )
    order_of = {row["id"]: row for row in orders}
    lines_of: dict[int, list[Row]] = defaultdict(list)
    for line in lines:
        lines_of[line["id"]].append(line)
    spread = is_spread(connection)
    return [
        _message(row, order_of[row["id"]], lines_of[row["id"]], vault, public_url_of, spread)
        for row in sorted(taken, key=lambda row: (row["rank_at"], row["id"]))
    ]


async def still_stands(connection: Connection, message: Message) -> bool:
    """Whether a message may go out as it was read: leased by nobody else, and no code in it voided, since."""
    stands: bool | None = await connection.fetchval(
        """
        SELECT fence = $3 AND state = 'pending' AND line_numbers = $4 FROM messages WHERE customer_id = $1 AND id = $2
        """,
        message.lease.customer_id,
        message.lease.key,
        message.lease.fence,
        message.line_numbers,
    )
    return bool(stands)


async def put_back(connection: Connection, leases: Sequence[Lease], reason: str) -> None:
    """Frees messages that the mail server could not even be offered, with the reason; it costs them no attempt."""
    await connection.execute(
        """
        UPDATE messages SET leased_until = '-infinity', reason = $4, fault = 'server'
        FROM unnest($1::int[], $2::bigint[], $3::bigint[]) AS held (held_by, held_id, held_fence)
        WHERE customer_id = held_by AND id = held_id AND fence = held_fence AND state = 'pending'
        """,
        *held_columns(leases),
        reason,
    )


def _message(
    row: Row,
    order: Row,
    lines: Sequence[Row],
    vault: Vault,
    public_url_of: Callable[[str], str],
    spread: bool,
) -> Message:
    reference = order["reference"]
    whose, public_url = row["customer_id"] if spread else None, public_url_of(row["environment"])
    codes = []
    for line in lines:
        code = open_code(vault, line["sealed"], reference, line["number"])
        codes.append(LetterCode(code.code_text, code.pin_text, claim_link(code, vault, public_url, whose)))
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
        picture=public_url + picture_path(order["picture"]) if order["picture"] else None,
        details=Details(order["description"], order["how_to_redeem"], order["terms"]),
    )
    lease = Lease(row["customer_id"], row["id"], row["fence"])
    return Message(
        lease, row["order_id"], row["due_at"], order["age_s"], row["attempts"], row["line_numbers"], letter
    )
