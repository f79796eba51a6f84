"""How often something may be tried, and how many people and passkeys there may be: the last that may, and the first that may not.

Tries are counted for all processes, whatever comes at once, and are whole again after a while.
"""

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.chained import actor_on

from largesse.base.errors import InvalidRequest, TooManyRequests
from largesse.customers.members import invite
from largesse.customers.passkeys import Signed, Unfit, add_passkey
from largesse.customers.sign_in_limits import Allowance, give_back, spend
from largesse.customers.sign_in_store import add_person
from largesse.db.pool import Database
from largesse.db.scope import OPERATOR
from largesse.encryption.vault import Vault

VAULT = Vault((bytes(range(32)),))


@pytest.fixture
async def database(module_database_url: str) -> AsyncIterator[Database]:
    database = await Database.connect(module_database_url)
    yield database
    await database.close()


async def tries(database: Database, count: int, about: bytes) -> int:
    """How many of so many tries at once are let through."""
    done = await asyncio.gather(
        *(spend(database, VAULT, Allowance.ACCOUNT, about) for _ in range(count)), return_exceptions=True
    )
    assert {type(one) for one in done} <= {type(None), TooManyRequests}
    return done.count(None)


async def test_as_many_as_allowed_whatever_comes_at_once(database: Database) -> None:
    assert await tries(database, 50, b"one") == 10
    assert await tries(database, 10, b"other") == 10
    assert await tries(database, 1, b"one") == 0
    await give_back(database, VAULT, Allowance.ACCOUNT, b"one")
    assert await tries(database, 11, b"one") == 10


@pytest.mark.parametrize(
    ("allowance", "most"),
    [(Allowance.ACCOUNT, 10), (Allowance.NETWORK, 60), (Allowance.LETTERS, 4), (Allowance.TESTS, 6)],
)
async def test_so_many_and_no_more(database: Database, allowance: Allowance, most: int) -> None:
    for _ in range(most):
        await spend(database, VAULT, allowance, b"edge")
    with pytest.raises(TooManyRequests):
        await spend(database, VAULT, allowance, b"edge")


async def test_a_try_that_began_first_and_is_counted_last_costs_no_more_than_itself(database: Database) -> None:
    """Its transaction's time lies before that of the others: no allowance is taken back for the time between."""
    await database.execute(OPERATOR, "UPDATE clock SET ahead_by = interval '30 seconds'")
    assert await tries(database, 9, b"race") == 9
    await database.execute(OPERATOR, "UPDATE clock SET ahead_by = interval '0'")
    assert await tries(database, 1, b"race") == 1, "the tenth of ten"
    await database.execute(OPERATOR, "UPDATE clock SET ahead_by = interval '30 seconds'")
    assert await tries(database, 1, b"race") == 0, "nor is time counted twice"
    await database.execute(OPERATOR, "UPDATE clock SET ahead_by = interval '0'")


async def test_guessing_on_keeps_the_owner_out_no_longer(database: Database) -> None:
    """What is refused is counted nowhere."""
    assert await tries(database, 10, b"guessed") == 10
    for _ in range(100):
        with pytest.raises(TooManyRequests) as refused:
            await spend(database, VAULT, Allowance.ACCOUNT, b"guessed")
        assert 0 < refused.value.retry_after_s <= 90
    await database.execute(OPERATOR, "UPDATE sign_in_allowances SET counted_at = counted_at - interval '91 seconds'")
    assert await tries(database, 5, b"guessed") in {1, 2}


async def test_nobody_reads_from_the_table_whom_it_is_about(database: Database) -> None:
    await spend(database, VAULT, Allowance.ACCOUNT, b"ada@acme.example")
    rows = await database.fetch(OPERATOR, "SELECT t::text FROM sign_in_allowances t")
    assert not [row for row in rows if "ada" in row[0]]


async def test_five_hundred_people_of_a_customer(database: Database) -> None:
    async with database.transaction(OPERATOR) as connection:
        customer_id = await connection.fetchval(
            "INSERT INTO customers (key, name, plan, funding) VALUES ('full', 'Full', 'pro', 'balance') RETURNING id"
        )
        # Removed people do not count.
        await connection.execute(
            """
            INSERT INTO users (customer_id, email, name, role, is_active)
            SELECT $1, n || '@full.example', 'Somebody', 'member', n <= 499 FROM generate_series(1, 510) AS n
            """,
            customer_id,
        )
    actor = await actor_on(database, VAULT, customer_id)
    await invite(actor, "last@full.example", name=None, role="member", mails=False, start_over=None)
    for email in ("beyond@full.example", "510@full.example"):
        with pytest.raises(InvalidRequest, match="at most 500 people"):
            await invite(actor, email, name=None, role="member", mails=False, start_over=None)
    for email in ("1@full.example", "Last@full.example"):
        again = await invite(actor, email, name=None, role=None, mails=False, start_over=None)
        assert again.email == email, "who is there already needs no place"


async def test_ten_passkeys_of_a_person(database: Database) -> None:
    async with database.transaction(OPERATOR) as connection:
        person_id = await add_person(connection, "keys@full.example")
        for number in range(10):
            codes = await add_passkey(connection, person_id, "Phone", Signed(b"%d" % number, b"key", 0))
            assert len(codes) == (10 if number == 0 else 0), "recovery codes come with the first"
        with pytest.raises(Unfit, match="at most 10"):
            await add_passkey(connection, person_id, "Phone", Signed(b"one more", b"key", 0))
