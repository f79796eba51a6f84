"""Checks that every encrypted value decrypts. `claims` does this for codes."""

from largesse.db.pool import Connection, read_in_parts
from largesse.encryption.columns import sealed_tables
from largesse.encryption.vault import DecryptionFailed, Vault
from largesse.verify.check import Finding, Progress, Tally

SEALED_OPEN = "encrypted-values-open"
RULES = {
    SEALED_OPEN: "Every voucher number, address, secret of a webhook and other value that is stored encrypted opens under the master keys, "
    "for its row and no other."
}

_ROWS_AT_ONCE = 2_000
# The role that runs the audit may not read the secrets that people sign in with.
_MAY_READ = "SELECT has_column_privilege($1::text, $2::text, 'SELECT')"


async def check_sealed(connection: Connection, vault: Vault, progress: Progress, timeout_s: float) -> list[Finding]:
    """Decrypts every encrypted value that the role may read, except codes. Call it inside a transaction. Memory is bounded."""
    broken = Tally(SEALED_OPEN, RULES[SEALED_OPEN])
    for table in sealed_tables():
        if not table.read or not await connection.fetchval(_MAY_READ, table.table, table.column):
            continue
        async for rows in read_in_parts(connection, table.read, _ROWS_AT_ONCE, timeout_s=timeout_s):
            for row in rows:
                try:
                    table.renew(vault, row)
                except DecryptionFailed:
                    key = "/".join(map(str, tuple(row)[: len(table.before_all)]))
                    broken.add(f"{table.table} {key}")
            progress.add(len(rows))
    return [broken.finding()] if broken.count else []
