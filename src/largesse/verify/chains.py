"""Going along every chain: whether each row bears its mark, and whether the chain ends where it says."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from largesse.audit import INSTALLATION
from largesse.audit.acting import event_content
from largesse.base.errors import StartError
from largesse.base.vault import Vault
from largesse.chains import START, Chain, Chains, micros, open_chains
from largesse.database import Connection, Row
from largesse.verify.check import Finding, Tally
from largesse.verify.progress import Progress

AUDIT_CHAINED = "audit-events-are-chained"
AUDIT_ENDS = "audit-log-is-whole"
RULES = {
    AUDIT_CHAINED: "Each event of the audit log bears the mark of its content and of the event before it of its customer.",
    AUDIT_ENDS: "The audit log of a customer ends with the event that its head was made of.",
}

_ROWS_AT_ONCE = 2_000


async def check_chains(
    connection: Connection, vault: Vault, progress: Progress, timeout_s: float
) -> list[Finding]:
    """Makes every mark again; call it inside a transaction. Memory stays bounded. Under another master key no mark fits."""
    try:
        chains = await open_chains(connection, vault, keep=False)
    except StartError:
        chains = Chains.of({})
    broken = {check: Tally(check, rule) for check, rule in RULES.items()}
    progress.begin(AUDIT_CHAINED)
    await _check_audit(connection, chains.audit, broken, progress, timeout_s)
    return [tally.finding() for tally in broken.values() if tally.count]


async def _check_audit(
    connection: Connection, chain: Chain, broken: dict[str, Tally], progress: Progress, timeout_s: float
) -> None:
    ended = await connection.fetch("SELECT customer_id, head FROM audit_heads")
    heads: dict[int, bytes] = {row["customer_id"]: row["head"] for row in ended}
    ends = dict.fromkeys(heads, START)
    names: dict[int, str] = {}
    async for rows in _chunks(connection, _AUDIT_EVENTS, timeout_s):
        for customer_id, event_id, at_us, *told, mac in rows:
            if not chain.fits(ends.get(customer_id, START), event_content(customer_id, at_us, *told), mac):
                broken[AUDIT_CHAINED].add(
                    f"{await _customer(connection, customer_id, names)} event {event_id}"
                )
            ends[customer_id] = chain.head_after(mac)
        progress.add(len(rows))
    for customer_id, end in ends.items():
        if heads.get(customer_id) != end:
            broken[AUDIT_ENDS].add(await _customer(connection, customer_id, names))


async def _customer(connection: Connection, customer_id: int, names: dict[int, str]) -> str:
    """What a customer is called in findings; `names` keeps those that were looked up."""
    if customer_id not in names:
        key = await connection.fetchval("SELECT key FROM customers WHERE id = $1", customer_id)
        names[customer_id] = key or (
            "installation" if customer_id == INSTALLATION else f"customer {customer_id}"
        )
    return names[customer_id]


async def _chunks(connection: Connection, query: str, timeout_s: float) -> AsyncIterator[Sequence[Row]]:
    """The rows of a query, read through a cursor on the server."""
    cursor = await connection.cursor(query, timeout=timeout_s)
    while rows := await cursor.fetch(_ROWS_AT_ONCE, timeout=timeout_s):
        yield rows


_AUDIT_EVENTS = f"""
    SELECT customer_id, id, {micros("at")}, environment, actor, actor_id, actor_name, address, request_id, act, subject,
           before::text, after::text, mac
    FROM audit_events ORDER BY customer_id, id
"""  # noqa: S608 - constants
