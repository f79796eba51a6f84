"""The chain of an account's entries: whoever writes them, and what stood there before there were chains."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator

import pytest
from tests.chained import chain_of, forge

from largesse.base.vault import Vault
from largesse.chains import START, open_chains
from largesse.database import OPERATOR, Database
from largesse.funding import settle, top_up
from largesse.funding.chaining import chain_earlier_entries, is_chained
from largesse.verify import audit
from largesse.world import load_world, parse_world

KEY, NEW_KEY = b"k" * 32, b"n" * 32
WORLD = b"""
customers:
  - key: acme
    name: Acme Ltd
    plan: pro
    funding: balance
    funding_accounts:
      - {key: gbp, name: Float, master: true, currency: GBP, balance: 100.00}
      - {key: jpy, name: Yen, currency: JPY, balance: 500}
"""
# As a release left it that knew no chains.
UNCHAINED = "UPDATE entries SET mac = NULL; UPDATE accounts SET chain_head = DEFAULT"


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    database = await Database.connect(database_url)
    try:
        async with database.connection(OPERATOR) as connection:
            await load_world(connection, await chain_of(connection, KEY), parse_world(WORLD, "world.yaml"))
        yield database
    finally:
        await database.close()


async def credit(database: Database, amount_minor: int, key: bytes = KEY) -> None:
    async with database.connection(OPERATOR) as connection:
        chain = await chain_of(connection, key)
    async with database.transaction(OPERATOR) as connection:
        await top_up(connection, chain, 1, amount_minor, None)


async def findings(database: Database, *keys: bytes) -> dict[str, tuple[str, ...]]:
    report = await audit(database, Vault(keys or (KEY,)), progress_to=io.StringIO())
    return {finding.check: finding.ids for finding in report.findings}


async def chained(database: Database, key: bytes = KEY) -> int:
    async with database.connection(OPERATOR) as connection:
        return await chain_earlier_entries(connection, await chain_of(connection, key))


async def test_credits_at_once_stand_in_one_chain(database: Database) -> None:
    await asyncio.gather(*(credit(database, amount) for amount in range(1, 13)))
    assert await findings(database) == {}
    assert await database.fetchval(OPERATOR, "SELECT count(*) FROM entries WHERE mac IS NULL") == 0


async def test_a_payment_of_what_is_owed_is_chained(database: Database) -> None:
    await database.execute(
        OPERATOR,
        "INSERT INTO accounts (customer_id, environment, kind, currency) VALUES (1, 'production', 'receivable', 'EUR')",
    )
    async with database.connection(OPERATOR) as connection:
        chain = await chain_of(connection, KEY)
        with pytest.raises(Exception, match="at most what is owed"):
            async with connection.transaction():
                await settle(
                    connection,
                    chain,
                    "acme",
                    environment="production",
                    currency="EUR",
                    amount_minor=1,
                    reference="r",
                )
    assert await findings(database) == {}


async def test_a_last_entry_that_was_removed_is_missed_for_good(database: Database) -> None:
    """Also when the service has gone on from what was left."""
    await credit(database, 700)
    await forge(
        database,
        """
        DELETE FROM entries WHERE movement_id = (SELECT max(movement_id) FROM entries);
        UPDATE accounts SET chain_head = $head$1234567890abcdef$head$, balance_minor = balance_minor - 700 WHERE id = 1;
        UPDATE accounts SET balance_minor = balance_minor + 700 WHERE kind = 'deposits' AND currency = 'GBP'
        """,
    )
    await credit(database, 800)
    found = await findings(database)
    assert found.keys() == {"entries-are-chained"}
    assert [one.rpartition(" ")[0] for one in found["entries-are-chained"]] == [
        "acme/gbp entry",
        "acme/deposits GBP production entry",
    ]


async def test_entries_of_before_there_were_chains_are_held_by_an_opening(database: Database) -> None:
    for amount in (1, 2, 3):
        await credit(database, amount)
    await forge(database, UNCHAINED)
    async with database.connection(OPERATOR) as connection:
        assert not await is_chained(connection)
    assert "entries-are-chained" in await findings(database)
    assert await asyncio.gather(*(chained(database) for _ in range(3))) != [0, 0, 0]
    async with database.connection(OPERATOR) as connection:
        assert await is_chained(connection)
    assert await findings(database) == {}
    await credit(database, 4)
    assert await findings(database) == {}
    assert await chained(database) == 0


@pytest.mark.parametrize(
    ("forgery", "named"),
    [
        ("UPDATE entries SET reference = 'x' WHERE id = 1", "acme/gbp entries up to 5"),
        ("UPDATE entries SET created_at = now() WHERE id = 5", "acme/gbp entries up to 5"),
        ("UPDATE entries SET created_at = now() WHERE id = 7", "acme/gbp entry 7"),
        (
            (
                "UPDATE entries AS e SET mac = other.mac FROM entries AS other WHERE e.customer_id = other.customer_id AND other.id = 7 AND e.id = 5; "
                "UPDATE entries SET reference = 'x' WHERE id = 5"
            ),
            "acme/gbp entries up to 5",
        ),
    ],
)
async def test_what_an_opening_holds_cannot_be_changed(database: Database, forgery: str, named: str) -> None:
    await credit(database, 1)
    await forge(database, UNCHAINED)
    assert await chained(database) == 6
    await credit(database, 2)
    assert await findings(database) == {}
    await forge(database, forgery)
    assert await findings(database) == {"entries-are-chained": (named,)}


async def test_chains_go_on_under_a_new_master_key(database: Database) -> None:
    await forge(database, UNCHAINED)
    assert await chained(database) == 4
    await credit(database, 1)
    async with database.connection(OPERATOR) as connection:
        await open_chains(connection, Vault((NEW_KEY, KEY)), keep=True)
    await credit(database, 2, NEW_KEY)
    assert await findings(database, NEW_KEY) == {}
    marks = await database.fetch(OPERATOR, "SELECT mac FROM entries WHERE account_id = 1 ORDER BY id")
    assert [row["mac"] and row["mac"][0] for row in marks] == [None, 1, 2]
    assert "entries-are-chained" in await findings(database, b"x" * 32)


async def test_a_new_account_has_no_head(database: Database) -> None:
    heads = await database.fetch(
        OPERATOR,
        "SELECT chain_head FROM accounts a WHERE NOT EXISTS (SELECT FROM entries e WHERE e.customer_id = a.customer_id AND account_id = a.id)",
    )
    assert {row["chain_head"] for row in heads} == {START}
