"""The chain of each account's entries: what their marks are made of, and what stood there before the first mark.

Entries bear marks since there are chains (largesse.chains). What an account had before is held by its opening: the mark that its last
entry of then would bear, had all of them been chained. `largesse migrate` makes openings where they are missing.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from largesse.chains import START, Chain, content, micros
from largesse.database import Connection

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_ENTRIES_AT_ONCE = 5_000

# SQL for the columns that `entry_content` takes, of an entry e and its order o.
CONTENT_COLUMNS = f"""
    e.customer_id, e.account_id, e.movement_id, e.kind, o.reference, e.amount_minor, e.balance_minor, e.reference,
    {micros("e.created_at")}
"""


def entry_content(  # noqa: PLR0913, PLR0917 - the columns of a row
    customer_id: int,
    account_id: int,
    transfer_id: int,
    kind: str,
    order_reference: str | None,
    amount_minor: int,
    balance_minor: int,
    reference: str | None,
    at_us: int,
) -> bytes:
    """What an entry's mark is made of. Its order is told by reference, for its id is drawn as it is written."""
    return content(
        customer_id,
        account_id,
        transfer_id,
        kind,
        order_reference,
        amount_minor,
        balance_minor,
        reference,
        at_us,
    )


def micros_of(at: datetime) -> int:
    """An instant as whole microseconds of the epoch."""
    return (at - _EPOCH) // _MICROSECOND


async def is_chained(connection: Connection) -> bool:
    """Whether no account has entries of before there were chains without an opening."""
    return not await connection.fetchval(f"SELECT EXISTS ({_UNCHAINED})", START)


async def chain_earlier_entries(connection: Connection, chain: Chain) -> int:
    """Makes the openings that are missing; returns how many entries they hold. Each account is locked meanwhile.

    Broken off, it is taken up where it was. `connection` must not be in a transaction.
    """
    chained = 0
    for row in await connection.fetch(_UNCHAINED, START):
        async with connection.transaction():
            chained += await _open_account(connection, chain, row["customer_id"], row["id"])
    return chained


async def _open_account(connection: Connection, chain: Chain, customer_id: int, account_id: int) -> int:
    """Makes the opening of one account, unless somebody else has."""
    head = await connection.fetchval(
        "SELECT chain_head FROM accounts WHERE customer_id = $1 AND id = $2 FOR NO KEY UPDATE",
        customer_id,
        account_id,
    )
    if head != START:
        return 0
    mac, last, count = b"", 0, 0
    while rows := await connection.fetch(_ENTRIES, customer_id, account_id, last, _ENTRIES_AT_ONCE):
        for entry_id, *columns in rows:
            mac, head = chain.add(head, entry_content(*columns))
            last = entry_id
        count += len(rows)
    await connection.execute(_OPEN, customer_id, account_id, last, mac, head)
    return count


_UNCHAINED = """
    SELECT a.customer_id, a.id FROM accounts a
    WHERE a.chain_head = $1 AND EXISTS (
        SELECT FROM entries e WHERE e.customer_id = a.customer_id AND e.account_id = a.id)
"""
_ENTRIES = f"""
    SELECT e.id, {CONTENT_COLUMNS} FROM entries e LEFT JOIN orders o ON o.customer_id = e.customer_id AND o.id = e.order_id
    WHERE e.customer_id = $1 AND e.account_id = $2 AND e.id > $3 ORDER BY e.id LIMIT $4
"""  # noqa: S608 - constants
_OPEN = """
    WITH opened AS (
        INSERT INTO chain_openings (customer_id, account_id, entry_id, mac, chained_at)
        VALUES ($1, $2, $3, $4, clock_now()))
    UPDATE accounts SET chain_head = $5 WHERE customer_id = $1 AND id = $2
"""
