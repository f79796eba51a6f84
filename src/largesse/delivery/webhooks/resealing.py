"""Bringing the signing secrets of webhooks under the newest master key."""

from __future__ import annotations

from uuid import UUID

from largesse.base.vault import Vault
from largesse.database.pool import Row
from largesse.delivery.webhooks.subscriptions import secret_context
from largesse.sealing.tables import SealedTable


def _renew(vault: Vault, row: Row) -> tuple[bytes]:
    context = secret_context(row["id"])
    return (vault.webhooks.seal(vault.webhooks.open(row["sealed_secret"], context), context),)


SECRETS = SealedTable(
    table="webhook_subscriptions",
    column="sealed_secret",
    before_all=(-1, UUID(int=0)),
    part=lambda vault: vault.webhooks,
    window="""
        SELECT customer_id, id, substring(sealed_secret FROM 1 FOR 4) <> $1 AS is_old FROM webhook_subscriptions
        WHERE (customer_id, id) > ($3, $4) ORDER BY customer_id, id LIMIT $2
    """,
    take="""
        SELECT customer_id, id, sealed_secret
        FROM unnest($2::int[], $3::uuid[]) AS wanted (customer_id, id) JOIN webhook_subscriptions USING (customer_id, id)
        WHERE substring(sealed_secret FROM 1 FOR 4) <> $1 FOR NO KEY UPDATE OF webhook_subscriptions SKIP LOCKED
    """,
    renew=_renew,
    put="""
        UPDATE webhook_subscriptions SET sealed_secret = new.sealed
        FROM unnest($1::int[], $2::uuid[], $3::bytea[]) AS new (customer_id, id, sealed)
        WHERE webhook_subscriptions.customer_id = new.customer_id AND webhook_subscriptions.id = new.id
    """,
)
