"""The audit: every check on one snapshot of the database, while the service places orders."""

import sys
from typing import TextIO

from largesse.db.fragments import compose, identifier
from largesse.db.pool import Connection, Database, read_in_parts
from largesse.db.scope import OPERATOR
from largesse.encryption.columns import sealed_tables
from largesse.encryption.vault import DecryptionFailed, Vault
from largesse.verify.anchor import Anchor
from largesse.verify.chains import ANCHOR_RULES, check_chains
from largesse.verify.chains import RULES as CHAIN_RULES
from largesse.verify.check import Check, Finding, Progress, Report, Tally
from largesse.verify.claims import CLAIMS, SUPPLIERS, check_codes
from largesse.verify.claims import RULES as CODE_RULES
from largesse.verify.ledger import CORRECTIONS, LEDGER
from largesse.verify.orders import ORDERS
from largesse.verify.programmes import APPROVALS, AUTOMATIONS, BUDGETS, CAMPAIGNS
from largesse.verify.references import REFERENCES
from largesse.verify.reports import REPORTS
from largesse.verify.rights import RIGHTS, ROLES_HAVE_THEIR_RIGHTS, STAFF, check_policies, check_rights, check_schema
from largesse.verify.rights import RULES as RIGHTS_RULES

# A new area adds its own tuple of checks here.
CHECKS: tuple[Check, ...] = (
    *LEDGER,
    *CORRECTIONS,
    *ORDERS,
    *REFERENCES,
    *CLAIMS,
    *BUDGETS,
    *APPROVALS,
    *AUTOMATIONS,
    *CAMPAIGNS,
    *SUPPLIERS,
    *STAFF,
    *REPORTS,
    *RIGHTS,
)
SEALED_OPEN = "encrypted-values-open"
_SEALED_RULE = (
    "Every voucher number, address, secret of a webhook and other value that is stored encrypted opens under the master keys, "
    "for its row and no other."
)
# The rules of checks that are written in Python.
RULES = {**RIGHTS_RULES, **CODE_RULES, SEALED_OPEN: _SEALED_RULE, **CHAIN_RULES}

_ROWS_AT_ONCE = 2_000
# The role that runs the audit may not read the secrets that people sign in with.
_MAY_READ = "SELECT has_column_privilege($1::text, $2::text, 'SELECT')"
_COUNTED = ("orders", "lines", "entries")
_STATEMENT_TIMEOUT_S = 6 * 3600.0


async def audit(
    database: Database, vault: Vault, *, anchor: Anchor | None = None, progress_to: TextIO = sys.stderr
) -> Report:
    """Runs every check, also against an `anchor` if given. Returns the results in the order of the checks. Changes nothing.

    Reads one snapshot, which contains each order placed meanwhile whole or not at all.
    """
    progress = Progress(progress_to)
    try:
        async with database.snapshot(OPERATOR) as connection:
            return await audit_snapshot(connection, vault, progress, anchor)
    finally:
        progress.end()


async def audit_snapshot(
    connection: Connection, vault: Vault, progress: Progress, anchor: Anchor | None = None
) -> Report:
    """Runs every check in the connection's open transaction."""
    # Whole tables are sorted and joined, which takes more memory and time than an order may take.
    # Nobody waits for a lock of this transaction, so it may be idle while codes are decrypted.
    await connection.execute(
        "SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0; "
        "SET LOCAL work_mem = '64MB'"
    )
    findings = []
    for check in CHECKS:
        progress.begin(check.name)
        findings += await _run(connection, check)
    progress.begin(ROLES_HAVE_THEIR_RIGHTS)
    findings += await check_schema(connection)
    findings += await check_rights(connection)
    findings += await check_policies(connection)
    counted = {table: await _count(connection, table) for table in _COUNTED}
    progress.begin("codes-open", counted["lines"])
    findings += await check_codes(connection, vault, progress, _STATEMENT_TIMEOUT_S)
    progress.begin(SEALED_OPEN)
    findings += await _check_sealed(connection, vault, progress)
    findings += await check_chains(connection, vault, progress, _STATEMENT_TIMEOUT_S, anchor)
    rules = (*RULES, *(ANCHOR_RULES if anchor else ()))
    return Report((*(check.name for check in CHECKS), *rules), counted, findings)


async def _check_sealed(connection: Connection, vault: Vault, progress: Progress) -> list[Finding]:
    """Decrypts every encrypted value that the role may read, except codes, which `claims` decrypts. Memory is bounded."""
    broken = Tally(SEALED_OPEN, _SEALED_RULE)
    for table in sealed_tables():
        if not table.read or not await connection.fetchval(_MAY_READ, table.table, table.column):
            continue
        async for rows in read_in_parts(connection, table.read, _ROWS_AT_ONCE, timeout_s=_STATEMENT_TIMEOUT_S):
            for row in rows:
                try:
                    table.renew(vault, row)
                except DecryptionFailed:
                    key = "/".join(map(str, tuple(row)[: len(table.before_all)]))
                    broken.add(f"{table.table} {key}")
            progress.add(len(rows))
    return [broken.finding()] if broken.count else []


async def _run(connection: Connection, check: Check) -> list[Finding]:
    rows = await connection.fetch(check.statement, timeout=_STATEMENT_TIMEOUT_S)
    if not rows:
        return []
    return [Finding(check.name, check.rule, rows[0]["total"], tuple(row["id"] for row in rows), check.of)]


async def _count(connection: Connection, table: str) -> int:
    count: int = await connection.fetchval(
        compose("SELECT count(*) FROM {table}", table=identifier(table)), timeout=_STATEMENT_TIMEOUT_S
    )
    return count
