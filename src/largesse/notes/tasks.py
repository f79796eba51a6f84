"""What thank-you notes register: their text is encrypted again under the newest key. They go with their recipient (`privacy`)."""

from __future__ import annotations

from largesse.db.pool import Row
from largesse.encryption.columns import SealedTable
from largesse.encryption.vault import Vault
from largesse.lines.states import LineKey
from largesse.notes.service import note_context


def _renew(vault: Vault, row: Row) -> tuple[bytes]:
    context = note_context(LineKey(row["customer_id"], row["order_id"], row["number"]))
    return (vault.notes.seal(vault.notes.open(row["sealed"], context), context),)


NOTES = SealedTable(
    table="thank_you_notes",
    column="sealed",
    before_all=(-1, 0),
    part=lambda vault: vault.notes,
    window="""
        SELECT customer_id, id, substring(sealed FROM 1 FOR 4) <> $1 AS is_old FROM thank_you_notes
        WHERE (customer_id, id) > ($3, $4) ORDER BY customer_id, id LIMIT $2
    """,
    take="""
        SELECT customer_id, id, order_id, number, sealed
        FROM unnest($2::int[], $3::bigint[]) AS wanted (customer_id, id) JOIN thank_you_notes USING (customer_id, id)
        WHERE substring(sealed FROM 1 FOR 4) <> $1 FOR NO KEY UPDATE OF thank_you_notes SKIP LOCKED
    """,
    renew=_renew,
    put="""
        UPDATE thank_you_notes SET sealed = new.sealed
        FROM unnest($1::int[], $2::bigint[], $3::bytea[]) AS new (customer_id, id, sealed)
        WHERE thank_you_notes.customer_id = new.customer_id AND thank_you_notes.id = new.id
    """,
)
