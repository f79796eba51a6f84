"""Finds lines by the recipient's address, erases recipients, and rotates the keys of encrypted columns of lines.

There is no index of addresses: each new line would have to update it, for a search that is made a few times a year. A search reads all
lines instead.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from largesse.base.email import email_key, erased_email, is_erased
from largesse.db.fragments import Fragment, compose, holds_address, identifier
from largesse.db.pool import Connection, Row
from largesse.encryption.columns import SealedTable
from largesse.encryption.vault import Compartment, DecryptionFailed, Vault
from largesse.events.store import erase_recipients_of
from largesse.jobs.registry import DueTimes, PeriodicTask, RoomTasks, with_connection
from largesse.lines.attempts import prune_guesses
from largesse.lines.codes import SealedCodes, open_code
from largesse.lines.states import LineKey

_LEFT_EMAILS = """
    SELECT customer_id, order_id, number, sealed_email FROM line_states
    WHERE (customer_id, order_id, number) > ($1, $2, $3) AND sealed_email IS NOT NULL
    ORDER BY customer_id, order_id, number LIMIT $4
"""
_LOCK_RECIPIENTS = """
    SELECT number, recipient_email, recipient_name FROM lines
    WHERE customer_id = $1 AND order_id = $2 AND number = ANY($3::int[]) ORDER BY number FOR UPDATE
"""
_ERASE_RECIPIENTS = """
    UPDATE lines SET recipient_email = erased.email, recipient_name = NULL, was_email = NULL
    FROM unnest($3::int[], $4::text[]) AS erased (number, email)
    WHERE lines.customer_id = $1 AND lines.order_id = $2 AND lines.number = erased.number
"""
_ERASE_EMAILS = """
    UPDATE line_states SET sealed_email = NULL
    WHERE customer_id = $1 AND order_id = $2 AND number = ANY($3::int[]) AND sealed_email IS NOT NULL
"""
# The next addresses that recipients gave, by their keys, and which of them are encrypted with an older key.
_EMAIL_KEYS = """
    SELECT customer_id, order_id, number, substring(sealed_email FROM 1 FOR 4) <> $1 AS is_old FROM line_states
    WHERE (customer_id, order_id, number) > ($3, $4, $5) AND sealed_email IS NOT NULL
    ORDER BY customer_id, order_id, number LIMIT $2
"""
_TAKE_EMAILS = """
    SELECT s.customer_id, s.order_id, s.number, s.sealed_email
    FROM unnest($2::int[], $3::int[], $4::int[]) AS wanted (customer_id, order_id, number)
    JOIN line_states s
        ON s.customer_id = wanted.customer_id AND s.order_id = wanted.order_id AND s.number = wanted.number
    WHERE substring(s.sealed_email FROM 1 FOR 4) <> $1 AND s.customer_id = ANY($2::int[])
    FOR NO KEY UPDATE OF s SKIP LOCKED
"""
_ALL_EMAILS = "SELECT customer_id, order_id, number, sealed_email FROM line_states WHERE sealed_email IS NOT NULL"
_PUT_EMAILS = """
    UPDATE line_states SET sealed_email = new.sealed
    FROM unnest($1::int[], $2::int[], $3::int[], $4::bytea[]) AS new (customer_id, order_id, number, sealed)
    WHERE line_states.customer_id = new.customer_id AND line_states.order_id = new.order_id
      AND line_states.number = new.number AND line_states.customer_id = ANY($1::int[])
"""


class Erased(NamedTuple):
    """The replacement of each address, by `email_key`, and the erased addresses and names.

    Lines with the same address get the same replacement, and lines with different addresses get different ones.
    """

    stand_ins: Mapping[str, str]
    removed: Sequence[tuple[str, str | None]]


def may_be(column: str) -> Fragment:
    """Returns SQL for whether an address may match the key $1 (`email_key`). The caller must compare the rows that it finds.

    Finds all addresses with characters beyond ASCII, as databases differ in how they lower their case.
    """
    return compose(
        """
        CASE WHEN $1::text ~ '^[[:ascii:]]*$' THEN lower({column} COLLATE "C") = $1::text
             ELSE {column} ~ '[^[:ascii:]]' END
        """,
        column=identifier(column),
    )


_OF_EMAIL = compose(
    """
    SELECT customer_id, order_id, number, recipient_email FROM lines
    WHERE recipient_email IS NOT NULL AND {may_be}
    """,
    may_be=may_be("recipient_email"),
)
_ADDRESSES = """
    SELECT number, recipient_email FROM lines WHERE customer_id = $1 AND order_id = $2 AND number = ANY($3::int[])
