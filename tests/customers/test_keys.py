"""API keys: their secrets, and in the database made, looked up, listed, deleted, and when last seen."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from ipaddress import ip_network
from typing import Any

import asyncpg
import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st
from tests.chained import CHAIN, actor_on
from tests.distributed import IS_DISTRIBUTED, SOMEBODY_WAITS, WAITING
from tests.keys import create_key
from tests.plans import rows_read
from tests.seed.conftest import load
from tests.seed.worlds import WHOLE
from tests.waiting import until

from largesse.base.errors import NotFound, OperatorError, Unauthorized, Unavailable
from largesse.base.settings import parse_network
from largesse.customers import authenticator as authenticating
from largesse.customers import customer_store, key_store
from largesse.customers.access import FIND_KEYS
from largesse.customers.api_keys import narrow_key
from largesse.customers.authenticator import Authenticator, _base62, new_secret, secret_hash, well_formed
from largesse.customers.key_store import delete_key, list_keys
from largesse.db.pool import Database
from largesse.db.roles import Role
from largesse.db.scope import OPERATOR
from largesse.encryption.vault import Vault
from largesse.reports import names
from largesse.seed.load import load_seed
from largesse.seed.reading import parse_seed

WORLD = b"""
customers:
  - key: acme
    name: Acme Ltd
    plan: pro
    funding: balance
    service_accounts: [{key: bot, name: Bot}, {key: idle, name: Idle, active: false}]
  - key: globex
    name: Globex
    plan: starter
    funding: invoiced
    service_accounts: [{key: bot, name: Other bot}]
