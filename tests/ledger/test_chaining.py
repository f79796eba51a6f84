"""The chain of an account's entries: whoever writes them, and what stood there before there were chains."""

import asyncio
import io
from collections.abc import AsyncIterator

import asyncpg
import pytest
from tests.chained import UNCHAINED, actor_on, chain_of, chain_up, forge, loaded, make_early

from largesse.base.errors import OperatorError
from largesse.db.pool import Database
from largesse.db.scope import OPERATOR
from largesse.encryption.chain import START
from largesse.encryption.chain_keys import open_chains
from largesse.encryption.vault import Vault
from largesse.ledger.posting import top_up
from largesse.ledger.receivables import settle
from largesse.verify.audit import audit

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


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    async with loaded(database_url, WORLD, KEY) as database:
        yield database


async def credit(database: Database, amount_minor: int, key: bytes = KEY) -> None:
    async with database.connection(OPERATOR) as connection:
        chain = await chain_of(connection, key)
    async with database.transaction(OPERATOR) as connection:
        await top_up(connection, chain, 1, amount_minor, None)


async def findings(database: Database, *keys: bytes) -> dict[str, tuple[str, ...]]:
    report = await audit(database, Vault(keys or (KEY,)), progress_to=io.StringIO())
    return {finding.check: finding.ids for finding in report.findings}


async def opens(database: Database, key: bytes = KEY) -> None:
    async with database.connection(OPERATOR) as connection:
        await open_chains(connection, Vault((key,)), keep=True)


@pytest.mark.slow
async def test_credits_at_once_stand_in_one_chain(database: Database) -> None:
    await asyncio.gather(*(credit(database, amount) for amount in range(1, 13)))
    assert await findings(database) == {}
    assert await database.fetchval(OPERATOR, "SELECT count(*) FROM entries WHERE mac IS NULL") == 0


async def test_a_payment_of_what_is_owed_is_chained(database: Database) -> None:
    await database.execute(
        OPERATOR,
        "INSERT INTO accounts (customer_id, environment, kind, currency) VALUES (1, 'production', 'receivable', 'EUR')",
    )
    actor = (await actor_on(database, Vault((KEY,)))).on_behalf_of(1, "production")
    with pytest.raises(Exception, match="at most what is owed"):
        await settle(actor, currency="EUR", amount_minor=1, reference="r")
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


@pytest.mark.slow
async def test_entries_of_before_there_were_chains_are_held_by_an_opening(database: Database) -> None:
    for amount in (1, 2, 3):
        await credit(database, amount)
    await forge(database, UNCHAINED)
    with pytest.raises(OperatorError, match="run `largesse migrate`"):
        await opens(database)
    assert "entries-are-chained" in await findings(database)
    done = await asyncio.gather(*(chain_up(database, KEY) for _ in range(3)))
    assert sorted(done, key=str) == [10, None, None]
    await opens(database)
    assert await findings(database) == {}
    await credit(database, 4)
    assert await findings(database) == {}
    assert await chain_up(database, KEY) is None


@pytest.mark.sampled(2)
@pytest.mark.parametrize("has_new_entries", [False, True])
async def test_marks_of_before_go_on_under_a_key_that_covers_what_accounts_are(
    database: Database, has_new_entries: bool
) -> None:
    await make_early(database, KEY)
    assert await findings(database) == {}
    with pytest.raises(OperatorError, match="run `largesse migrate`"):
        await opens(database)
    assert await chain_up(database, KEY) == 0
    assert await chain_up(database, KEY) is None
    if has_new_entries:
        await credit(database, 4)
    assert await findings(database) == {}
    marks = await database.fetch(OPERATOR, "SELECT mac FROM entries WHERE account_id = 1 ORDER BY id")
    assert [row["mac"][0] for row in marks] == [1, *([2] if has_new_entries else [])]
    await forge(database, "UPDATE accounts SET environment = 'staging' WHERE currency = 'GBP'")
    found = await findings(database)
    assert found.keys() == {"accounts-are-whole", *(["entries-are-chained"] if has_new_entries else [])}
    assert found["accounts-are-whole"] == ("acme/gbp", "acme/deposits GBP staging")
    assert await chain_up(database, KEY) is None


@pytest.mark.parametrize("column", ["currency = 'USD'", "environment = 'staging'", "currency = 'USD', kind = 'sales'"])
async def test_what_an_account_is_cannot_be_changed(database: Database, column: str) -> None:
    with pytest.raises(asyncpg.InsufficientPrivilegeError, match=r"accounts(_\d+)? is append-only"):
        await database.execute(OPERATOR, f"UPDATE accounts SET {column} WHERE kind = 'deposits' AND currency = 'GBP'")
    await forge(database, f"UPDATE accounts SET {column} WHERE kind = 'deposits' AND currency = 'GBP'")
    assert "entries-are-chained" in await findings(database)


FORGED = """
    INSERT INTO entries (id, customer_id, account_id, movement_id, kind, amount_minor, balance_minor, created_at)
    SELECT nextval('entries_id_seq'), 1, id, 99, 'top_up', 100000000 * sign, balance_minor + 100000000 * sign, now()
    FROM accounts JOIN (VALUES ('funding', 1), ('deposits', -1)) AS s (side, sign) ON side = kind WHERE currency = 'GBP';
    UPDATE accounts SET balance_minor = balance_minor + 100000000 * sign, chain_head = decode(repeat('00', 16), 'hex')
    FROM (VALUES ('funding', 1), ('deposits', -1)) AS s (side, sign) WHERE side = kind AND currency = 'GBP'
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("is_early", [False, True])
async def test_money_without_marks_is_never_taken_over(database: Database, is_early: bool) -> None:
    """Two entries with an empty mark, new balances and heads that are reset: found, refused by what migrates, and found again."""
    if is_early:
        await make_early(database, KEY)
    await forge(database, FORGED)
    before = await findings(database)
    assert "entries-are-chained" in before
    if is_early:
        with pytest.raises(
            OperatorError,
            match=r"the last entries of acme/gbp, acme/deposits GBP production are not the ones that were written last",
        ):
            await chain_up(database, KEY)
    else:
        assert await chain_up(database, KEY) is None
    assert await findings(database) == before


@pytest.mark.parametrize("left", ["entries", "accounts", "audit_heads", "chain_openings"])
async def test_a_ledger_that_bears_any_mark_is_not_begun_anew(database: Database, left: str) -> None:
    """Whoever deletes the keys of the chains must delete every mark too; `verify --anchor` is for that."""
    forgery = "; ".join(part for part in UNCHAINED.split(";") if left not in part)
    if left == "chain_openings":
        await forge(database, UNCHAINED)
        assert await chain_up(database, KEY) == 4
    await forge(database, forgery)
    if left == "audit_heads":
        await database.execute(OPERATOR, "INSERT INTO audit_heads (customer_id, head) VALUES (0, 'x')")
    with pytest.raises(OperatorError, match="are missing from the table `chain_keys`"):
        await chain_up(database, KEY)
    with pytest.raises(OperatorError, match="are missing from the table `chain_keys`"):
        await opens(database)


@pytest.mark.sampled(4)
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
    assert await chain_up(database, KEY) == 6
    await credit(database, 2)
    assert await findings(database) == {}
    await forge(database, forgery)
    assert await findings(database) == {"entries-are-chained": (named,)}


@pytest.mark.slow
async def test_chains_go_on_under_a_new_master_key(database: Database) -> None:
    await forge(database, UNCHAINED)
    assert await chain_up(database, KEY) == 4
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