"""
_EVENTS_OF_EMAIL = compose(
    """
    SELECT customer_id, id, recipient FROM (
        SELECT customer_id, id, convert_from(body, 'UTF8')::json ->> 'recipient' AS recipient FROM events
        WHERE line_number IS NOT NULL AND ($2::int IS NULL OR customer_id = $2)) AS gift_events
    WHERE recipient IS NOT NULL AND {may_be}
    """,
    may_be=may_be("recipient"),
)


async def find_recipient_lines(connection: Connection, email: str) -> list[LineKey]:
    """Returns the lines sent to that address, letter case ignored. Reads all lines."""
    rows = await connection.fetch(_OF_EMAIL, email_key(email))
    return [
        LineKey(row["customer_id"], row["order_id"], row["number"])
        for row in rows
        if email_key(row["recipient_email"]) == email_key(email)
    ]


async def find_readdressed(
    connection: Connection, order: tuple[int, int], numbers: Collection[int], email: str
) -> set[int]:
    """Returns those of some lines of an order that are sent to another address than `email` now."""
    rows = await connection.fetch(_ADDRESSES, *order, list(numbers))
    return {row["number"] for row in rows if email_key(row["recipient_email"] or "") != email_key(email)}


async def read_left_emails(connection: Connection, after: LineKey, limit: int) -> list[tuple[LineKey, bytes]]:
    """Returns the next lines whose recipient gave an address, with the encrypted address."""
    rows = await connection.fetch(_LEFT_EMAILS, *after, limit)
    return [(LineKey(*tuple(row)[:3]), row["sealed_email"]) for row in rows]


async def erase_recipients(connection: Connection, order: tuple[int, int], numbers: Sequence[int]) -> Erased:
    """Locks lines of an order (customer and id), and erases their addresses and names, and the addresses that recipients gave."""
    rows = await connection.fetch(_LOCK_RECIPIENTS, *order, list(numbers))
    stand_ins: dict[str, str] = {}
    removed: list[tuple[str, str | None]] = []
    erased = []
    for row in rows:
        email = row["recipient_email"]
        if email is not None and not is_erased(email):
            erased.append((row["number"], stand_ins.setdefault(email_key(email), erased_email(row["number"]))))
            removed.append((email, row["recipient_name"]))
    await connection.execute(
        _ERASE_RECIPIENTS, *order, [number for number, _ in erased], [email for _, email in erased]
    )
    await connection.execute(_ERASE_EMAILS, *order, list(numbers))
    await connection.execute(_ERASE_MESSAGES, *order, list(numbers))
    return Erased(stand_ins, removed)


_ERASE_MESSAGES = """
    UPDATE line_messages SET message = ''
    WHERE customer_id = $1 AND order_id = $2 AND number = ANY($3::int[]) AND message <> ''
"""
# Messages to others that name an address. Reads all messages.
_MENTIONING = compose(
    "WHERE {holds} AND ($2::int IS NULL OR customer_id = $2)", holds=holds_address(Fragment("lower(message)"))
)
_ORDERS_MENTIONING = compose(
    "SELECT DISTINCT customer_id, order_id FROM line_messages {mentioning}", mentioning=_MENTIONING
)
_ERASE_MENTIONS = compose("UPDATE line_messages SET message = '' {mentioning}", mentioning=_MENTIONING)


async def find_messages_mentioning(
    connection: Connection, email: str, customer_id: int | None
) -> list[tuple[int, int]]:
    """Returns the customer and id of each order, of one customer or of all, with a line whose own message contains an address."""
    rows = await connection.fetch(_ORDERS_MENTIONING, email_key(email), customer_id)
    return [(row["customer_id"], row["order_id"]) for row in rows]


async def erase_from_messages(connection: Connection, email: str, customer_id: int | None) -> None:
    """Erases the lines' own messages, of one customer or of all, that contain an address."""
    await connection.execute(_ERASE_MENTIONS, email_key(email), customer_id)


