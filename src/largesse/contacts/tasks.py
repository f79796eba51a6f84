"""What contacts register: people who left go after 400 days, and postal addresses are encrypted again under the newest key."""

from __future__ import annotations

from largesse.contacts.service import address_context
from largesse.db.pool import Row
from largesse.encryption.columns import SealedTable
from largesse.encryption.vault import Vault
from largesse.jobs.registry import RoomTasks
from largesse.jobs.retention import Old


def _renew(vault: Vault, row: Row) -> tuple[bytes]:
    context = address_context(row["customer_id"], row["id"])
    return (vault.addresses.seal(vault.addresses.open(row["sealed_address"], context), context),)


CONTACT_ADDRESSES = SealedTable(
    table="contacts",
    column="sealed_address",
    before_all=(-1, 0),
    part=lambda vault: vault.addresses,
    window="""
        SELECT customer_id, id, substring(sealed_address FROM 1 FOR 4) <> $1 AS is_old FROM contacts
        WHERE (customer_id, id) > ($3, $4) AND sealed_address IS NOT NULL ORDER BY customer_id, id LIMIT $2
    """,
    take="""
        SELECT customer_id, id, sealed_address
        FROM unnest($2::int[], $3::int[]) AS wanted (customer_id, id) JOIN contacts USING (customer_id, id)
        WHERE substring(sealed_address FROM 1 FOR 4) <> $1 FOR NO KEY UPDATE OF contacts SKIP LOCKED
    """,
    renew=_renew,
    put="""
        UPDATE contacts SET sealed_address = new.sealed
        FROM unnest($1::int[], $2::int[], $3::bytea[]) AS new (customer_id, id, sealed)
        WHERE contacts.customer_id = new.customer_id AND contacts.id = new.id
    """,
)

TASKS = RoomTasks(retention=(Old("contacts", "left_at", days=400),))
