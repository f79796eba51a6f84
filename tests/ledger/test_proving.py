"""What an account's people can prove of it: marks made again a bounded number at a time, and the last anchor that was noted."""

from collections.abc import AsyncIterator

import pytest
from tests.chained import UNCHAINED, chain_of, chain_up, forge, loaded

from largesse.db.pool import Database
from largesse.db.scope import OPERATOR
from largesse.ledger.posting import top_up
from largesse.ledger.verification import Proof, prove
from largesse.orders.marks import read_digests
from largesse.verify.anchor import make_anchor, note_anchor

KEY = b"k" * 32
WORLD = b"""
customers:
  - key: acme
    name: Acme Ltd
    plan: pro
    funding: balance
    funding_accounts: [{key: gbp, name: Float, master: true, currency: GBP}]
"""
ACME, FLOAT = 1, 1


@pytest.fixture
async def database(database_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Database]:
    """One whose account has seven entries, in a world where four are many."""
    monkeypatch.setattr("largesse.ledger.verification.MOST_AT_ONCE", 4)
    monkeypatch.setattr("largesse.ledger.verification._ENTRIES_AT_ONCE", 2)
    async with loaded(database_url, WORLD, KEY) as database:
        for amount in range(1, 8):
            async with database.transaction(OPERATOR) as connection:
                await top_up(connection, await chain_of(connection, KEY), FLOAT, amount, None)
        yield database


async def proved(database: Database, after: int | None = None) -> Proof:
    async with database.connection(OPERATOR) as connection:
        return await prove(connection, await chain_of(connection, KEY), ACME, FLOAT, after, digests_of=read_digests)


async def ids(database: Database) -> list[int]:
    rows = await database.fetch(OPERATOR, "SELECT id FROM entries WHERE account_id = $1 ORDER BY id", FLOAT)
    return [row[0] for row in rows]


async def test_a_long_account_is_proved_piece_by_piece(database: Database) -> None:
    there = await ids(database)
    first = await proved(database)
    assert (first.checked, first.goes_on, first.is_whole, first.broken) == (4, there[3], None, [])
    rest = await proved(database, first.goes_on)
    assert (rest.checked, rest.goes_on, rest.is_whole, rest.broken) == (3, None, True, [])
    assert rest.last_id == there[-1]
    mac = await database.fetchval(OPERATOR, "SELECT encode(mac, 'hex') FROM entries WHERE id = $1", there[-1])
    assert rest.last_mac == mac
    assert rest.anchor is None
    for nowhere in (0, 10**15):  # as an address could say
        assert (await proved(database, nowhere)).checked == 4


async def test_what_was_changed_is_named_and_what_is_gone_is_told(database: Database) -> None:
    there = await ids(database)
    await forge(database, f"UPDATE entries SET amount_minor = amount_minor + 1 WHERE id = {there[1]}")
    first = await proved(database)
    assert (first.broken, first.broken_count) == ([f"entry {there[1]}"], 1)
    assert (await proved(database, first.goes_on)).is_whole is True
    await forge(database, f"DELETE FROM entries WHERE id = {there[-1]}")
    rest = await proved(database, first.goes_on)
    assert (rest.broken, rest.is_whole) == ([], False)


@pytest.mark.parametrize("most", [4, 100])
async def test_what_is_from_before_there_were_marks(
    database: Database, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr("largesse.ledger.verification.MOST_AT_ONCE", most)
    await forge(database, UNCHAINED)
    assert await chain_up(database, KEY) == 14
    there = await ids(database)
    proof = await proved(database)
    assert proof.is_whole is True
    assert proof.unproved_until == (there[-1] if most == 4 else None)
    assert proof.checked == (0 if most == 4 else 7)
    await forge(database, f"UPDATE entries SET amount_minor = amount_minor + 1 WHERE id = {there[1]}")
    broken = [] if most == 4 else [f"entries up to {there[-1]}"]
    assert (await proved(database)).broken == broken


async def test_the_last_anchor_is_told_and_whether_it_holds(database: Database) -> None:
    for _ in range(2):
        async with database.transaction(OPERATOR) as connection:
            await note_anchor(connection, await make_anchor(connection))
    there = await ids(database)
    anchor = (await proved(database)).anchor
    assert anchor is not None
    assert (anchor.entry_id, anchor.holds) == (there[-1], True)
    await forge(database, f"DELETE FROM entries WHERE id = {there[-1]}")
    anchor = (await proved(database)).anchor
    assert anchor is not None
    assert not anchor.holds
