"""Finding the lines of a recipient by address, and erasing who that is.

No index leads from an address to its lines: each line would have to be written into it when its order is placed, for something that is
wanted a few times a year. All lines are read instead.

Bringing what is sealed of lines under the newest master key: codes, with the numbers they are found by, and addresses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from largesse.base.email import email_key, erased_email, is_erased
from largesse.db.pool import Connection, Row
from largesse.db.scope import WORKER
from largesse.encryption.columns import SealedTable
from largesse.encryption.vault import Compartment, DecryptionFailed, Vault
from largesse.jobs.registry import PeriodicTask, RoomTasks, WorkerContext
from largesse.lines.attempts import prune_guesses
from largesse.lines.codes import SealedCodes, open_code
from largesse.lines.states import LineKey


class Erased(NamedTuple):
    """What stands for each address from now on, by its key, and the addresses and names that are gone.

    Lines of one address go on having something in common, and those of two have not.
    """

    stand_ins: Mapping[str, str]
    told: Sequence[tuple[str, str | None]]


def may_be(column: str, key: str) -> str:
    """SQL for whether an address may be the one of a key (`email_key`); whoever asks compares what was found.

    Of addresses beyond ASCII all may, as databases differ in what the small form of a letter is.
    """
    return f"""
        CASE WHEN {key}::text ~ '^[[:ascii:]]*$' THEN lower({column} COLLATE "C") = {key}::text
             ELSE {column} ~ '[^[:ascii:]]' END
    """


async def find_recipient_lines(connection: Connection, email: str) -> list[LineKey]:
    """The lines whose gift was sent to that address, letter case ignored. Reads all lines."""
    rows = await connection.fetch(
        f"""
        SELECT customer_id, order_id, number, recipient_email FROM lines
        WHERE recipient_email IS NOT NULL AND {may_be("recipient_email", "$1")}
        """,  # noqa: S608 - made of constants
        email_key(email),
    )
    return [
        LineKey(row["customer_id"], row["order_id"], row["number"])
        for row in rows
        if email_key(row["recipient_email"]) == email_key(email)
    ]


async def read_left_emails(connection: Connection, after: LineKey, limit: int) -> list[tuple[LineKey, bytes]]:
    """The next lines whose recipient left an address, and what is sealed of it."""
    rows = await connection.fetch(
        """
        SELECT customer_id, order_id, number, sealed_email FROM line_states
        WHERE (customer_id, order_id, number) > ($1, $2, $3) AND sealed_email IS NOT NULL
        ORDER BY customer_id, order_id, number LIMIT $4
        """,
        *after,
        limit,
    )
    return [(LineKey(*tuple(row)[:3]), row["sealed_email"]) for row in rows]


async def erase_recipients(connection: Connection, order: tuple[int, int], numbers: Sequence[int]) -> Erased:
    """Erases address and name of those lines of an order (customer and id), and addresses that were left there; locks the lines."""
    rows = await connection.fetch(
        """
        SELECT number, recipient_email, recipient_name FROM lines
        WHERE customer_id = $1 AND order_id = $2 AND number = ANY($3::int[]) ORDER BY number FOR UPDATE
        """,
        *order,
        list(numbers),
    )
    stand_ins: dict[str, str] = {}
    told: list[tuple[str, str | None]] = []
    erased = []
    for row in rows:
        email = row["recipient_email"]
        if email is not None and not is_erased(email):
            erased.append((row["number"], stand_ins.setdefault(email_key(email), erased_email(row["number"]))))
            told.append((email, row["recipient_name"]))
    await connection.execute(
        """
        UPDATE lines SET recipient_email = erased.email, recipient_name = NULL
        FROM unnest($3::int[], $4::text[]) AS erased (number, email)
        WHERE lines.customer_id = $1 AND lines.order_id = $2 AND lines.number = erased.number
        """,
        *order,
        [number for number, _ in erased],
        [email for _, email in erased],
    )
    await connection.execute(
        """
        UPDATE line_states SET sealed_email = NULL
        WHERE customer_id = $1 AND order_id = $2 AND number = ANY($3::int[]) AND sealed_email IS NOT NULL
        """,
        *order,
        list(numbers),
    )
    return Erased(stand_ins, told)


def _renew(vault: Vault, row: Row) -> tuple[bytes, int, int]:
    """What is sealed, and the number it is found by, before and now."""
    if row["reference"] is None:
        raise DecryptionFailed("the line has no order")
    code = open_code(vault, row["sealed"], row["reference"], row["number"])
    renewed = SealedCodes(vault, [code], row["reference"], first=row["number"])
    (sealed,) = renewed
    return sealed.sealed, row["code_lookup"], sealed.lookup


# Whoever looks a code up asks for its numbers under all keys, so that it is found before and after. Wrong PINs are counted by the
# number: whoever counts one holds the line, so that the count moves with it.
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
    """The addresses that recipients left, for the room that seals them: in that compartment, and as `renew` does."""
    return SealedTable(
        table="line_states",
        column="sealed_email",
        before_all=(-1, 0, 0),
        part=part,
        window="""
            SELECT customer_id, order_id, number, substring(sealed_email FROM 1 FOR 4) <> $1 AS is_old FROM line_states
            WHERE (customer_id, order_id, number) > ($3, $4, $5) AND sealed_email IS NOT NULL
            ORDER BY customer_id, order_id, number LIMIT $2
        """,
        take="""
            SELECT s.customer_id, s.order_id, s.number, s.sealed_email
            FROM unnest($2::int[], $3::int[], $4::int[]) AS wanted (customer_id, order_id, number)
            JOIN line_states s
                ON s.customer_id = wanted.customer_id AND s.order_id = wanted.order_id AND s.number = wanted.number
            WHERE substring(s.sealed_email FROM 1 FOR 4) <> $1 AND s.customer_id = ANY($2::int[])
            FOR NO KEY UPDATE OF s SKIP LOCKED
        """,
        renew=renew,
        put="""
            UPDATE line_states SET sealed_email = new.sealed
            FROM unnest($1::int[], $2::int[], $3::int[], $4::bytea[]) AS new (customer_id, order_id, number, sealed)
            WHERE line_states.customer_id = new.customer_id AND line_states.order_id = new.order_id
              AND line_states.number = new.number AND line_states.customer_id = ANY($1::int[])
        """,
    )


async def _prune_guesses(context: WorkerContext) -> bool:
    async with context.database.connection(WORKER) as connection:
        await prune_guesses(connection)
    return False


TASKS = RoomTasks(periodic=(PeriodicTask("prune_guesses", _prune_guesses, every_s=60.0),))
