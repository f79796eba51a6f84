"""Verifies one account for its people: computes all marks of its entries again, a bounded number at a time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from largesse.db.fragments import compose
from largesse.db.pool import Connection, Row
from largesse.encryption.chain import Chain
from largesse.ledger.chains import ACCOUNT_COLUMNS, Along, ReadDigests, paid_orders, read_entries

MOST_AT_ONCE = 20_000  # entries: about a second's work
MOST_NAMED = 20
# So few that other requests of the process wait at most some milliseconds.
_ENTRIES_AT_ONCE = 500
_CREATED_AT = "SELECT created_at FROM entries WHERE customer_id = $1 AND account_id = $2 AND id = $3"
_NOTE_ANCHORED = """
    INSERT INTO noted_anchors (customer_id, account_id, entry_id, mac, made_at)
    SELECT a.customer_id, a.id, ends.entry_id, decode(ends.mac, 'hex'), $1
    FROM unnest($2::int[], $3::bigint[], $4::text[]) AS ends (account_id, entry_id, mac) JOIN accounts a ON a.id = ends.account_id
    ON CONFLICT (customer_id, account_id) DO UPDATE SET entry_id = excluded.entry_id, mac = excluded.mac, made_at = excluded.made_at
"""
_MAC = "SELECT mac FROM entries WHERE customer_id = $1 AND account_id = $2 AND id = $3"
_ANCHOR = """
    SELECT n.made_at, n.entry_id, encode(n.mac, 'hex') AS mac,
           n.mac IS NOT DISTINCT FROM coalesce(e.mac, o.mac) AS holds
    FROM noted_anchors n
    LEFT JOIN entries e ON e.customer_id = n.customer_id AND e.account_id = n.account_id AND e.id = n.entry_id
    LEFT JOIN chain_openings o ON o.customer_id = n.customer_id AND o.account_id = n.account_id AND o.entry_id = n.entry_id
    WHERE n.customer_id = $1 AND n.account_id = $2
"""


class Proof(msgspec.Struct):
    """The result of checking a part of an account's chain."""

    checked: int = 0
    broken: list[str] = []  # the first entries that do not match: `entry 17`
    broken_count: int = 0
    unproved_until: int | None = None  # entries up to this one have no marks, and were too many to check
    goes_on: int | None = None  # the last entry of this part; None at the end of the account
    is_whole: bool | None = None  # whether it ends at the head of its chain; None if there are more
    last_id: int | None = None  # the last entry that was checked, with its mark
    last_at: datetime | None = None
    last_mac: str | None = None
    anchor: Anchor | None = None

    def add(self, what: str) -> None:
        """Counts one more that does not match."""
        self.broken_count += 1
        if len(self.broken) < MOST_NAMED:
            self.broken.append(what)


class Anchor(msgspec.Struct, frozen=True):
    """The last stored anchor of an account: its last entry then, and whether that entry still has its mark."""

    made_at: datetime
    entry_id: int
    mac: str
    holds: bool


async def prove(
    connection: Connection,
    chain: Chain,
    customer_id: int,
    account_id: int,
    after: int | None = None,
    *,
    digests_of: ReadDigests,
) -> Proof:
    """Computes the marks of MOST_AT_ONCE entries again: the first ones, or those after the entry `after`.

    Call it in a transaction that sees one snapshot. Does not check the entries up to `after` again.
    """
    proof = Proof(anchor=await _anchor(connection, customer_id, account_id))
    account = await connection.fetchrow(_ACCOUNT, customer_id, account_id)
    assert account is not None, "whoever asks has seen it"
    last, behind = await _from(connection, account, after, proof)
    along = Along(chain, proof.add, account, behind)
    while proof.checked < MOST_AT_ONCE:
        rows = await read_entries(connection, customer_id, account_id, last, _ENTRIES_AT_ONCE)
        digests = await digests_of(connection, chain, paid_orders(rows))
        for entry_id, mac, order_id, _, *columns in rows:
            shown = along.entry(entry_id, columns, mac, digests.get((customer_id, order_id)))
            last, proof.last_mac = entry_id, shown.hex()
        proof.checked += len(rows)
        if len(rows) < _ENTRIES_AT_ONCE:
            proof.is_whole = along.end()
            break
    else:
        proof.goes_on = last
    if last:
        proof.last_id = last
        proof.last_at = await connection.fetchval(_CREATED_AT, customer_id, account_id, last)
    return proof


async def note_anchored(connection: Connection, made_at: datetime, ends: Sequence[tuple[int, int, str]]) -> None:
    """Stores the last entry of each account when an anchor was made: account, entry, its mark in hexadecimal."""
    columns = tuple([end[at] for end in ends] for at in range(3))
    await connection.execute(_NOTE_ANCHORED, made_at, *columns)


async def _from(connection: Connection, account: Row, after: int | None, proof: Proof) -> tuple[int, bytes | None]:
    """Returns the entry after which the check begins, and its mark; 0 and None if it begins with the first entry."""
    opening = account["entry_id"]
    if after is not None and (opening is None or after > opening):
        mac = await connection.fetchval(_MAC, account["customer_id"], account["id"], after)
        if mac:
            return after, mac
    if opening is not None and await connection.fetchval(
        _HAS_MORE, account["customer_id"], account["id"], opening, MOST_AT_ONCE
    ):
        proof.unproved_until = opening
        return opening, account["opening_mac"]
    return 0, None


async def _anchor(connection: Connection, customer_id: int, account_id: int) -> Anchor | None:
    row = await connection.fetchrow(_ANCHOR, customer_id, account_id)
    return None if row is None else Anchor(**row)


_ACCOUNT = compose(
    """
    SELECT {account_columns} FROM accounts a
    LEFT JOIN chain_openings o ON o.customer_id = a.customer_id AND o.account_id = a.id
    WHERE a.customer_id = $1 AND a.id = $2
""",
    account_columns=ACCOUNT_COLUMNS,
)
_HAS_MORE = """
    SELECT EXISTS (SELECT FROM entries WHERE customer_id = $1 AND account_id = $2 AND id <= $3 ORDER BY id OFFSET $4)
"""
