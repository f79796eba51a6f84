"""Bringing the signing secrets of webhooks under the newest master key."""

from __future__ import annotations

from uuid import UUID

from largesse.base.vault import Vault
from largesse.database import Row
from largesse.delivery.webhooks.subscriptions import secret_context
from largesse.sealing import SealedTable


def _renew(vault: Vault, row: Row) -> tuple[bytes]:
    context = secret_context(row["id"])
    return (vault.webhooks.seal(vault.webhooks.open(row["sealed_secret"], context), context),)


SECRETS = SealedTable(
    table="webhook_subscriptions",
    column="sealed_secret",
    before_all=(UUID(int=0),),
    part=lambda vault: vault.webhooks,
    window="""
        SELECT id, substring(sealed_secret FROM 1 FOR 4) <> $1 AS is_old FROM webhook_subscriptions
        WHERE id > $3 ORDER BY id LIMIT $2
    """,
    take="""
        SELECT id, sealed_secret FROM webhook_subscriptions
        WHERE id = ANY($2::uuid[]) AND substring(sealed_secret FROM 1 FOR 4) <> $1 FOR NO KEY UPDATE SKIP LOCKED
    """,
    renew=_renew,
    put="""
        UPDATE webhook_subscriptions SET sealed_secret = new.sealed
        FROM unnest($1::uuid[], $2::bytea[]) AS new (id, sealed) WHERE webhook_subscriptions.id = new.id
    """,
)
