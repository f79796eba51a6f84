"""Bringing the keys of chains under the newest master key."""

from __future__ import annotations

from largesse.base.vault import Vault
from largesse.chains.keys import reseal_key
from largesse.database.pool import Row
from largesse.sealing.tables import SealedTable


def _renew(vault: Vault, row: Row) -> tuple[bytes]:
    return (reseal_key(vault, row["number"], row["sealed"]),)


KEYS = SealedTable(
    table="chain_keys",
    column="sealed",
    before_all=(0,),
    part=lambda vault: vault.chains,
    window="""
        SELECT number, substring(sealed FROM 1 FOR 4) <> $1 AS is_old FROM chain_keys
        WHERE number > $3 ORDER BY number LIMIT $2
    """,
    take="""
        SELECT number, sealed FROM chain_keys
        WHERE number = ANY($2::smallint[]) AND substring(sealed FROM 1 FOR 4) <> $1 FOR NO KEY UPDATE SKIP LOCKED
    """,
    renew=_renew,
    put="""
        UPDATE chain_keys SET sealed = new.sealed
        FROM unnest($1::smallint[], $2::bytea[]) AS new (number, sealed) WHERE chain_keys.number = new.number
    """,
)
