"""Retention of the back office's sign-in data, and key rotation for the secrets of second steps."""

from __future__ import annotations

from largesse.customers.second_step import totp_context
from largesse.db.pool import Row
from largesse.encryption.columns import SealedTable
from largesse.encryption.vault import Vault
from largesse.jobs.registry import RoomTasks
from largesse.jobs.retention import Old
from largesse.staff import store


def _renew(vault: Vault, row: Row) -> tuple[bytes]:
    context = totp_context(row["id"], store)
    return (vault.second_steps.seal(vault.second_steps.open(row["totp"], context), context),)


SECOND_STEPS = SealedTable(
    table="staff",
    column="totp",
    before_all=(0,),
    part=lambda vault: vault.second_steps,
    window="""
        SELECT id, substring(totp FROM 1 FOR 4) <> $1 AS is_old FROM staff
        WHERE id > $3 AND totp IS NOT NULL ORDER BY id LIMIT $2
    """,
    take="""
        SELECT id, totp FROM staff
        WHERE id = ANY($2::int[]) AND substring(totp FROM 1 FOR 4) <> $1 FOR NO KEY UPDATE SKIP LOCKED
    """,
    renew=_renew,
    put="""
        UPDATE staff SET totp = new.totp FROM unnest($1::int[], $2::bytea[]) AS new (id, totp) WHERE staff.id = new.id
    """,
)

TASKS = RoomTasks(
    retention=(
        Old("staff_form_posts", "posted_at", days=1),
        Old("staff_sessions", "ends_at", days=30),
        Old("staff_links", "ends_at", days=30),
    )
)
