"""What privacy registers: addresses of open requests are encrypted again under the newest master key."""

from __future__ import annotations

from largesse.db.pool import Row
from largesse.encryption.columns import SealedTable
from largesse.encryption.vault import Vault
from largesse.privacy.requests import request_context


def _renew(vault: Vault, row: Row) -> tuple[bytes]:
    context = request_context(row["id"])
    return (vault.emails.seal(vault.emails.open(row["sealed_email"], context), context),)


REQUESTS = SealedTable(
    table="privacy_requests",
    column="sealed_email",
    before_all=(0,),
    part=lambda vault: vault.emails,
    window="""
        SELECT id, substring(sealed_email FROM 1 FOR 4) <> $1 AS is_old FROM privacy_requests
        WHERE id > $3 AND sealed_email IS NOT NULL ORDER BY id LIMIT $2
    """,
    take="""
        SELECT id, sealed_email FROM privacy_requests
        WHERE id = ANY($2::int[]) AND substring(sealed_email FROM 1 FOR 4) <> $1 FOR NO KEY UPDATE SKIP LOCKED
    """,
    renew=_renew,
    put="""
        UPDATE privacy_requests SET sealed_email = new.sealed
        FROM unnest($1::int[], $2::bytea[]) AS new (id, sealed) WHERE privacy_requests.id = new.id
    """,
)
