"""Reads the context in which a batch of orders is decided, under the locks of its accounts."""

from collections.abc import Iterable, Sequence
from datetime import datetime

import asyncpg
import msgspec

from largesse.base.recently_used import RecentlyUsed
from largesse.budgets.store import limiting, read_limiting
from largesse.catalogue.cache import read_changed_products
from largesse.customers.access import KeyStatus, PersonStatus
from largesse.db.pipeline import Statement
from largesse.db.pool import Connection, coordinator_of, is_distributed
from largesse.db.statements import OF_BATCH, OF_BATCH_DISTRIBUTED, run_together
from largesse.orders import reading_store
from largesse.orders.approving import NO_APPROVALS, read_approvals, read_people
from largesse.orders.order import Order, ReferenceKey, SpendingKey
from largesse.orders.rules import BatchContext, LedgerAccount, LockedAccount, budgeted, limited_daily, spender_of

# The longest that a batch waits for a lock. A placer holds one for some ten milliseconds: after a longer wait, orders go to the lock queue.
WAIT_MS = 200
# The statements of a batch are planned once for each connection, as the plan is the same for any number of orders.
# With distributed customers, the plan depends on the customer, which decides the node.
BEGIN = f"BEGIN; {OF_BATCH} SET LOCAL lock_timeout = {WAIT_MS};"
_BEGIN_DISTRIBUTED = f"BEGIN; {OF_BATCH_DISTRIBUTED} SET LOCAL lock_timeout = {WAIT_MS};"
# The transaction on the coordinator that locks a batch's keys and marks its ids. It is idle while a node writes.
_BEGIN_BESIDE = "BEGIN; SET LOCAL idle_in_transaction_session_timeout = '10s';"


# When this process last read accounts with budgets. Their budgets are read in the same round trip the next time.
BudgetedAccounts = RecentlyUsed[int, datetime]


async def begin(
    connection: Connection, batch: Sequence[Order], *, lock: bool = True, known: BudgetedAccounts | None = None
) -> BatchContext:
    """Begins the transaction of a batch and reads its context as `read_context` does, in one round trip if customers are not distributed.

    `known` has the accounts that most likely have budgets, and is updated.
    """
    if is_distributed(connection):
        await _begin_on_node(connection)
        return await read_context(connection, batch, lock=lock)
    statements = [Statement(BEGIN), _reading(batch, lock=lock)]
    if known and (likely := _likely_limiting(batch, known)):
        statements.append(likely)
    _, context, *found = await run_together(connection, *statements)
    read = (statements[-1], found[0]) if found else None
    complete = await _complete(connection, batch, _decode(context or ""), read)
    if known is not None:
        for account in complete.accounts.values():
            if account.has_budgets:
                known.put(account.id, complete.now)
            elif read is not None:
                known.drop(account.id)
    return complete


def _likely_limiting(batch: Sequence[Order], known: BudgetedAccounts) -> Statement | None:
    """Returns the statement that most likely reads the budgets of the batch: for accounts in `known`, in the period of their last read."""
    read_at = {order.reference: at for order in batch for one in order.account_ids if (at := known.get(one))}
    likely = {spender_of(order, {}) for order in batch if order.reference in read_at}
    return limiting(likely, max(read_at.values())) if likely else None


async def begin_with_accounts(connection: Connection, batch: Sequence[Order]) -> None:
    """Begins the transaction of a batch, and locks its accounts as `wait_for_accounts` does."""
    if is_distributed(connection):
        await _begin_on_node(connection)
        await wait_for_accounts(connection, batch)
        return
    try:
        await run_together(connection, Statement(BEGIN), Statement(reading_store.WAITING, _account_columns(batch)))
    except asyncpg.LockNotAvailableError as error:
        raise LockedAccount from error


async def _begin_on_node(connection: Connection) -> None:
    """Begins a transaction on a node, and another one on the coordinator."""
    await connection.execute(_BEGIN_DISTRIBUTED)
    if (coordinator := coordinator_of(connection)) is not connection:
        await coordinator.execute(_BEGIN_BESIDE)


def require_begun(connection: Connection) -> None:
    """Raises one of DATABASE_AWAY if the coordinator's session, whose locks a node's transaction relies on, is closed."""
    if coordinator_of(connection).is_closed():
        raise asyncpg.ConnectionDoesNotExistError("the coordinator is away")


