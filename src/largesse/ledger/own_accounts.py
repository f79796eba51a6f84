"""The ledger accounts of a customer other than funding accounts: one for each environment, currency and kind.

They are created when they are first needed, and their ids never change. A look-up comes first, as an INSERT that finds an existing row still
uses up an id, and ids of accounts have 32 bits.
"""

import asyncio
import contextlib
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import msgspec

from largesse.base.batching import Batcher
from largesse.base.recently_used import RecentlyUsed
from largesse.db.fragments import Fragment, compose
from largesse.db.pipeline import Statement
from largesse.db.pool import DATABASE_AWAY, Connection, Database, is_distributed
from largesse.db.scope import for_customers
from largesse.db.statements import run_together

# All are created at once: workers refund, and may not create accounts.
OWN_KINDS = ("receivable", "sales", "deposits")

# Customer, environment and currency.
OwnKey: TypeAlias = tuple[int, str, str]

# Customers that order in a currency. One takes some 250 bytes.
_MAX_CACHED = 100_000
_MAX_WAITING = 10_000
_MAX_AT_ONCE = 500
_LOCK_CUSTOMERS = "SELECT id FROM customers WHERE id = ANY($1::int[]) ORDER BY id FOR NO KEY UPDATE"


class OwnAccounts(msgspec.Struct, frozen=True, gc=False):
    """The ids of the accounts that an order in a currency may change, other than funding accounts."""

    receivable: int
    sales: int


class OwnAccountCache:
    """Finds the accounts of customers that order, and creates those that are missing. Look-ups that wait share one statement."""

    def __init__(self, database: Database, *, max_cached: int = _MAX_CACHED) -> None:
        self._database = database
        self._cached: RecentlyUsed[OwnKey, OwnAccounts] = RecentlyUsed(max_entries=max_cached)
        self._lookups: Batcher[OwnKey, OwnAccounts] = Batcher(
            self._look_up, tasks=1, max_items=_MAX_AT_ONCE, max_waiting=_MAX_WAITING
        )

    async def find(self, key: OwnKey) -> OwnAccounts:
        """Returns the accounts of a customer, environment and currency. Raises Unavailable if too many wait."""
        return self._cached.get(key) or await self._lookups.submit(key)

    async def renew(self, key: OwnKey) -> OwnAccounts:
        """Finds accounts again, and creates those that were lost in a crash of the database. Raises as `find` does."""
        self._cached.drop(key)
        return await self.find(key)

    async def close(self) -> None:
        """Ends the look-ups."""
        await self._lookups.close()

    async def _look_up(self, keys: Sequence[OwnKey]) -> Sequence[OwnAccounts | Exception]:
        wanted = list(dict.fromkeys(keys))
        if self._database.is_distributed:  # a node may be down: then only its customers fail
            outcomes: dict[OwnKey, OwnAccounts | Exception] = {}
            for found in await asyncio.gather(*(self._ensure([key]) for key in wanted)):
                outcomes |= found
        else:
            outcomes = await self._ensure(wanted)
        return [outcomes[key] for key in keys]

    async def _ensure(self, keys: Sequence[OwnKey]) -> dict[OwnKey, OwnAccounts | Exception]:
        """Returns the accounts by their keys, or the same error for each."""
        scope = for_customers(key[:2] for key in keys)
        try:
            if self._database.is_distributed:
                found = await self._database.read(scope, _own_accounts, keys)
            else:
                async with self._database.session(scope) as connection:
                    found = await _own_accounts_at_once(connection, keys)
        except Exception as error:  # noqa: BLE001 - it is the outcome of these keys
            return dict.fromkeys(keys, error)
        outcomes: dict[OwnKey, OwnAccounts | Exception] = {}
        for key, own in found.items():
            outcomes[key] = accounts = OwnAccounts(own["receivable"], own["sales"])
            self._cached.put(key, accounts)
        return outcomes


async def own_accounts(connection: Connection, customer_id: int, environment: str, currency: str) -> dict[str, int]:
    """Returns the ids of a customer's receivable, sales and deposits accounts by kind, and creates those that are missing."""
    key = (customer_id, environment, currency)
    return (await _own_accounts(connection, [key]))[key]


async def set_has_budgets(connection: Connection, customer_id: int, sales_id: int, *, has_budgets: bool) -> None:
    """Sets whether budgets apply to orders that change a sales account. The account must be locked."""
    await connection.execute(_SET_HAS_BUDGETS, customer_id, sales_id, has_budgets)


async def find_own_accounts(
    connection: Connection, customer_id: int, environment: str, currency: str
) -> dict[str, int]:
    """Returns the ids of those accounts that exist."""
    key = (customer_id, environment, currency)
    return (await _find(connection, [key]))[key]


async def _own_accounts(connection: Connection, keys: Sequence[OwnKey]) -> dict[OwnKey, dict[str, int]]:
    found = await _find(connection, keys)
    if missing := _incomplete(found):
        async with connection.transaction():
            # One transaction at a time creates a customer's accounts, and the next one finds them.
            await connection.fetch(_LOCK_CUSTOMERS, sorted({customer_id for customer_id, _, _ in missing}))
            found |= await _find(connection, missing)
            for key in _incomplete(found):
                await connection.executemany(_INSERT, [(*key, kind) for kind in OWN_KINDS if kind not in found[key]])
            found |= await _find(connection, missing)
    return found


