"""How many people and passkeys there may be: the last that may, and the first that may not."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.chained import actor_on

from largesse.base.errors import InvalidRequest
from largesse.customers.members import invite
from largesse.customers.passkeys import Signed, Unfit, add_passkey
from largesse.customers.people import add_person
from largesse.db.pool import Database
from largesse.db.scope import OPERATOR
from largesse.encryption.vault import Vault

VAULT = Vault((bytes(32),))


@pytest.fixture
async def database(module_database_url: str) -> AsyncIterator[Database]:
    database = await Database.connect(module_database_url)
    yield database
    await database.close()


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
    await invite(actor, "last@full.example", name=None, role="member", mails=False)
    for email in ("beyond@full.example", "510@full.example"):
        with pytest.raises(InvalidRequest, match="at most 500 people"):
            await invite(actor, email, name=None, role="member", mails=False)


async def test_ten_passkeys_of_a_person(database: Database) -> None:
    async with database.transaction(OPERATOR) as connection:
        person_id = await add_person(connection, "keys@full.example")
        for number in range(10):
            codes = await add_passkey(connection, person_id, "Phone", Signed(b"%d" % number, b"key", 0))
            assert len(codes) == (10 if number == 0 else 0), "recovery codes come with the first"
        with pytest.raises(Unfit, match="At most 10"):
            await add_passkey(connection, person_id, "Phone", Signed(b"one more", b"key", 0))