async def read_context(connection: Connection, batch: Sequence[Order], *, lock: bool = True) -> BatchContext:
    """Reads the context of a batch, and locks its accounts, except those that another transaction has locked.

    Does not wait, so it sees everything as of its locks. If others commit something in between, such as a reference, writing the orders fails.
    Does not lock accounts of customers without an order in the batch. Without `lock`, returns the context as if all accounts could be locked.
    """
    if is_distributed(connection):
        return await _complete(connection, batch, await _read_on_node(connection, batch, lock))
    (context,) = await run_together(connection, _reading(batch, lock=lock))
    return await _complete(connection, batch, _decode(context or ""))


def _reading(batch: Sequence[Order], *, lock: bool) -> Statement:
    """Returns the statement that reads the context of a batch."""
    return Statement(
        reading_store.CONTEXTS[lock],
        (len(batch), _key_ids(batch), *_account_columns(batch), *_columns(_reference_keys(batch))),
    )


def _key_ids(batch: Sequence[Order]) -> list[int]:
    return list({order.principal.key_id for order in batch if order.principal.key_id is not None})


def _reference_keys(batch: Sequence[Order]) -> list[ReferenceKey]:
    return [key for order in batch if (key := order.reference_key) is not None]


class _Read(msgspec.Struct, array_like=True):
    """The part of a BatchContext that one statement reads, in the order of its columns."""

    now: datetime
    ids_left: int
    catalogue_version: int
    transfer_ids: list[int]
    key_statuses: list[tuple[int, KeyStatus]]
    transaction_id: str
    locked: list[LedgerAccount]
    held: list[LedgerAccount]
    holders: list[str | None]


_decode = msgspec.json.Decoder(_Read).decode


async def _complete(
    connection: Connection,
    batch: Sequence[Order],
    read: _Read,
    budgets_read: tuple[Statement, str | None] | None = None,
) -> BatchContext:
    """Returns the context of a batch. Reads the parts that few batches need, such as people, by separate queries. `budgets_read` were read before."""
    key_statuses = dict(read.key_statuses)
    people: dict[int, PersonStatus] = {}
    approvals = NO_APPROVALS
    if any(order.principal.user_id is not None for order in batch):
        people = await read_people(connection, batch)
        approvals = await read_approvals(connection, batch)
    accounts = {account.id: account for account in (*read.locked, *read.held)}
    changed_products: frozenset[int] | None = frozenset()
    known = min((order.remembered[1] for order in batch if order.remembered is not None), default=0)
    if 0 < known < read.catalogue_version:
        changed_products = await read_changed_products(coordinator_of(connection), known, read.catalogue_version)
    budgets = await read_limiting(connection, budgeted(batch, accounts, people), read.now, budgets_read)
    return BatchContext(
        now=read.now,
        transaction_id=read.transaction_id,
        locked=frozenset(account.id for account in read.locked),
        ids_left=read.ids_left,
        catalogue_version=read.catalogue_version,
        changed_products=changed_products,
        transfer_ids=iter(read.transfer_ids),
        key_statuses=key_statuses,
        people=people,
        references=_taken(_reference_keys(batch), read.holders),
        accounts=accounts,
        spending=await read_spending(connection, limited_daily(batch, key_statuses), read.now),
        approvals=approvals,
        budgets=budgets,
        budget_spent={budget.key(read.now): budget.spent_minor for budget in budgets},
    )


async def wait_for_accounts(connection: Connection, batch: Sequence[Order]) -> None:
    """Locks the accounts of the batch until its transaction ends, and waits for those that others have locked.

    Locks in the order of ids, so that no two transactions wait for each other. Raises LockedAccount after WAIT_MS. Read the context
    afterwards: a statement that waits sees other tables as they were before its wait.
    """
    try:
        if is_distributed(connection):
            await connection.execute(reading_store.WAITING_ON_NODE, *_account_columns(batch), *_pin(connection, batch))
        else:
            await run_together(connection, Statement(reading_store.WAITING, _account_columns(batch)))
    except asyncpg.LockNotAvailableError as error:
        raise LockedAccount from error


async def find_free(connection: Connection, orders: Sequence[Order]) -> set[int]:
    """Returns the ids of the accounts of these orders that are not locked now."""
    free: set[int] = set()
    for at_once in _at_once(connection, orders):
        rows = await connection.fetch(
            reading_store.FREE[is_distributed(connection)], *_account_columns(at_once), *_pin(connection, at_once)
        )
        free.update(row["id"] for row in rows)
    return free