"""


@pytest.fixture
async def database(database: Database) -> Database:
    async with database.connection(OPERATOR) as connection:
        await load_seed(connection, CHAIN, parse_seed(WORLD, "world.yaml"))
    return database


async def make(
    database: Database, name: str, *, customer: str = "acme", bot: str = "bot", environment: str = "production"
) -> tuple[int, str]:
    async with database.connection(OPERATOR) as connection:
        return await create_key(connection, customer=customer, service_account=bot, environment=environment, key=name)


@pytest.fixture
async def authenticator(database: Database) -> AsyncIterator[Authenticator]:
    authenticator = Authenticator(database, "production")
    yield authenticator
    await authenticator.close()


@pytest.mark.skipif(IS_DISTRIBUTED, reason="what is read of a copied table is not counted under its name")
async def test_keys_are_looked_up_by_indexes_also_while_there_are_few(database: Database) -> None:
    _, secret = await make(database, "one")
    read_whole = "SELECT relname, seq_scan FROM pg_stat_xact_user_tables WHERE relname IN ('api_keys', 'customers', 'service_accounts')"
    async with database.transaction(OPERATOR) as connection:
        await connection.execute("ANALYZE api_keys, customers, service_accounts")
        before = await connection.fetch(read_whole)
        for hashes in ([secret_hash(secret)], [secret_hash(secret), b"no such hash"]) * 10:
            assert len(await connection.fetch(FIND_KEYS, hashes, "production")) == 1
        assert await connection.fetch(read_whole) == before


async def test_a_key_tells_whom_it_acts_for(database: Database, authenticator: Authenticator) -> None:
    key_id, secret = await make(database, "one")
    principal = (await authenticator.authenticate(secret)).principal
    assert principal.key_id == key_id
    assert (principal.customer_name, principal.plan, principal.funding) == ("Acme Ltd", "pro", "balance")
    assert (principal.service_account_name, principal.service_account_active) == ("Bot", True)
    assert principal.environment == "production"
    _, other = await make(database, "two", customer="globex")
    assert (await authenticator.authenticate(other)).principal.customer_name == "Globex"
    _, idle = await make(database, "three", bot="idle")
    assert (await authenticator.authenticate(idle)).principal.service_account_active is False


async def test_many_at_once_each_get_their_own_answer(database: Database, authenticator: Authenticator) -> None:
    made = [await make(database, f"key-{n}") for n in range(10)]
    secrets = [secret for _, secret in made]
    unknown = [new_secret("production") for _ in range(10)]
    asked = [secret for pair in zip(secrets, unknown, strict=True) for secret in pair] * 5
    answers = await asyncio.gather(*(authenticator.authenticate(secret) for secret in asked), return_exceptions=True)
    for secret, answer in zip(asked, answers, strict=True):
        if secret in unknown:
            assert isinstance(answer, Unauthorized)
        else:
            assert not isinstance(answer, BaseException)
            assert answer.principal.key_id == made[secrets.index(secret)][0]


async def test_a_deleted_key_and_one_of_the_other_environment_are_unknown(
    database: Database, authenticator: Authenticator
) -> None:
    key_id, secret = await make(database, "one")
    _, staging = await make(database, "two", environment="staging")
    await authenticator.authenticate(secret)
    async with database.connection(OPERATOR) as connection:
        await delete_key(connection, key_id)
    for wrong in (secret, staging, new_secret("production"), "", "x", secret[:-1], secret + "\n"):
        with pytest.raises(Unauthorized) as refused:
            await authenticator.authenticate(wrong)
        assert secret not in refused.value.detail


async def test_what_changes_holds_for_the_next_request(database: Database, authenticator: Authenticator) -> None:
    _, secret = await make(database, "one")
    first = await authenticator.authenticate(secret)
    await database.execute(OPERATOR, "UPDATE service_accounts SET active = false")
    await database.execute(OPERATOR, "UPDATE customers SET plan = 'enterprise'")
    await database.execute(OPERATOR, "UPDATE catalogue_version SET version = version + 1")
    second = await authenticator.authenticate(secret)
    assert (second.principal.service_account_active, second.principal.plan) == (False, "enterprise")
    assert second.catalogue_version == first.catalogue_version + 1


async def test_only_a_hash_is_kept(database: Database) -> None:
    _, secret = await make(database, "one")
    row = await database.fetch(OPERATOR, "SELECT k::text FROM api_keys k")
    assert len(row) == 1
    assert secret not in str(row[0])
    assert secret.encode().hex() not in str(row[0])


@pytest.mark.parametrize(
    ("customer", "bot", "said"),
    [
        ("nobody", "bot", "customer 'nobody' has no service account 'bot'"),
        ("acme", "nobody", "no service account 'nobody'"),
        ("globex", "idle", "no service account 'idle'"),
    ],
)
async def test_a_key_needs_a_customer_and_its_service_account(
    database: Database, customer: str, bot: str, said: str
) -> None:
    with pytest.raises(OperatorError, match=said):
        await make(database, "one", customer=customer, bot=bot)


async def test_a_name_is_used_once_for_each_customer(database: Database) -> None:
    await make(database, "one")
    with pytest.raises(OperatorError, match="already has an API key 'one'"):
        await make(database, "one", environment="staging")
    await make(database, "one", customer="globex")


async def test_a_deleted_key_keeps_its_row_and_frees_its_name(database: Database) -> None:
    key_id, secret = await make(database, "one")
    async with database.connection(OPERATOR) as connection:
        await delete_key(connection, key_id)
        with pytest.raises(NotFound, match=f"no API key {key_id}"):
            await delete_key(connection, key_id)
        assert await list_keys(connection) == []
    again, _ = await make(database, "one")
    assert again > key_id
    async with database.connection(OPERATOR) as connection:
        first, second = await list_keys(connection, "acme", with_deleted=True)
    assert (first.id, first.key, first.service_account) == (key_id, "one", "bot")
    assert first.deleted_at is not None
    assert (second.id, second.deleted_at) == (again, None)
    assert await database.fetchval(OPERATOR, "SELECT hash FROM api_keys WHERE id = $1", key_id) is None
    assert await database.fetchval(OPERATOR, "SELECT count(*) FROM api_keys WHERE hash = $1", secret_hash(secret)) == 0


async def test_keys_are_listed_without_their_secrets(database: Database) -> None:
    _, secret = await make(database, "one")
    await make(database, "two", customer="globex", environment="staging")
    async with database.connection(OPERATOR) as connection:
        both, one = await list_keys(connection), await list_keys(connection, "acme")
    assert [(k.customer, k.key, k.service_account, k.environment) for k in both] == [
        ("acme", "one", "bot", "production"),
        ("globex", "two", "bot", "staging"),
    ]
    assert one == both[:1]
    assert both[0].last_seen_at is None
    assert secret not in repr(both)


async def test_an_unknown_key_is_not_deleted(database: Database) -> None:
    async with database.connection(OPERATOR) as connection:
        with pytest.raises(NotFound, match="there is no API key 999"):
            await delete_key(connection, 999)


async def test_when_a_key_was_last_seen_is_written_once_in_a_while(database: Database) -> None:
    query = "SELECT last_seen_at FROM api_keys WHERE key = 'one'"
    _, secret = await make(database, "one")
    _, unused = await make(database, "two")
    authenticator = Authenticator(database, "production")
    await authenticator.authenticate(secret)
    await authenticator._write_last_seen()
    first = await database.fetchval(OPERATOR, query)
    assert first is not None
    await authenticator.authenticate(secret)
    await authenticator.close()
    assert await database.fetchval(OPERATOR, query) == first
    assert await database.fetchval(OPERATOR, "SELECT last_seen_at FROM api_keys WHERE key = 'two'") is None
    assert unused


async def test_a_deadlock_ends_no_notes_of_when_keys_are_seen(
    database: Database, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes may write the same keys in another order, and PostgreSQL ends one of them."""
    monkeypatch.setattr(authenticating, "_FLUSH_EVERY_S", 3600)
    locks = "UPDATE api_keys SET last_seen_at = NULL WHERE key = $1"
    (_, one), (_, two) = await make(database, "one"), await make(database, "two")
    authenticator = Authenticator(database, "production")
    other = await asyncpg.connect(database_url)
    async with asyncio.timeout(20):
        with structlog.testing.capture_logs() as logs:
            async with other.transaction():
                await other.execute("SET LOCAL deadlock_timeout = '1min'")  # PostgreSQL is to end the writer, not this
                await other.execute(locks, "two")
                await asyncio.gather(authenticator.authenticate(one), authenticator.authenticate(two))
                monkeypatch.setattr(authenticating, "_FLUSH_EVERY_S", 0.02)
                writer = asyncio.create_task(authenticator._write_last_seen_for_ever())
                await until(lambda: other.fetchval(SOMEBODY_WAITS))
                await other.execute(locks, "one")
            await until(lambda: logs)  # the writer may be told after this that it was ended
        assert [one["error"] for one in logs] == ["DeadlockDetectedError"]
        await authenticator.authenticate(one)
        await until(lambda: database.fetchval(OPERATOR, "SELECT last_seen_at FROM api_keys WHERE key = 'one'"))
    writer.cancel()
    await other.close()
    await authenticator.close()


