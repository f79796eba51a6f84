"""What each role of the database can do to the ledger without the master key: refused, or found, also after `migrate`."""

import io
from collections.abc import AsyncIterator

import asyncpg
import pytest
from tests.chained import chain_of, chain_up, make_early
from tests.closing import closing
from tests.distributed import IS_DISTRIBUTED, execute_each

from largesse.base.errors import OperatorError
from largesse.db import migrate
from largesse.db.pool import Database
from largesse.db.roles import Role
from largesse.db.scope import OPERATOR
from largesse.db.sharding import SESSION_SETTINGS
from largesse.encryption.vault import Vault
from largesse.seed.load import load_seed
from largesse.seed.reading import parse_seed
from largesse.verify.audit import audit

KEY = b"k" * 32
WORLD = b"""
customers:
  - key: acme
    name: Acme Ltd
    plan: pro
    funding: balance
    funding_accounts:
      - {key: gbp, name: Float, master: true, currency: GBP, balance: 100.00}
"""
MONEY = """
    INSERT INTO entries (id, customer_id, account_id, movement_id, kind, amount_minor, balance_minor, created_at)
    SELECT nextval('entries_id_seq'), 1, id, 99, 'top_up', 100000000 * sign, balance_minor + 100000000 * sign, now()
    FROM accounts JOIN (VALUES ('funding', 1), ('deposits', -1)) AS s (side, sign) ON side = kind;
    UPDATE accounts SET balance_minor = balance_minor + 100000000 * sign
    FROM (VALUES ('funding', 1), ('deposits', -1)) AS s (side, sign) WHERE side = kind
"""
RESET = "UPDATE accounts SET chain_head = decode(repeat('00', 16), 'hex')"
OPENING = "INSERT INTO chain_openings SELECT 1, id, 1, decode('01', 'hex'), now() FROM accounts WHERE kind = 'funding'"
CHECKS = {"entries-are-chained", "accounts-are-whole"}
FORGERIES = {
    "money": MONEY,
    "reset": RESET,
    "money and reset": f"{MONEY}; {RESET}",
    "opening": OPENING,
    "environment": "UPDATE accounts SET environment = 'staging'",
    "currency": "UPDATE accounts SET currency = 'EUR'",
    "kind": "UPDATE accounts SET kind = 'receivable', currency = 'EUR' WHERE kind = 'deposits'",
    "mark": "UPDATE accounts SET mac = decode('0102', 'hex')",
    "entry": "UPDATE entries SET amount_minor = amount_minor + 1",
    "keys": "DELETE FROM chain_keys",
}
# What a role has a right to do; it is found. All else is refused.
FOUND = {
    Role.APP: {"money"},
    Role.WORKER: {"money"},
    Role.READ: set[str](),
    Role.OPERATOR: {"money", "opening", "mark"},
}
# A cluster passes on some rows by COPY, which PostgreSQL does not support with row-level security.
REFUSED = (asyncpg.InsufficientPrivilegeError, *([asyncpg.FeatureNotSupportedError] if IS_DISTRIBUTED else []))
# The owner may switch triggers off and grants itself what it likes.
OWNER = (
    "ALTER TABLE entries DISABLE TRIGGER USER; ALTER TABLE accounts DISABLE TRIGGER USER; {}; "
    "ALTER TABLE entries ENABLE TRIGGER USER; ALTER TABLE accounts ENABLE TRIGGER USER"
)


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    async with closing(Database.connect(database_url)) as database:
        async with database.connection(OPERATOR) as connection:
            await load_seed(connection, await chain_of(connection, KEY), parse_seed(WORLD, "world.yaml"))
        yield database


async def findings(database: Database) -> set[str]:
    report = await audit(database, Vault((KEY,)), progress_to=io.StringIO())
    return {finding.check for finding in report.findings}


async def attack(url: str, role: Role, forgery: str) -> None:
    connection = await asyncpg.connect(url, server_settings=dict(SESSION_SETTINGS))
    scope = "SET LOCAL largesse.customers = '{1}'; SET LOCAL largesse.environments = '{production}'"
    try:
        await connection.execute(f"SET ROLE {role}")
        async with connection.transaction():
            await execute_each(connection, f"{scope}; {forgery}")
    finally:
        await connection.close()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("role", FOUND)
async def test_what_a_role_forges_is_refused_or_found_and_never_taken_over(
    database: Database, database_url: str, role: Role
) -> None:
    before = await database.fetch(OPERATOR, "SELECT * FROM accounts ORDER BY id")
    for name, forgery in FORGERIES.items():
        if name not in FOUND[role]:
            with pytest.raises(REFUSED):
                await attack(database_url, role, forgery)
    assert await database.fetch(OPERATOR, "SELECT * FROM accounts ORDER BY id") == before
    assert await findings(database) == set()
    for name in sorted(FOUND[role]):
        try:
            await attack(database_url, role, FORGERIES[name])
        except asyncpg.FeatureNotSupportedError:
            assert IS_DISTRIBUTED
            continue
        found = await findings(database)
        assert found & CHECKS
        await migrate.upgrade(database_url)
        assert await chain_up(database, KEY) is None
        assert await findings(database) == found


@pytest.mark.sampled(7)
@pytest.mark.parametrize("name", ["money", "reset", "money and reset", "environment", "currency", "kind", "entry"])
@pytest.mark.parametrize("is_early", [False, True], ids=["new", "upgraded"])
async def test_what_the_owner_forges_is_found_and_never_taken_over(
    database: Database, database_url: str, name: str, is_early: bool
) -> None:
    if is_early:
        await make_early(database, KEY)
        assert await chain_up(database, KEY) == 0
    await attack(database_url, Role.OWNER, "SET LOCAL largesse.customers = ''; " + OWNER.format(FORGERIES[name]))
    found = await findings(database)
    assert found & CHECKS
    await migrate.upgrade(database_url)
    assert await chain_up(database, KEY) is None
    assert await findings(database) == found


@pytest.mark.parametrize("name", ["money", "reset", "money and reset"])
async def test_what_was_forged_before_an_upgrade_is_not_taken_over(
    database: Database, database_url: str, name: str
) -> None:
    await make_early(database, KEY)
    await attack(database_url, Role.OWNER, OWNER.format(FORGERIES[name]))
    with pytest.raises(OperatorError, match="changed from outside"):
        await chain_up(database, KEY)