async def _own_accounts_at_once(connection: Connection, keys: Sequence[OwnKey]) -> dict[OwnKey, dict[str, int]]:
    """Returns what `_own_accounts` does, in one round trip. The connection is in no transaction."""
    wanted = (*_columns(keys), list(OWN_KINDS))
    found = await _transact(connection, keys, Statement(_LOCK_INCOMPLETE, wanted), Statement(_CREATE_AS_JSON, wanted))
    if missing := _incomplete(found):  # an earlier release created some meanwhile
        found |= await _transact(connection, missing, Statement(_FIND_AS_JSON, _columns(missing)))
    return found


# This commit does not wait for the disk. The commit of the first order that uses an account does, and writes everything before it.
# Plans are reused, as planning the first statement takes longer than running it.
# A plan made while the table was small would read the whole table for as long as the session lives.
_BEGIN = Statement(
    "BEGIN; SET LOCAL synchronous_commit = off; SET LOCAL plan_cache_mode = force_generic_plan; SET LOCAL enable_seqscan = off;"
)
_decode = msgspec.json.Decoder(list[tuple[int, str, str, str, int]]).decode


async def _transact(
    connection: Connection, keys: Sequence[OwnKey], *statements: Statement
) -> dict[OwnKey, dict[str, int]]:
    """Runs statements as one transaction. Returns the accounts of `keys` that the last one returns."""
    try:
        *_, rows, _ = await run_together(connection, _BEGIN, *statements, Statement("COMMIT"))
    except BaseException:
        if connection.is_in_transaction():  # the statements were sent one by one
            with contextlib.suppress(*DATABASE_AWAY):
                await connection.execute("ROLLBACK")
        raise
    found: dict[OwnKey, dict[str, int]] = {key: {} for key in keys}
    for customer_id, environment, currency, kind, account_id in _decode(rows or "[]"):
        found[customer_id, environment, currency][kind] = account_id
    return found


def _columns(keys: Iterable[OwnKey]) -> tuple[list[int], list[str], list[str]]:
    customer_ids, environments, currencies = zip(*keys, strict=True)
    return list(customer_ids), list(environments), list(currencies)


def _incomplete(found: dict[OwnKey, dict[str, int]]) -> list[OwnKey]:
    return [key for key, own in found.items() if len(own) < len(OWN_KINDS)]


async def _find(connection: Connection, keys: Iterable[OwnKey]) -> dict[OwnKey, dict[str, int]]:
    found: dict[OwnKey, dict[str, int]] = {key: {} for key in keys}
    if is_distributed(connection):
        for key, own in found.items():
            own |= {row["kind"]: row["id"] for row in await connection.fetch(_FIND_ONE, *key)}
        return found
    for row in await connection.fetch(_FIND, *_columns(found)):
        found[row["customer_id"], row["environment"], row["currency"]][row["kind"]] = row["id"]
    return found


_FIND_ONE = """
    SELECT kind, id FROM accounts
    WHERE customer_id = $1 AND environment = $2 AND currency = $3 AND kind <> 'funding'
"""
# A subquery for each, not a join, so that the planner always uses the index, whatever size of the table it expects.
_FIND = Fragment("""
    SELECT wanted.*, own.kind, own.id FROM unnest($1::int[], $2::text[], $3::text[]) AS wanted (customer_id, environment, currency)
    CROSS JOIN LATERAL (
        SELECT kind, id FROM accounts
        WHERE customer_id = wanted.customer_id AND environment = wanted.environment AND currency = wanted.currency
          AND kind <> 'funding' OFFSET 0) AS own
""")
_AS_JSON = Fragment("json_agg(json_build_array(customer_id, environment, currency, kind, id))")
_FIND_AS_JSON = compose("SELECT {as_json} FROM ({find}) AS own", as_json=_AS_JSON, find=_FIND)
# Customers that have their accounts are not locked: their look-up waits for nobody and writes nothing.
_LOCK_INCOMPLETE = """
    SELECT id FROM customers WHERE id = ANY(ARRAY(
        SELECT customer_id FROM unnest($1::int[], $2::text[], $3::text[]) AS wanted (customer_id, environment, currency)
        WHERE (SELECT count(*) FROM accounts
               WHERE customer_id = wanted.customer_id AND environment = wanted.environment AND currency = wanted.currency
                 AND kind <> 'funding') < cardinality($4::text[])))
    ORDER BY id FOR NO KEY UPDATE
"""
# The customers are locked by a statement before, so that this one sees what others have created.
_CREATE_AS_JSON = compose(
    """
    WITH found AS MATERIALIZED ({find}), created AS (
        INSERT INTO accounts (customer_id, environment, currency, kind)
        SELECT wanted.*, kind FROM unnest($1::int[], $2::text[], $3::text[]) AS wanted (customer_id, environment, currency)
        CROSS JOIN unnest($4::text[]) AS kind
        WHERE (wanted.customer_id, wanted.environment, wanted.currency, kind)
            NOT IN (SELECT customer_id, environment, currency, kind FROM found)
        ON CONFLICT (customer_id, environment, currency, kind) WHERE kind <> 'funding' DO NOTHING
        RETURNING customer_id, environment, currency, kind, id)
    SELECT {as_json} FROM (SELECT * FROM found UNION ALL SELECT * FROM created) AS own
""",
    as_json=_AS_JSON,
    find=_FIND,
)
_SET_HAS_BUDGETS = "UPDATE accounts SET has_budgets = $3 WHERE customer_id = $1 AND id = $2"
# Processes of an earlier release do not take the lock.
_INSERT = """
    INSERT INTO accounts (customer_id, environment, currency, kind) VALUES ($1, $2, $3, $4)
    ON CONFLICT (customer_id, environment, currency, kind) WHERE kind <> 'funding' DO NOTHING
"""
