"""Opening every code: the one check that no SQL can make."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence

from largesse.base.vault import SealBroken, Vault
from largesse.database.pool import Connection, Row
from largesse.lines.issuing import open_code
from largesse.verify.check import Finding, Tally
from largesse.verify.progress import Progress

CODES_OPEN = "codes-open"
LOOKUPS_FIT = "code-lookups-fit"
RULES = {
    CODES_OPEN: "The sealed code and PIN of every line open under the master keys, for that line and no other.",
    LOOKUPS_FIT: "The number a code is found by is that of the code.",
}

_LINES_AT_ONCE = 2_000


async def check_codes(
    connection: Connection, vault: Vault, progress: Progress, timeout_s: float
) -> list[Finding]:
    """Opens the code of every line whose order exists; call it inside a transaction. Memory stays bounded."""
    broken = {check: Tally(check, rule) for check, rule in RULES.items()}
    async for rows in _chunks(connection, timeout_s):
        for check, line in _disagreements(rows, vault):
            broken[check].add(line)
        progress.add(len(rows))
    return [tally.finding() for tally in broken.values() if tally.count]


async def _chunks(connection: Connection, timeout_s: float) -> AsyncIterator[Sequence[Row]]:
    """All lines with the reference of their order, read through a cursor on the server."""
    cursor = await connection.cursor(
        """
        SELECT l.order_id, l.number, o.reference, l.code_lookup, l.sealed
        FROM lines l JOIN orders o ON o.customer_id = l.customer_id AND o.id = l.order_id
        """,
        timeout=timeout_s,
    )
    while rows := await cursor.fetch(_LINES_AT_ONCE, timeout=timeout_s):
        yield rows


def _disagreements(rows: Sequence[Row], vault: Vault) -> Iterator[tuple[str, str]]:
    for order_id, number, reference, code_lookup, sealed in rows:
        try:
            code = open_code(vault, sealed, reference, number)
        except SealBroken:
            yield CODES_OPEN, f"{order_id}/{number}"
            continue
        if code_lookup not in vault.codes.lookups(code.code):
            yield LOOKUPS_FIT, f"{order_id}/{number}"
