"""The chain of each account's entries: what their marks are made of, and what stood there before the first mark.

Entries bear marks since there are chains (largesse.chains). What an account had before is held by its opening: the mark that its last
entry of then would bear, had all of them been chained. `largesse migrate` makes openings where they are missing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from largesse.chains import START, Chain, content, micros
from largesse.database import Connection, Row

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


class Along:
    """Along the entries of one account, oldest first, making each mark again. `on_broken` is told what does not fit: `entry 17`.

    `head` is where the account says that its chain ends, `opening` the last entry of before there were marks with the mark of all up to it.
    Whoever begins later than at the first says by `at` where the chain stood then.
    """

    def __init__(
        self,
        chain: Chain,
        on_broken: Callable[[str], None],
        *,
        head: bytes,
        opening: tuple[int, bytes] | None,
        at: bytes = START,
    ) -> None:
        self._chain, self._on_broken = chain, on_broken
        self._head, self._opening, self._at = head, opening, at

    def entry(self, entry_id: int, columns: Sequence[Any], mac: bytes | None) -> bytes:
        """The next entry. Returns the mark that an anchor may know it by."""
        content = entry_content(*columns)
        if self._opening is not None:
            last, opening_mac = self._opening
            if entry_id <= last:
                mac = self._earlier(content, opening_mac[0])
                if entry_id < last or mac != opening_mac:
                    return mac
                self._opening, self._at = None, self._chain.head_after(mac)
                return mac
            self._miss_opening()
        if mac is None or not self._chain.fits(self._at, content, mac):
            self._on_broken(f"entry {entry_id}")
        if mac is not None:
            self._at = self._chain.head_after(mac)
        return mac or b""

    def end(self) -> bool:
        """There are no more entries: whether the chain ends where the account says."""
        if self._opening is not None:
            self._miss_opening()
        return self._at == self._head

    def _earlier(self, content: bytes, number: int) -> bytes:
        try:
            mac, self._at = self._chain.add(self._at, content, number)
        except KeyError:
            return b""
        return mac

    def _miss_opening(self) -> None:
        """Something was done to what the opening holds; what comes after it is looked at all the same."""
        assert self._opening is not None
        last, mac = self._opening
        self._on_broken(f"entries up to {last}")
        self._opening, self._at = None, self._chain.head_after(mac)


async def read_entries(
    connection: Connection, customer_id: int, account_id: int, after: int, most: int
) -> Sequence[Row]:
    """At most so many entries of an account behind one of them: id, mark, and the columns that `entry_content` takes."""
    return await connection.fetch(_ENTRIES, customer_id, account_id, after, most)


async def is_chained(connection: Connection) -> bool:
    """Whether no account has entries of before there were chains without an opening."""
    chained: bool = await connection.fetchval("SELECT is_ledger_chained()")
    return chained


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
    while rows := await read_entries(connection, customer_id, account_id, last, _ENTRIES_AT_ONCE):
        for entry_id, _, *columns in rows:
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
    SELECT e.id, e.mac, {CONTENT_COLUMNS} FROM entries e LEFT JOIN orders o ON o.customer_id = e.customer_id AND o.id = e.order_id
    WHERE e.customer_id = $1 AND e.account_id = $2 AND e.id > $3 ORDER BY e.id LIMIT $4
"""  # noqa: S608 - constants
_OPEN = """
    WITH opened AS (
        INSERT INTO chain_openings (customer_id, account_id, entry_id, mac, chained_at)
        VALUES ($1, $2, $3, $4, clock_now()))
    UPDATE accounts SET chain_head = $5 WHERE customer_id = $1 AND id = $2
"""
