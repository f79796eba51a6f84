"""Bringing captured mail under the newest master key."""

from __future__ import annotations

from largesse.base.vault import Vault
from largesse.database.pool import Row
from largesse.delivery.mail.mailbox import sealing_context
from largesse.sealing.tables import SealedTable


def _renew(vault: Vault, row: Row) -> tuple[bytes]:
    context = sealing_context(row["message_id"])
    return (vault.captured.seal(vault.captured.open(row["sealed"], context), context),)


CAPTURED = SealedTable(
    table="captured_mail",
    column="sealed",
    before_all=(-1, 0),
    part=lambda vault: vault.captured,
    window="""
        SELECT customer_id, id, substring(sealed FROM 1 FOR 4) <> $1 AS is_old FROM captured_mail
        WHERE (customer_id, id) > ($3, $4) ORDER BY customer_id, id LIMIT $2
    """,
    take="""
        SELECT customer_id, id, message_id, sealed
        FROM unnest($2::int[], $3::bigint[]) AS wanted (customer_id, id) JOIN captured_mail USING (customer_id, id)
        WHERE substring(sealed FROM 1 FOR 4) <> $1 FOR NO KEY UPDATE OF captured_mail SKIP LOCKED
    """,
    renew=_renew,
    put="""
        UPDATE captured_mail SET sealed = new.sealed
        FROM unnest($1::int[], $2::bigint[], $3::bytea[]) AS new (customer_id, id, sealed)
        WHERE captured_mail.customer_id = new.customer_id AND captured_mail.id = new.id
    """,
)