async def test_closing_answers_those_who_wait_and_then_refuses(database: Database) -> None:
    _, secret = await make(database, "one")
    authenticator = Authenticator(database, "production")
    waiting = [asyncio.create_task(authenticator.authenticate(secret)) for _ in range(5)]
    await asyncio.sleep(0)
    await authenticator.close()
    assert {(await task).principal.customer_name for task in waiting} == {"Acme Ltd"}
    with pytest.raises(Unavailable):
        await authenticator.authenticate(secret)


@pytest.mark.parametrize(("environment", "prefix"), [("production", "lgs_live_"), ("staging", "lgs_test_")])
def test_a_secret_has_its_prefix_and_one_length(environment: str, prefix: str) -> None:
    secret = new_secret(environment)

    assert secret.startswith(prefix)
    assert len(secret) == len(prefix) + 43 + 6
    assert well_formed(secret)


def test_an_unknown_environment_has_no_secrets() -> None:
    with pytest.raises(KeyError):
        new_secret("sandbox")


def test_secrets_differ() -> None:
    assert len({new_secret("production") for _ in range(1000)}) == 1000


def test_every_bit_of_256_fits_the_width() -> None:
    highest = _base62(2**256 - 1, 43)

    assert int_of(highest) == 2**256 - 1
    assert _base62(0, 43) == "0" * 43


def int_of(digits: str) -> int:
    number = 0
    for digit in digits:
        number = number * 62 + "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".index(digit)
    return number


@given(st.integers(min_value=9, max_value=57), st.sampled_from("0aZ"))
def test_one_wrong_character_is_seen(position: int, character: str) -> None:
    secret = new_secret("production")
    wrong = secret[:position] + character + secret[position + 1 :]

    assert well_formed(wrong) == (wrong == secret)


def test_the_checksum_covers_the_environment() -> None:
    assert not well_formed(new_secret("production").replace("lgs_live_", "lgs_test_"))


@pytest.mark.parametrize(
    "text", ["", "lgs_live_", "Bearer", "lgs_prod_" + "0" * 49, "lgs_live_" + "0" * 48, "lgs_live_" + "é" * 49]
)
def test_other_text_is_not_well_formed(text: str) -> None:
    assert not well_formed(text)


