"""The audit: every check on one snapshot of the database, while the service places orders."""

import sys
from typing import TextIO

from largesse.db.fragments import compose, identifier
from largesse.db.pool import Connection, Database
from largesse.db.scope import OPERATOR
from largesse.encryption.vault import Vault
from largesse.verify.anchor import Anchor
from largesse.verify.chains import ANCHOR_RULES, check_chains
from largesse.verify.chains import RULES as CHAIN_RULES
from largesse.verify.check import Check, Finding, Progress, Report
from largesse.verify.claims import CLAIMS, SUPPLIERS, check_codes
from largesse.verify.claims import RULES as CODE_RULES
from largesse.verify.ledger import CORRECTIONS, LEDGER
from largesse.verify.orders import ORDERS
from largesse.verify.programmes import APPROVALS, AUTOMATIONS, BUDGETS, CAMPAIGNS
from largesse.verify.references import REFERENCES
from largesse.verify.reports import REPORTS
from largesse.verify.rights import RIGHTS, ROLES_HAVE_THEIR_RIGHTS, STAFF, check_policies, check_rights, check_schema
from largesse.verify.rights import RULES as RIGHTS_RULES
from largesse.verify.sealed import RULES as SEALED_RULES
from largesse.verify.sealed import SEALED_OPEN, check_sealed

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
# The rules of checks that are written in Python.
RULES = {**RIGHTS_RULES, **CODE_RULES, **SEALED_RULES, **CHAIN_RULES}

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
    findings += await check_sealed(connection, vault, progress, _STATEMENT_TIMEOUT_S)
    findings += await check_chains(connection, vault, progress, _STATEMENT_TIMEOUT_S, anchor)
    rules = (*RULES, *(ANCHOR_RULES if anchor else ()))
    return Report((*(check.name for check in CHECKS), *rules), counted, findings)


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
