"""Authenticator app as RFC 6238 has them, each taken once, and recovery codes."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from largesse.customers import second_step
from largesse.customers.sign_in_store import add_person
from largesse.db.pool import Connection, Database, connect_once
from largesse.db.roles import Role
from largesse.db.scope import OPERATOR
from largesse.encryption.master_keys import prove_master_key
from largesse.encryption.vault import Vault

VAULT = Vault((bytes(range(32)),))


@pytest.fixture
async def database(module_database_url: str) -> AsyncIterator[Database]:
    async with connect_once(module_database_url, OPERATOR) as connection:
        await prove_master_key(connection, VAULT, keep=True)
    database = await Database.connect(module_database_url, role=Role.APP)
    database.credentials_key = VAULT.credentials_key
    yield database
    await database.close()


async def now_s(connection: Connection) -> float:
    return await connection.fetchval("SELECT extract(epoch FROM clock_now())::float8")


async def turned_on(connection: Connection, email: str) -> tuple[int, bytes, list[str]]:
    person_id, secret = await add_person(connection, email), second_step.new_totp_secret()
    code = second_step._totp(secret).generate(await now_s(connection)).decode()
    codes = await second_step.turn_on(connection, VAULT, person_id, secret, code)
    assert codes is not None
    return person_id, secret, codes


@pytest.mark.parametrize(
    ("at_s", "code"), [(59, "287082"), (1111111109, "081804"), (1111111111, "050471"), (20000000000, "353130")]
)
def test_codes_are_those_of_the_standard(at_s: int, code: str) -> None:
    """RFC 6238, appendix B, the last six digits; a clock may be a step off, and no more."""
    secret = b"12345678901234567890"
    step = at_s // 30
    for offset, found in ((0, step), (30, step), (-30, step), (60, None), (-60, None)):
        assert second_step._step_of(secret, code, at_s + offset, after=0) == found
    assert second_step._step_of(secret, code, at_s, after=step) is None, "taken before"


def test_the_secret_is_read_and_typed() -> None:
    address = second_step.totp_address(b"12345678901234567890", "ada@acme.example")
    assert address.startswith("otpauth://totp/Largesse:ada%40acme.example?")
    assert "secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ" in address
    assert second_step.typed_secret(b"12345678901234567890").split() == ["GEZD", "GNBV", "GY3T", "QOJQ"] * 2


async def test_a_code_is_taken_once_whoever_types_it(database: Database) -> None:
    async with database.transaction(OPERATOR) as connection:
        person_id, secret, _ = await turned_on(connection, "once@acme.example")
        used = second_step._totp(secret).generate(await now_s(connection)).decode()
        assert not await second_step.take_code(connection, VAULT, person_id, used), "it turned the app on"
        coming = second_step._totp(secret).generate(await now_s(connection) + 30).decode()

    async def take() -> bool:
        async with database.transaction(OPERATOR) as connection:
            return await second_step.take_code(connection, VAULT, person_id, f" {coming[:3]} {coming[3:]} ")

    taken = await asyncio.gather(*(take() for _ in range(8)))
    assert taken.count(True) == 1


async def test_recovery_codes_hold_once_each_and_until_there_are_new_ones(database: Database) -> None:
    async with database.transaction(OPERATOR) as connection:
        person_id, _, codes = await turned_on(connection, "recovers@acme.example")
        other_id, _, _ = await turned_on(connection, "other@acme.example")
        assert len(set(codes)) == 10
        assert not await second_step.take_code(connection, VAULT, other_id, codes[0]), "of somebody else"
        assert await second_step.take_code(connection, VAULT, person_id, codes[0].lower().replace("-", " "))
        assert not await second_step.take_code(connection, VAULT, person_id, codes[0])
        fresh = await second_step.new_recovery_codes(connection, person_id)
        assert not await second_step.take_code(connection, VAULT, person_id, codes[1])
        assert await second_step.take_code(connection, VAULT, person_id, fresh[1])
        kept = await connection.fetch("SELECT encode(hash, 'escape') AS hash FROM recovery_codes")
        assert not {row["hash"] for row in kept} & set(fresh)


async def test_a_wrong_code_turns_nothing_on_and_without_a_second_step_none_is_right(database: Database) -> None:
    async with database.transaction(OPERATOR) as connection:
        person_id, secret = await add_person(connection, "without@acme.example"), second_step.new_totp_secret()
        for wrong in ("", "12345", "abcdef", "\uff11\uff12\uff13\uff14\uff15\uff16"):
            assert await second_step.turn_on(connection, VAULT, person_id, secret, wrong) is None
            assert not await second_step.take_code(connection, VAULT, person_id, wrong)
        person_id, secret, codes = await turned_on(connection, "off@acme.example")
        await second_step.forget_second_step(connection, person_id)
        assert not await second_step.take_code(connection, VAULT, person_id, codes[0])