def _at_once(connection: Connection, orders: Sequence[Order]) -> list[Sequence[Order]]:
    """Splits the orders into groups that one statement can read: all of them, or, with distributed customers, those of each customer."""
    if not is_distributed(connection):
        return [orders]
    by_customer: dict[int, list[Order]] = {}
    for order in orders:
        by_customer.setdefault(order.principal.customer_id, []).append(order)
    return list(by_customer.values())


def _pin(connection: Connection, batch: Sequence[Order]) -> tuple[int, ...]:
    """Returns the additional argument of a statement for one node: the customer of the batch. Returns none without nodes."""
    if not is_distributed(connection):
        return ()
    (customer_id,) = {order.principal.customer_id for order in batch}
    return (customer_id,)


async def read_account(connection: Connection, customer_id: int, account_id: int) -> LedgerAccount | None:
    """Returns a customer's account as it is now; None for another customer's. Locks nothing."""
    row = await connection.fetchrow(reading_store.READ_ACCOUNT, customer_id, account_id)
    return LedgerAccount(*row) if row else None


def _account_columns(orders: Iterable[Order]) -> tuple[list[int], list[int]]:
    """Returns the accounts that orders change as two arrays: customers, and ids in ascending order."""
    wanted = sorted({(account_id, order.principal.customer_id) for order in orders for account_id in order.account_ids})
    return [customer_id for _, customer_id in wanted], [account_id for account_id, _ in wanted]


async def read_references(connection: Connection, references: Sequence[ReferenceKey]) -> dict[ReferenceKey, str]:
    """Returns the callers' references that are used, each with the reference of the order that has it."""
    pin = ({customer_id for customer_id, _, _ in references} or {0}) if is_distributed(connection) else ()
    sql = reading_store.HOLDERS[is_distributed(connection)]
    return _taken(references, await connection.fetchval(sql, *_columns(references), *pin))


def _columns(references: Sequence[ReferenceKey]) -> tuple[list[int], list[str], list[str]]:
    return [r[0] for r in references], [r[1] for r in references], [r[2] for r in references]


def _taken(references: Sequence[ReferenceKey], holders: Sequence[str | None]) -> dict[ReferenceKey, str]:
    return {reference: holder for reference, holder in zip(references, holders, strict=True) if holder}


async def _read_on_node(connection: Connection, batch: Sequence[Order], lock: bool) -> _Read:
    """Reads the same as `_context`, for one customer, by separate statements on the node and on the coordinator."""
    pin = _pin(connection, batch)
    beside = await coordinator_of(connection).fetchval(reading_store.READ_BESIDE, len(batch), _key_ids(batch))
    accounts = await connection.fetch(reading_store.ACCOUNTS_ON_NODE[lock], *_account_columns(batch), *pin)
    references = _reference_keys(batch)
    now, ids_left, catalogue_version, transfer_ids, key_statuses = _decode_beside(beside)
    return _Read(
        now,
        ids_left,
        catalogue_version,
        transfer_ids,
        key_statuses,
        await connection.fetchval(reading_store.TRANSACTION_ID),
        [LedgerAccount(*account) for is_locked, *account in accounts if is_locked],
        [LedgerAccount(*account) for is_locked, *account in accounts if not is_locked],
        await connection.fetchval(reading_store.HOLDERS[True], *_columns(references), *pin) if references else [],
    )


_decode_beside = msgspec.json.Decoder(tuple[datetime, int, int, list[int], list[tuple[int, KeyStatus]]]).decode


async def read_spending(connection: Connection, keys: Sequence[SpendingKey], at: datetime) -> dict[SpendingKey, int]:
    """Returns the daily sums of the day of `at`, in minor units. Call it after the accounts are locked.

    A statement that began before the locks would not see what their last holder committed.
    """
    if not keys:
        return {}
    pin = [keys[0][0]] if is_distributed(connection) else []  # on a cluster, a batch has one customer
    rows = await connection.fetch(reading_store.SPENT[bool(pin)], *map(list, zip(*keys, strict=True)), at.date(), *pin)
    return {tuple(row)[:4]: row["spent_minor"] for row in rows}


async def read_spent_today(
    connection: Connection, customer_id: int, service_account_id: int, environment: str
) -> dict[str, int]:
    """Returns what a service account has ordered today, in minor units by currency, if it has or had a daily limit."""
    rows = await connection.fetch(reading_store.SPENT_TODAY, customer_id, service_account_id, environment)
    return {row["currency"]: row["spent_minor"] for row in rows}
