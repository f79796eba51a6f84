"""Bringing what is sealed of lines under the newest master key: codes, with the numbers they are found by, and addresses."""

from __future__ import annotations

from collections.abc import Callable

from largesse.base.vault import Compartment, SealBroken, Vault
from largesse.database import Row
from largesse.lines.issuing import SealedCodes, open_code
from largesse.sealing import SealedTable


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
    before_all=(0, 0),
    part=lambda vault: vault.codes,
    window="""
        SELECT order_id, number, substring(sealed FROM 1 FOR 4) <> $1 AS is_old FROM lines
        WHERE (order_id, number) > ($3, $4) ORDER BY order_id, number LIMIT $2
    """,
    take="""
        SELECT l.order_id, l.number, l.sealed, l.code_lookup, o.reference
        FROM unnest($2::int[], $3::int[]) AS wanted (order_id, number)
        JOIN lines l ON l.order_id = wanted.order_id AND l.number = wanted.number
        LEFT JOIN orders o ON o.id = l.order_id
        WHERE substring(l.sealed FROM 1 FOR 4) <> $1 FOR UPDATE OF l SKIP LOCKED
    """,
    renew=_renew,
    put="""
        WITH new AS MATERIALIZED (
            SELECT * FROM unnest($1::int[], $2::int[], $3::bytea[], $4::bigint[], $5::bigint[])
                AS new (order_id, number, sealed, lookup_before, lookup)
        ), moved AS (
            UPDATE pin_failures SET key = new.lookup FROM new WHERE NOT decoy AND key = lookup_before AND lookup <> key
        )
        UPDATE lines SET sealed = new.sealed, code_lookup = new.lookup FROM new
        WHERE lines.order_id = new.order_id AND lines.number = new.number
    """,
)


def left_emails(
    part: Callable[[Vault], Compartment], renew: Callable[[Vault, Row], tuple[bytes]]
) -> SealedTable:
    """The addresses that recipients left, for the room that seals them: in that compartment, and as `renew` does."""
    return SealedTable(
        table="line_states",
        column="sealed_email",
        before_all=(0, 0),
        part=part,
        window="""
            SELECT order_id, number, substring(sealed_email FROM 1 FOR 4) <> $1 AS is_old FROM line_states
            WHERE (order_id, number) > ($3, $4) AND sealed_email IS NOT NULL ORDER BY order_id, number LIMIT $2
        """,
        take="""
            SELECT s.order_id, s.number, s.sealed_email
            FROM unnest($2::int[], $3::int[]) AS wanted (order_id, number)
            JOIN line_states s ON s.order_id = wanted.order_id AND s.number = wanted.number
            WHERE substring(s.sealed_email FROM 1 FOR 4) <> $1 FOR NO KEY UPDATE OF s SKIP LOCKED
        """,
        renew=renew,
        put="""
            UPDATE line_states SET sealed_email = new.sealed
            FROM unnest($1::int[], $2::int[], $3::bytea[]) AS new (order_id, number, sealed)
            WHERE line_states.order_id = new.order_id AND line_states.number = new.number
        """,
    )
