"""Claiming needs no page: a code and a PIN, once, and what the gift becomes is somebody else's to settle."""

from datetime import datetime, timedelta

import pytest
from tests.orders.builder import insert_order

from largesse.base.errors import NotFound
from largesse.db.pool import Connection, Database, scope_of
from largesse.db.scope import OPERATOR, for_customer
from largesse.encryption.vault import Vault
from largesse.lines.attempts import Attempt
from largesse.lines.claiming import Claiming, Outcome, RecipientSlots
from largesse.lines.codes import SealedCodes, draw_codes
from largesse.lines.states import LineKey, State, record_cancelled
from largesse.lines.store import Line, read_progress

VAULT = Vault((bytes(range(32)),))
CODES = draw_codes(2)


class Recording:
    """What a line becomes: as told, in stock or not; it keeps what it was asked."""

    def __init__(self, *, has_stock: bool) -> None:
        self.has_stock = has_stock
        self.settled: list[tuple[int, int]] = []
        self.served: list[tuple[int, int]] = []

    async def settle(self, connection: Connection, line: Line, product_id: int, at: datetime) -> bool:
        assert connection.is_in_transaction()
        assert scope_of(connection) == for_customer(1, "production")
        assert (await read_progress(connection, line.key)).claimed_at == at
        self.settled.append((line.number, product_id))
        return self.has_stock

    async def serve(self, line: Line, product_id: int) -> None:
        self.served.append((product_id, line.value_minor))


@pytest.fixture
async def database(database: Database) -> Database:
    async with database.connection(OPERATOR) as connection:
        await insert_order(connection, 1, "REF", product_id=7, value_minor=500, total_minor=1000, code_count=2)
        for number, sealed in enumerate(SealedCodes(VAULT, CODES, "REF"), 1):
            await connection.execute(
                "INSERT INTO lines (customer_id, order_id, number, code_lookup, sealed) VALUES (1, 1, $1, $2, $3)",
                number,
                sealed.lookup,
                sealed.sealed,
            )
    return database


def claiming(database: Database, fulfiller: Recording) -> Claiming:
    return Claiming(database, VAULT, "production", fulfiller, default_expiry_days=30, slots=RecipientSlots())


def attempt(number: int, pin: str | None = None) -> Attempt:
    code = CODES[number - 1]
    return Attempt(code.code, pin or code.pin_text, "192.0.2.1")


async def test_a_gift_is_claimed_once(database: Database) -> None:
    fulfiller = Recording(has_stock=True)
    claims = claiming(database, fulfiller)
    first = await claims.claim(attempt(1), "fr")
    again = await claims.claim(attempt(1), "de")
    assert [first.outcome, again.outcome] == [Outcome.CLAIMED, Outcome.CLAIMED_BEFORE]
    assert first.line == again.line == (1, 1, 1)
    assert (fulfiller.settled, fulfiller.served) == ([(1, 7)], [])
    row = await database.fetchrow(OPERATOR, "SELECT state, claimed_at, expires_at, language FROM line_states")
    assert row is not None
    assert (row["state"], row["claimed_at"], row["language"]) == ("claimed", first.at, "fr")
    assert row["expires_at"] - row["claimed_at"] == timedelta(days=30)


async def test_what_must_wait_is_served_after_the_commit(database: Database) -> None:
    fulfiller = Recording(has_stock=False)
    assert (await claiming(database, fulfiller).claim(attempt(2), None)).outcome is Outcome.CLAIMED
    assert (fulfiller.settled, fulfiller.served) == ([(2, 7)], [(7, 500)])


