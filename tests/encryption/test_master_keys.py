"""A master key that is not the database's is refused, whoever starts first, and keys rotate all the same.

Keys are added by commands, and never by a process that may only serve.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import asyncpg
import pytest
from msgspec.structs import replace
from tests.distributed import IS_DISTRIBUTED

from largesse.base.errors import OperatorError
from largesse.base.settings import Settings, load_settings
from largesse.db.pool import connect_once
from largesse.db.roles import Role
from largesse.db.scope import OPERATOR
from largesse.encryption.master_keys import is_sealed, list_master_keys, prove_master_key
from largesse.encryption.vault import Vault
from largesse.installation import chain_ledger, chains_of, open_database, open_vault

OLD, NEW, OTHER = (bytes([number]) * 32 for number in (1, 2, 3))


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    async with connect_once(database_url, OPERATOR) as connection:
        yield connection


async def refused(connection: asyncpg.Connection, *keys: bytes) -> bool:
    """Whether these keys are refused, with a line that names the setting."""
    try:
        await prove_master_key(connection, Vault(keys), keep=True)
    except OperatorError as refusal:
        said = str(refusal)
    else:
        return False
    assert said.startswith(("LARGESSE_MASTER_KEY is not the key", "LARGESSE_MASTER_KEY lacks a key"))
    assert "\n" not in said
    return True


async def proofs(connection: asyncpg.Connection) -> list[bytes]:
    return [row["sealed"] for row in await connection.fetch("SELECT sealed FROM master_keys ORDER BY id")]


async def test_the_first_start_decides(connection: asyncpg.Connection) -> None:
    assert not await is_sealed(connection)
    assert not await refused(connection, OLD)
    kept = await proofs(connection)
    assert await is_sealed(connection)
    assert not await refused(connection, OLD)
    assert await refused(connection, OTHER)
    assert await proofs(connection) == kept


async def test_every_key_that_was_in_a_list_is_needed_from_then_on(connection: asyncpg.Connection) -> None:
    assert not await refused(connection, OLD)
    assert not await refused(connection, OLD, NEW)  # every process is to know it before one seals under it
    assert not await refused(connection, NEW, OLD)
    assert await refused(connection, OLD)  # it could not open what the others seal now
    assert await refused(connection, NEW)  # nor this one what was sealed before
    assert await refused(connection, NEW, OTHER)
    assert not await refused(connection, OTHER, OLD, NEW)


async def test_a_key_that_was_only_added_is_not_said_to_encrypt_something(connection: asyncpg.Connection) -> None:
    for keys in ((OLD,), (OLD, NEW)):
        await prove_master_key(connection, Vault(keys), keep=True)
    with pytest.raises(OperatorError, match="encrypted under it, or may be at any moment"):
        await prove_master_key(connection, Vault((OLD,)), keep=False)


async def test_what_is_missing_is_named_and_what_to_do(connection: asyncpg.Connection) -> None:
    await prove_master_key(connection, Vault((NEW, OLD)), keep=True)
    with pytest.raises(OperatorError) as refusal:
        await prove_master_key(connection, Vault((NEW,)), keep=True)
    said = str(refusal.value)
    assert Vault((OLD,)).key_ids[0].hex() in said
    assert Vault((NEW,)).key_ids[0].hex() not in said
    assert "largesse reseal" in said
    assert OLD.hex() not in said


async def test_a_database_from_before_keys_were_kept_one_by_one(connection: asyncpg.Connection) -> None:
    """Its one proof is of the newest; what else the first list has is needed too, as something may be sealed under it."""
    await prove_master_key(connection, Vault((NEW,)), keep=True)
    assert not await refused(connection, NEW, OLD)
    assert await refused(connection, NEW)
    assert [key.is_needed for key in await list_master_keys(connection)] == [True, True]


@pytest.mark.parametrize("place", ["lines", "vouchers", "webhook_subscriptions"])
async def test_a_database_from_before_the_proof_tells_by_what_was_sealed_last(
    connection: asyncpg.Connection, place: str
) -> None:
    await _seal_in(connection, place, OLD, 1)
    await _seal_in(connection, place, NEW, 2)
    assert await is_sealed(connection)
    for keys in ((OTHER,), (OLD,)):
        assert await refused(connection, *keys)
        assert await proofs(connection) == []
    assert not await refused(connection, NEW, OLD)
    assert len(await proofs(connection)) == 2


async def test_of_several_that_start_first_at_once_one_key_wins(database_url: str) -> None:
    keys = [bytes([number]) * 32 for number in range(1, 9)]

    async def start(key: bytes) -> bool:
        async with connect_once(database_url, OPERATOR) as connection:
            return await refused(connection, key)

    outcomes = await asyncio.gather(*(start(key) for key in keys for _ in range(2)))
    assert sorted(outcomes) == [False] * 2 + [True] * 14
    async with connect_once(database_url, OPERATOR) as connection:
        assert len(await proofs(connection)) == 1


async def test_an_audit_writes_nothing(connection: asyncpg.Connection) -> None:
    await prove_master_key(connection, Vault((OLD,)), keep=False)
    assert await proofs(connection) == []
    assert not await refused(connection, OLD)
    kept = await proofs(connection)
    await prove_master_key(connection, Vault((NEW, OLD)), keep=False)
    assert await proofs(connection) == kept


async def test_where_nothing_can_be_written_nothing_is(connection: asyncpg.Connection) -> None:
    await connection.execute("SET default_transaction_read_only = on")
    assert not await refused(connection, OLD)
    assert await proofs(connection) == []


async def _seal_in(connection: asyncpg.Connection, place: str, key: bytes, number: int) -> None:
    """Puts something sealed by `key` into a table, after what is there."""
    vault = Vault((key,))
    part = {"lines": vault.codes, "vouchers": vault.vouchers}.get(place, vault.webhooks)
    sealed = part.seal(b"secret", b"somewhere")
    if place == "lines":
        await connection.execute(
            "INSERT INTO lines (customer_id, order_id, number, code_lookup, sealed) VALUES (1, $1::int, 1, $1::int, $2)",
            number,
            sealed,
        )
    elif place == "vouchers":
        product_id = await connection.fetchval(
            """
            INSERT INTO products (key, name, is_digital, currency, countries, denominations_minor)
            VALUES ($1, 'Coffee', true, 'GBP', '{GB}', '{500}') RETURNING id
            """,
            f"coffee-{number}",
        )
        await connection.execute(
            "INSERT INTO vouchers (product_id, value_minor, lookup, sealed, added_at) VALUES ($1, 500, $2, $3, now())",
            product_id,
            number,
            sealed,
        )
    else:
        await connection.execute(
            """
            WITH c AS (INSERT INTO customers (key, name, plan, funding) VALUES ($1, 'Acme', 'pro', 'invoiced') RETURNING id),
                 s AS (INSERT INTO service_accounts (customer_id, key, name) SELECT id, 'bot', 'Bot' FROM c RETURNING id)
            INSERT INTO webhook_subscriptions
                (id, customer_id, environment, event, target_url, sealed_secret, service_account_id, created_at)
            SELECT gen_random_uuid(), c.id, 'production', 'order.created', 'https://hooks.example', $2, s.id,
                   now() + $3 * interval '1 second' FROM c, s
            """,
            f"acme-{number}",
            sealed,
            number,
        )


by_a_login = pytest.mark.skipif(IS_DISTRIBUTED, reason="a login would have to be made on each node")


@pytest.fixture
async def login(database_url: str) -> AsyncIterator[str]:
    """The address of a login that may serve and nothing else."""
    name = f"test_keys_{secrets.token_hex(4)}"
    admin = await asyncpg.connect(database_url)
    await admin.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{name}' IN ROLE {Role.APP}")
    parts = urlsplit(database_url)
    yield database_url.replace(f"//{parts.netloc}/", f"//{name}:{name}@{parts.netloc.rpartition('@')[2]}/", 1)
    await admin.execute(f"DROP ROLE {name}")
    await admin.close()


async def start(settings: Settings) -> None:
    """Opens what a serving process opens."""
    async with open_database(settings, role=Role.APP) as database:
        await chains_of(database, await open_vault(database, settings), settings)


@by_a_login
async def test_a_login_that_only_serves_is_told_to_migrate_and_starts_then(database_url: str, login: str) -> None:
    serves = replace(load_settings({}), database_url=login, master_keys=(OLD,))
    with pytest.raises(OperatorError, match="run `largesse migrate` with it first"):
        await start(serves)
    owner = replace(serves, owner_database_url=database_url)
    assert await chain_ledger(owner) == 0
    await start(serves)
    # A new key is added by a command, too. Then processes with either list start, one after the other.
    with pytest.raises(OperatorError, match="run `largesse migrate` with it first"):
        await start(replace(serves, master_keys=(OLD, NEW)))
    await chain_ledger(replace(owner, master_keys=(OLD, NEW)))
    for keys in ((OLD, NEW), (NEW, OLD)):
        await start(replace(serves, master_keys=keys))
    with pytest.raises(OperatorError, match="lacks a key"):
        await start(replace(serves, master_keys=(NEW,)))


@by_a_login
async def test_a_login_that_may_act_as_the_operator_adds_them_by_itself(database_url: str) -> None:
    settings = replace(load_settings({}), database_url=database_url, master_keys=(OLD,))
    await start(settings)
    admin = await asyncpg.connect(database_url)
    counts = "SELECT (SELECT count(*) FROM master_keys), (SELECT count(*) FROM chain_keys)"
    assert tuple(await admin.fetchrow(counts)) == (1, 1)
    await start(replace(settings, master_keys=(NEW, OLD)))
    assert tuple(await admin.fetchrow(counts)) == (2, 1)
    await admin.close()
