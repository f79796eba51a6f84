"""Chains for tests that write entries themselves."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

import asyncpg
from tests.distributed import execute_each

from largesse.audit.service import Acting, by_command
from largesse.customers.actor import Actor
from largesse.customers.sessions import Person
from largesse.db.pool import Database
from largesse.db.scope import OPERATOR, for_customer
from largesse.encryption.chain import START, Chain
from largesse.encryption.chain_keys import Chains, bring_up_to_date, open_chains
from largesse.encryption.vault import Vault
from largesse.ledger.chains import CONTENT_COLUMNS, entry_content, mark_ledger
from largesse.seed.load import load_seed
from largesse.seed.reading import parse_seed

AnyDatabase = TypeVar("AnyDatabase", bound=Database)

# As a release left a database that knew no chains.
UNCHAINED = """
    UPDATE entries SET mac = NULL; UPDATE accounts SET chain_head = DEFAULT, mac = NULL;
    DELETE FROM audit_events; DELETE FROM audit_heads; DELETE FROM chain_openings; DELETE FROM chain_keys
"""
_EARLY_KEY = b"e" * 32
_ENTRIES = f"""
    SELECT e.id, {CONTENT_COLUMNS} FROM entries e LEFT JOIN orders o ON o.customer_id = e.customer_id AND o.id = e.order_id
    ORDER BY e.customer_id, e.account_id, e.id
"""

# Under a key of nobody's: for tests that do not ask `verify`.
CHAIN = Chain("entries", {1: bytes(32)})


async def chain_of(connection: asyncpg.Connection, master_key: bytes) -> Chain:
    """The chain of the ledger of an installation with that master key."""
    return (await open_chains(connection, Vault((master_key,)), keep=True)).entries


@asynccontextmanager
async def loaded(
    url: str, world: bytes, master_key: bytes | None = None, *, kind: type[AnyDatabase] = Database
) -> AsyncIterator[AnyDatabase]:
    """Opens a database and loads a world, whose ledger is chained as of an installation with that master key, else by CHAIN."""
    database = await kind.connect(url)
    try:
        async with database.connection(OPERATOR) as connection:
            chain = CHAIN if master_key is None else await chain_of(connection, master_key)
            await load_seed(connection, chain, parse_seed(world, "world.yaml"))
        yield database
    finally:
        await database.close()


async def forge(database: Database, forgery: str) -> None:
    """What whoever owns the tables can do: statements that no trigger refuses."""
    async with database.transaction(OPERATOR) as connection:
        await connection.execute("SET LOCAL session_replication_role = replica")
        await execute_each(connection, forgery)


async def chain_up(database: Database, master_key: bytes) -> int | None:
    """Does what `migrate` does about chains; returns how many entries had no mark, None where nothing was to be done."""
    async with database.transaction(OPERATOR) as connection:
        chains = await bring_up_to_date(connection, Vault((master_key,)))
        return None if chains is None else await mark_ledger(connection, chains.entries)


async def make_early(database: Database, master_key: bytes) -> None:
    """Leaves the database as the release did whose marks did not cover what an account is."""
    vault, chain = Vault((master_key,)), Chain("entries", {1: _EARLY_KEY})
    await forge(database, UNCHAINED)
    async with database.transaction(OPERATOR) as connection:
        await connection.execute("SET LOCAL session_replication_role = replica")
        heads: dict[tuple[int, int], bytes] = {}
        for entry_id, *columns in await connection.fetch(_ENTRIES):
            account = columns[0], columns[1]
            mac, heads[account] = chain.add(heads.get(account, START), entry_content(*columns))
            await connection.execute(
                "UPDATE entries SET mac = $3 WHERE customer_id = $1 AND id = $2", columns[0], entry_id, mac
            )
        for account, head in heads.items():
            await connection.execute(
                "UPDATE accounts SET chain_head = $3 WHERE customer_id = $1 AND id = $2", *account, head
            )
        sealed = vault.chains.seal(_EARLY_KEY, b"chain-key/\x01")
        await connection.execute("INSERT INTO chain_keys (number, sealed, made_at) VALUES (1, $1, now())", sealed)


async def acting_on(database: Database, vault: Vault) -> Acting:
    """An operator, for what a command keeps in the audit log."""
    async with database.connection(OPERATOR) as connection:
        return Acting(by_command("a test"), await open_chains(connection, vault, keep=True))


async def actor_on(
    database: Database, vault: Vault, customer_id: int = 0, environment: str | None = None, user_id: int | None = None
) -> Actor:
    """Returns an operator's command as an actor, or with an environment an actor that sees only that of the customer: an administrator, if one is given."""
    acting = await acting_on(database, vault)
    scope = OPERATOR if environment is None else for_customer(customer_id, environment)
    person = None
    if user_id is not None:
        of_customer = customer_id, "Acme", "pro", "balance", environment or ""
        person = Person(1, 1, user_id, "ada@acme.example", "Ada", "admin", *of_customer, is_proved=True)
    return Actor(acting, lambda _: database.transaction(scope), customer_id, environment, person)


def actor_over(connection: asyncpg.Connection, customer_id: int, environment: str = "production") -> Actor:
    """Returns an actor of a customer, whose transactions are those of this connection."""

    @asynccontextmanager
    async def begin(_: bool) -> AsyncIterator[asyncpg.Connection]:
        async with connection.transaction():
            yield connection

    return Actor(Acting(by_command("test"), Chains.of({1: bytes(32)})), begin, customer_id, environment)