def test_a_line_end_after_the_secret_is_seen() -> None:
    assert not well_formed(new_secret("staging") + "\n")


def test_the_hash_is_sha256() -> None:
    secret = new_secret("staging")

    assert secret_hash(secret) == hashlib.sha256(secret.encode()).digest()
    assert len(secret_hash(secret)) == 32


async def test_two_who_narrow_a_key_at_once_narrow_it_in_both_ways(database: Database) -> None:
    """Each leaves what it was not given as it is: not as it was before the other."""
    key_id, _ = await make(database, "narrowed")
    actor = await actor_on(database, Vault((bytes(32),)))
    networks = [ip_network("192.0.2.0/24")]
    async with asyncio.timeout(30), asyncio.TaskGroup() as narrowing, database.transaction(OPERATOR) as holder:
        await holder.execute("SELECT FROM api_keys WHERE id = $1 FOR KEY SHARE", key_id)
        for given in ({"scopes": ["read"]}, {"networks": networks}):
            narrowing.create_task(narrow_key(actor, key_id, **given))
        await until(lambda: database.fetchval(OPERATOR, f"SELECT ({WAITING}) >= 2"))
    async with database.connection(OPERATOR) as connection:
        [key] = await list_keys(connection, key_id=key_id)
    assert (key.scopes, key.networks) == (["read"], networks)


@pytest.mark.parametrize(
    ("typed", "network"),
    [
        ("::ffff:192.0.2.7", "192.0.2.7/32"),
        (" ::ffff:192.0.2.0/120", "192.0.2.0/24"),
        ("::ffff:0:0/96", "0.0.0.0/0"),
        ("::fffe:0:0/95", "::fffe:0:0/95"),  # IPv4 is half of it
        ("2001:db8::/32", "2001:db8::/32"),
    ],
)
def test_ipv4_written_as_ipv6_is_ipv4_as_callers_addresses_are(typed: str, network: str) -> None:
    assert parse_network(typed) == ip_network(network)


KEYS = 3_000
# Keys of other customers, and three deleted ones of customer 1.
_KEYS = """
    INSERT INTO api_keys (customer_id, service_account_id, key, environment, deleted_at)
    SELECT CASE WHEN n <= 3 THEN 1 ELSE 1000 + n END, (SELECT min(id) FROM service_accounts), 'old ' || n, 'production', clock_now()
    FROM generate_series(1, $1::int) AS n
"""


@pytest.mark.skipif(IS_DISTRIBUTED, reason="what is read of a copied table is not counted under its name")
@pytest.mark.parametrize(
    ("role", "statement", "arguments"),
    [
        (Role.OFFICE, customer_store._ONE, (1,)),
        (Role.APP, key_store._LIST, (None, 1, True, None, None)),
        (Role.APP, names._FOUND, (1, "old", 100)),
    ],
    ids=["a customer's page", "the requests of a customer", "a search of the audit log"],
)
async def test_a_customer_s_keys_are_found_by_an_index(
    connection: asyncpg.Connection, role: Role, statement: str, arguments: tuple[Any, ...]
) -> None:
    await load(connection, WHOLE)
    await connection.execute("SET session_replication_role = replica")  # the other customers are not needed
    await connection.execute(_KEYS, KEYS)
    await connection.execute("ANALYZE api_keys")
    own = await connection.fetchval("SELECT count(*) FROM api_keys WHERE customer_id = 1")
    assert await rows_read(connection, role, "api_keys", statement, *arguments) == own >= 3


@pytest.mark.skipif(IS_DISTRIBUTED, reason="what is read of a copied table is not counted under its name")
async def test_a_list_of_customers_reads_each_key_once(connection: asyncpg.Connection) -> None:
    await load(connection, WHOLE)
    await connection.execute("SET session_replication_role = replica")
    await connection.execute(_KEYS, KEYS)
    await connection.execute(
        "INSERT INTO customers (key, name, plan, funding) SELECT 'c' || n, 'C', 'pro', 'balance' FROM generate_series(1, 500) AS n"
    )
    await connection.execute("ANALYZE")
    assert await rows_read(connection, Role.OPERATOR, "api_keys", customer_store._LIST) <= KEYS + 100