async def test_a_wrong_pin_and_a_cancelled_line_claim_nothing(database: Database) -> None:
    fulfiller = Recording(has_stock=True)
    claims = claiming(database, fulfiller)
    wrong = f"{(CODES[0].pin + 1) % 1_000_000:06d}"
    assert (await claims.claim(attempt(1, wrong), None)).outcome is Outcome.REFUSED
    failures = "SELECT decoy, key = (SELECT min(code_lookup) FROM lines WHERE number = 1), failures FROM pin_failures"
    assert await database.fetch(OPERATOR, failures) == [(False, True, 1)], "counted against its code"
    async with database.transaction(OPERATOR) as connection:
        at = await connection.fetchval("SELECT clock_now()")
        await record_cancelled(connection, 1, 1, [2], at)
    assert (await claims.claim(attempt(2), None)).outcome is Outcome.WITHDRAWN
    assert fulfiller.settled == []
    async with database.connection(OPERATOR) as connection:
        states = [(await read_progress(connection, LineKey(1, 1, number))).state for number in (1, 2)]
    assert states == [State.ISSUED, State.CANCELLED]


async def test_of_two_customers_lines_with_one_number_it_is_that_of_the_code(database: Database) -> None:
    """Codes are found by 64 bits of a hash, which two customers may draw alike: the other's line, first or last, is not touched."""
    (drawn,) = draw_codes(1)
    for other in (0, 2):
        reference = f"REF{other}"
        (sealed,) = SealedCodes(VAULT, [drawn], reference)
        async with database.connection(OPERATOR) as connection:
            await insert_order(connection, 1, reference, customer_id=other)
            await connection.execute(
                """
                INSERT INTO lines (customer_id, order_id, number, code_lookup, sealed)
                SELECT $1, 1, 1, code_lookup, $2 FROM lines WHERE customer_id = 1 AND number = 1
                """,
                other,
                sealed.sealed,
            )
    claims = claiming(database, Recording(has_stock=True))
    claim = await claims.claim(attempt(1), None)
    assert (claim.outcome, claim.line) == (Outcome.CLAIMED, (1, 1, 1))
    states = await database.fetch(OPERATOR, "SELECT customer_id FROM line_states")
    assert [customer for (customer,) in states] == [1]


async def test_a_link_leads_to_a_line_that_was_sent_and_to_no_other(database: Database) -> None:
    claims = claiming(database, Recording(has_stock=True))
    line, progress = await claims.find(VAULT.token(CODES[0].code, 1))
    assert (line.key, progress.state) == ((1, 1, 1), State.ISSUED)
    unknown = draw_codes(1)[0]
    for leads_nowhere in (VAULT.token(unknown.code, 1), VAULT.token(unknown.code), "x" * 30, ""):
        with pytest.raises(NotFound):
            await claims.find(leads_nowhere)
        await claims.open(leads_nowhere)
    await database.execute(OPERATOR, "UPDATE orders SET scheduled_for = clock_now() + interval '1 minute'")
    with pytest.raises(NotFound):
        await claims.find(VAULT.token(CODES[0].code, 1))
    await claims.open(VAULT.token(CODES[0].code, 1))
    assert await database.fetchval(OPERATOR, "SELECT count(*) FROM line_events") == 0
    await database.execute(OPERATOR, "UPDATE orders SET scheduled_for = clock_now() - interval '1 second'")
    await claims.open(VAULT.token(CODES[0].code, 1))
    assert await database.fetchval(OPERATOR, "SELECT event FROM line_events") == "opened"


async def test_an_address_with_nothing_left_waits_whatever_it_types(database: Database) -> None:
    await database.execute(OPERATOR, "DELETE FROM claim_addresses")
    claims = claiming(database, Recording(has_stock=True))
    assert (await claims.claim(attempt(1, "x"), None)).outcome is Outcome.REFUSED
    await database.execute(OPERATOR, "UPDATE claim_addresses SET allowance = 0.5, last_at = clock_now()")
    slowed = await claiming(database, Recording(has_stock=True)).claim(attempt(1), None)
    assert slowed.outcome is Outcome.SLOWED
    assert 0 < slowed.wait_s <= 4.5
    await database.execute(OPERATOR, "UPDATE claim_addresses SET allowance = 1, last_at = clock_now()")
    assert (await claims.claim(attempt(1), None)).outcome is Outcome.CLAIMED
