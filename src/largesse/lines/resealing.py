"""Bringing what is sealed of lines under the newest master key: codes, with the numbers they are found by, and addresses."""

from __future__ import annotations

from collections.abc import Callable

from largesse.base.vault import Compartment, SealBroken, Vault
from largesse.database.pool import Row
from largesse.lines.issuing import SealedCodes, open_code
from largesse.sealing.tables import SealedTable


def _renew(vault: Vault, row: Row) -> tuple[bytes, int, int]:
    """What is sealed, and the number it is found by, before and now."""
    if row["reference"] is None:
        raise SealBroken("the line has no order")
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


def left_emails(
    part: Callable[[Vault], Compartment], renew: Callable[[Vault, Row], tuple[bytes]]
) -> SealedTable:
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