async def erase_from_lifecycle(connection: Connection, email: str, customer_id: int | None) -> int:
    """Erases an address from events of one customer or of all, even if the line has another address now. Returns from how many. Reads all events."""
    rows = await connection.fetch(_EVENTS_OF_EMAIL, email_key(email), customer_id)
    found = [(row["customer_id"], row["id"]) for row in rows if email_key(row["recipient"]) == email_key(email)]
    await erase_recipients_of(connection, found)
    return len(found)


def _renew(vault: Vault, row: Row) -> tuple[bytes, int, int]:
    """Returns the code, encrypted again, and its look-up number before and now."""
    if row["reference"] is None:
        raise DecryptionFailed("the line has no order")
    code = open_code(vault, row["sealed"], row["reference"], row["number"])
    renewed = SealedCodes(vault, [code], row["reference"], first=row["number"])
    (sealed,) = renewed
    return sealed.sealed, row["code_lookup"], sealed.lookup


# A code is looked up under all keys, so it is found before and after the rotation.
# Wrong PINs are counted by the look-up number. Counting locks the line, so the count is moved along with it.
CODES = SealedTable(
    table="lines",
    column="sealed",
    before_all=(-1, 0, 0),
    part=lambda vault: vault.codes,
    window="""
        SELECT customer_id, order_id, number, substring(sealed FROM 1 FOR 4) <> $1 AS is_old FROM lines
        WHERE (customer_id, order_id, number) > ($3, $4, $5) ORDER BY customer_id, order_id, number LIMIT $2
    """,
    take="""
        SELECT l.customer_id, l.order_id, l.number, l.sealed, l.code_lookup, o.reference
        FROM unnest($2::int[], $3::int[], $4::int[]) AS wanted (customer_id, order_id, number)
        JOIN lines l ON l.customer_id = wanted.customer_id AND l.order_id = wanted.order_id AND l.number = wanted.number
        LEFT JOIN orders o ON o.customer_id = l.customer_id AND o.id = l.order_id AND o.customer_id = ANY($2::int[])
        WHERE substring(l.sealed FROM 1 FOR 4) <> $1 AND l.customer_id = ANY($2::int[]) FOR UPDATE OF l SKIP LOCKED
    """,
    renew=_renew,
    put="""
        UPDATE lines SET sealed = new.sealed, code_lookup = new.lookup
        FROM unnest($1::int[], $2::int[], $3::int[], $4::bytea[], $5::bigint[], $6::bigint[])
            AS new (customer_id, order_id, number, sealed, lookup_before, lookup)
        WHERE lines.customer_id = new.customer_id AND lines.order_id = new.order_id AND lines.number = new.number
          AND lines.customer_id = ANY($1::int[])
    """,
    put_too=(
        """
        UPDATE pin_failures SET key = new.lookup
        FROM unnest($1::int[], $2::int[], $3::int[], $4::bytea[], $5::bigint[], $6::bigint[])
            AS new (customer_id, order_id, number, sealed, lookup_before, lookup)
        WHERE NOT decoy AND key = lookup_before AND lookup <> key
        """,
    ),
)


def left_emails(part: Callable[[Vault], Compartment], renew: Callable[[Vault, Row], tuple[bytes]]) -> SealedTable:
    """Returns the encrypted column of addresses that recipients gave, for the package that encrypts them."""
    return SealedTable(
        table="line_states",
        column="sealed_email",
        before_all=(-1, 0, 0),
        part=part,
        window=_EMAIL_KEYS,
        take=_TAKE_EMAILS,
        renew=renew,
        put=_PUT_EMAILS,
        read=_ALL_EMAILS,
    )


TASKS = RoomTasks(
    periodic=(PeriodicTask("prune_guesses", with_connection(prune_guesses), every_s=60.0),),
    due_times=(
        DueTimes(
            "line_states",
            ("expires_at",),
            "state IN ('claimed', 'chosen')",
            staging="EXISTS (SELECT FROM orders WHERE orders.customer_id = line_states.customer_id "
            "AND orders.id = line_states.order_id AND orders.environment = 'staging')",
        ),
    ),
)
