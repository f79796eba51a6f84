"""An attempt costs the same statements whatever is wrong with it, so that its time tells nothing."""

import re
from datetime import UTC, datetime

import pytest
from tests.distributed import IS_DISTRIBUTED
from tests.orders.builder import insert_order

from largesse.db.pool import Database
from largesse.db.scope import LOOKUP, OPERATOR
from largesse.encryption.vault import Vault
from largesse.lines.attempts import FAILURES_TO_PAUSE, Attempt, CodeChecker, record_failure
from largesse.lines.codes import SealedCodes, draw_codes

VAULT = Vault((bytes(range(32)), bytes(range(32, 64))))
KNOWN, PAUSED, SCHEDULED, UNKNOWN = draw_codes(4)
NUMBERS = {1: KNOWN, 2: PAUSED, 3: SCHEDULED}


@pytest.fixture
async def database(database: Database) -> Database:
    async with database.connection(OPERATOR) as connection:
        for order_id, code in NUMBERS.items():
            scheduled_for = datetime(2100, 1, 1, tzinfo=UTC) if code is SCHEDULED else None
            await insert_order(connection, order_id, f"REF{order_id}", scheduled_for=scheduled_for)
            (sealed,) = SealedCodes(VAULT, [code], f"REF{order_id}")
            await connection.execute(
                "INSERT INTO lines (customer_id, order_id, number, code_lookup, sealed) VALUES (1, $1, 1, $2, $3)",
                order_id,
                sealed.lookup,
                sealed.sealed,
            )
    return database


async def statements(database: Database, attempt: Attempt) -> tuple[bool, list[str]]:
    """Whether the attempt is right, and the statements it and its refusal take."""
    examiner = CodeChecker(VAULT, "production")
    seen: list[str] = []
    async with database.transaction(LOOKUP) as connection:
        # Whom it goes on for is said to the database in the same way, whether there is a line or not.
        with connection.query_logger(lambda record: seen.append(re.sub(r"'\{-?1\}'", "…", record.query))):
            examined = await examiner.examine(connection, attempt)
            if not examined.is_right:
                await record_failure(connection, examined)
    return examined.is_right, seen


async def test_every_refusal_takes_the_same_statements(database: Database) -> None:
    wrong = f"{(PAUSED.pin + 1) % 1_000_000:06d}"
    for _ in range(FAILURES_TO_PAUSE):
        await statements(database, Attempt(PAUSED.code, wrong, "192.0.2.1"))
    attempts = {
        "wrong PIN": Attempt(KNOWN.code, f"{(KNOWN.pin + 1) % 1_000_000:06d}", "192.0.2.2"),
        "paused": Attempt(PAUSED.code, PAUSED.pin_text, "192.0.2.2"),
        "unknown": Attempt(UNKNOWN.code, UNKNOWN.pin_text, "192.0.2.2"),
        "malformed": Attempt(None, "", "192.0.2.2"),
        "not sent yet": Attempt(SCHEDULED.code, SCHEDULED.pin_text, "192.0.2.2"),
    }
    taken = {name: await statements(database, attempt) for name, attempt in attempts.items()}
    assert not any(is_right for is_right, _ in taken.values())
    assert len(taken["unknown"][1]) == (5 if IS_DISTRIBUTED else 4)  # there all nodes are asked whose it is
    assert {name: queries for name, (_, queries) in taken.items()} == dict.fromkeys(taken, taken["unknown"][1])
    assert (await statements(database, Attempt(KNOWN.code, KNOWN.pin_text, "192.0.2.2")))[0]


async def test_each_refusal_is_counted_against_its_address(database: Database) -> None:
    for _ in range(3):
        await statements(database, Attempt(UNKNOWN.code, "000000", "192.0.2.9"))
    assert await database.fetchval(OPERATOR, "SELECT round(allowance) FROM claim_addresses") == 97


async def test_a_refusal_that_began_first_and_is_counted_last_costs_one_try(database: Database) -> None:
    """No allowance is taken back for the time between two that overlap."""
    for ahead_s in (30, 0):
        await database.execute(OPERATOR, "UPDATE clock SET ahead_by = $1 * interval '1 second'", float(ahead_s))
        await statements(database, Attempt(UNKNOWN.code, "000000", "192.0.2.77"))
    assert await database.fetchval(
        OPERATOR, "SELECT max(allowance) = 98 FROM claim_addresses WHERE last_at > clock_now()"
    )


async def test_a_code_of_another_environment_is_unknown(database: Database) -> None:
    async with database.transaction(LOOKUP) as connection:
        examined = await CodeChecker(VAULT, "staging").examine(
            connection, Attempt(KNOWN.code, KNOWN.pin_text, "192.0.2.2")
        )
    assert examined.line is None
    assert not examined.is_right
