"""Bringing captured mail under the newest master key."""

from __future__ import annotations

from largesse.base.vault import Vault
from largesse.database import Row
from largesse.delivery.mail.mailbox import sealing_context
from largesse.sealing import SealedTable


def _renew(vault: Vault, row: Row) -> tuple[bytes]:
    context = sealing_context(row["message_id"])
    return (vault.captured.seal(vault.captured.open(row["sealed"], context), context),)


CAPTURED = SealedTable(
    table="captured_mail",
    column="sealed",
    before_all=(0,),
    part=lambda vault: vault.captured,
    window="""
        SELECT id, substring(sealed FROM 1 FOR 4) <> $1 AS is_old FROM captured_mail WHERE id > $3 ORDER BY id LIMIT $2
    """,
    take="""
        SELECT id, message_id, sealed FROM captured_mail
        WHERE id = ANY($2::bigint[]) AND substring(sealed FROM 1 FOR 4) <> $1 FOR NO KEY UPDATE SKIP LOCKED
    """,
    renew=_renew,
    put="""
        UPDATE captured_mail SET sealed = new.sealed
        FROM unnest($1::bigint[], $2::bytea[]) AS new (id, sealed) WHERE captured_mail.id = new.id
    """,
)
