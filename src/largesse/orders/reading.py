"""Reading what a batch of orders is decided on, under the locks of its accounts.

Two statements are put together from parts, all of them constants: what both must read alike, an account or the holders of references,
is written once, and neither asks the database a second time for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import asyncpg

from largesse.database import Connection
from largesse.identity import Standing, people_standing, standings
from largesse.orders.ids import LAST_ID
from largesse.orders.order import Order, ReferenceKey
from largesse.orders.rules import BatchContext, Held, LedgerAccount
from largesse.orders.spending import limited_daily, read_spending

# The longest that a batch waits for anything that another transaction holds. Placers that share an account have it some
# ten milliseconds each; who waits longer waits for something else, and had better make room (largesse.orders.aside).
WAIT_MS = 200
# What is looked up for a batch is planned once a connection: its plan does not depend on how much is looked up.
BEGIN = f"BEGIN; SET LOCAL plan_cache_mode = force_generic_plan; SET LOCAL lock_timeout = {WAIT_MS};"


async def read_context(connection: Connection, batch: Sequence[Order], *, lock: bool = True) -> BatchContext:
    """Reads what the orders of a batch are decided on, and locks those of their accounts that nobody else has locked.

    Nothing is waited for, so that this sees everything as it is when it locks. What another transaction commits in
    between, a reference, say, writing the orders finds. Accounts of customers who have no order in the batch are not locked.
    Without `lock` it is told what would be decided if all accounts could be locked and nothing changed until then.
    """
    references = [order.reference_key for order in batch if order.reference_key is not None]
    row = await connection.fetchrow(
        _CONTEXT if lock else _LIKELY_CONTEXT,
        len(batch),
        list({order.principal.key_id for order in batch if order.principal.key_id is not None}),
        list({account_id for order in batch for account_id in order.account_ids}),
        list({order.principal.customer_id for order in batch}),
        *_columns(references),
    )
    assert row is not None
    standings = {key_id: Standing(*rest) for key_id, *rest in row["standings"]}
    people = {order.principal.user_id for order in batch if order.principal.user_id is not None}
    return BatchContext(
        now=row["now"],
        transaction_id=row["transaction_id"],
        locked=frozenset(account[0] for account in row["locked"]),
        ids_left=row["ids_left"],
        transfer_ids=iter(row["transfer_ids"]),
        standings=standings,
        # Asked for apart, by the few batches that have orders of people.
        people=await people_standing(connection, people) if people else {},
        references=_taken(references, row["holders"]),
        accounts={account[0]: LedgerAccount(*account) for account in (*row["locked"], *row["held"])},
        spending=await read_spending(connection, limited_daily(batch, standings), row["now"]),
    )


async def wait_for_accounts(connection: Connection, batch: Sequence[Order]) -> None:
    """Locks the accounts that the batch may touch until its transaction ends, and waits for those that others have locked.

    In the order of their ids, so that no two who wait ever wait for each other. Raises Held where it takes too long. What is
    decided on is read afterwards: a statement that waited still sees other tables as they were before.
    """
    try:
        await connection.execute(
            """
            SELECT FROM accounts WHERE id = ANY($1::int[]) AND customer_id = ANY($2::int[])
            ORDER BY id FOR NO KEY UPDATE
            """,
            list({account_id for order in batch for account_id in order.account_ids}),
            list({order.principal.customer_id for order in batch}),
        )
    except asyncpg.LockNotAvailableError as error:
        raise Held from error


async def find_free(connection: Connection, account_ids: Iterable[int]) -> set[int]:
    """Which of these accounts nobody has locked just now."""
    rows = await connection.fetch(
        "SELECT id FROM accounts WHERE id = ANY($1::int[]) FOR NO KEY UPDATE SKIP LOCKED", list(account_ids)
    )
    return {row["id"] for row in rows}


async def read_account(connection: Connection, account_id: int) -> LedgerAccount | None:
    """The account of an id as it is now, whoever's it is; nothing is locked."""
    query = f"SELECT {_ACCOUNT} FROM accounts AS a WHERE id = $1"  # noqa: S608 - a constant
    row = await connection.fetchrow(query, account_id)
    return LedgerAccount(*row) if row else None


async def read_references(
    connection: Connection, references: Sequence[ReferenceKey]
) -> dict[ReferenceKey, str]:
    """Which of the callers' references are taken, and the reference of the order that holds each."""
    holders = await connection.fetchval(f"SELECT {_holders('$1', '$2', '$3')}", *_columns(references))
    return _taken(references, holders)


def _holders(customers: str, environments: str, references: str) -> str:
    """SQL for the orders that hold references, in their order, null for a free one.

    A subquery for each, not a join: the planner must walk the index whatever it thinks of the table's size.
    """
    return f"""
        ARRAY(
            SELECT (SELECT o.reference FROM orders o
                    WHERE o.customer_id = r.customer_id AND o.environment = r.environment
                      AND o.external_reference = r.external_reference)
            FROM unnest({customers}::int[], {environments}::text[], {references}::text[]) WITH ORDINALITY
                AS r (customer_id, environment, external_reference, at)
            ORDER BY at)
    """  # noqa: S608 - placeholders


def _columns(references: Sequence[ReferenceKey]) -> tuple[list[int], list[str], list[str]]:
    return [r[0] for r in references], [r[1] for r in references], [r[2] for r in references]


def _taken(references: Sequence[ReferenceKey], holders: Sequence[str | None]) -> dict[ReferenceKey, str]:
    return {reference: holder for reference, holder in zip(references, holders, strict=True) if holder}


_ACCOUNT = """
    id, customer_id, environment, kind, currency, balance_minor, open_to_all,
    ARRAY(SELECT service_account_id FROM account_service_accounts WHERE account_id = a.id)
"""


def _context(lock: str) -> str:
    """SQL for a BatchContext: of how many orders, keys, accounts, customers, and references in three columns.

    An account that has been locked is read as it is then; the others, which are told beside them, as of the statement's
    beginning.
    """
    return f"""
        WITH locked AS MATERIALIZED (
            SELECT id, customer_id, environment, kind, currency, balance_minor, open_to_all FROM accounts
            WHERE id = ANY($3::int[]) AND customer_id = ANY($4::int[]) {lock})
        SELECT now() + ahead_by AS now, pg_current_xact_id()::text AS transaction_id,
               {LAST_ID} - (SELECT last_value FROM orders_id_seq) AS ids_left,
               ARRAY(SELECT nextval('movements_id_seq') FROM generate_series(1, $1)) AS transfer_ids,
               ARRAY(SELECT ROW(id, plan, active, limits) FROM ({standings("$2::int[]")}) AS keys) AS standings,
               ARRAY(SELECT ROW({_ACCOUNT}) FROM locked AS a) AS locked,
               ARRAY(SELECT ROW({_ACCOUNT}) FROM accounts AS a
                     WHERE id = ANY($3::int[]) AND id NOT IN (SELECT id FROM locked)) AS held,
               {_holders("$5", "$6", "$7")} AS holders
        FROM clock
    """  # noqa: S608 - put together from constants


_CONTEXT = _context("FOR NO KEY UPDATE SKIP LOCKED")
_LIKELY_CONTEXT = _context("")
