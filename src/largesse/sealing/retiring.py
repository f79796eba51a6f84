"""Retiring master keys: when nothing is sealed under a key any more, and nobody seals under it, it can go."""

from __future__ import annotations

from datetime import timedelta

from largesse.base.vault import Vault
from largesse.database.pool import Connection
from largesse.sealing.master_keys import KeyRecord, list_master_keys

# A process says every few seconds under which key it seals; one that was not heard of for so long does not run any more, and no
# transaction of it does.
IDLE = timedelta(seconds=60)


async def sealing_elsewhere(connection: Connection, vault: Vault, idle: timedelta = IDLE) -> list[KeyRecord]:
    """The keys beside the newest that a process sealed under within `idle`."""
    now = await connection.fetchval("SELECT clock_now()")
    return [
        key
        for key in await list_master_keys(connection)
        if key.id != vault.key_ids[0] and key.sealing_at is not None and key.sealing_at > now - idle
    ]


async def retire(connection: Connection, vault: Vault, idle: timedelta = IDLE) -> list[KeyRecord]:
    """Retires every key but the newest; returns those that this was true of now.

    To be called when nothing is sealed under them. A key that a process seals under again meanwhile stays as it is. What is left of
    keys that were retired before is brought under the newest.
    """
    retired = []
    for key in await list_master_keys(connection):
        if key.sealed_rest is not None and not vault.rests.is_newest(key.sealed_rest):
            await connection.execute(
                "UPDATE master_keys SET sealed_rest = $2 WHERE id = $1 AND sealed_rest = $3",
                key.id,
                vault.reseal_rest(key.id, key.sealed_rest),
                key.sealed_rest,
            )
        if not key.is_needed or key.id == vault.key_ids[0]:
            continue
        if await connection.fetchval(
            """
            UPDATE master_keys SET retired_at = clock_now(), sealed_rest = $2
            WHERE id = $1 AND retired_at IS NULL AND (sealing_at IS NULL OR sealing_at < clock_now() - $3::interval)
            RETURNING true
            """,
            key.id,
            vault.rest_of(key.id),
            idle,
        ):
            retired.append(key)
    return retired
