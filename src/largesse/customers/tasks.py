"""What of signing in is old and may go: forms that were answered, sessions and links that ended, tries that are allowed again.

Bringing the secrets of people's second steps under the newest master key.
"""

from __future__ import annotations

from largesse.customers.second_step import totp_context
from largesse.db.pool import Row
from largesse.encryption.columns import SealedTable
from largesse.encryption.vault import Vault
from largesse.jobs.registry import RoomTasks
from largesse.jobs.retention import Old


def _renew(vault: Vault, row: Row) -> tuple[bytes]:
    context = totp_context(row["id"])
    return (vault.second_steps.seal(vault.second_steps.open(row["totp"], context), context),)


SECOND_STEPS = SealedTable(
    table="people",
    column="totp",
    before_all=(0,),
    part=lambda vault: vault.second_steps,
    window="""
        SELECT id, substring(totp FROM 1 FOR 4) <> $1 AS is_old FROM people
        WHERE id > $3 AND totp IS NOT NULL ORDER BY id LIMIT $2
    """,
    take="""
        SELECT id, totp FROM people
        WHERE id = ANY($2::int[]) AND substring(totp FROM 1 FOR 4) <> $1 FOR NO KEY UPDATE SKIP LOCKED
    """,
    renew=_renew,
    put="""
        UPDATE people SET totp = new.totp FROM unnest($1::int[], $2::bytea[]) AS new (id, totp) WHERE people.id = new.id
    """,
)

TASKS = RoomTasks(
    retention=(
        Old("form_posts", "posted_at", days=1),
        Old("sessions", "ends_at", days=30),
        Old("sign_in_links", "ends_at", days=30),
        Old("sign_in_allowances", "counted_at", days=1),
        Old("customer_views", "ends_at", days=30),
    )
)
