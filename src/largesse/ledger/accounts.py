"""Operations on a customer's funding accounts: create, rename, close, open, assign and watch them, and move money between two of them.

Nothing is drawn from a closed account or paid into it. A refund of an order that it paid for still goes there; it can be moved to another
account, or the account can be opened again.
"""

from collections.abc import Collection, Sequence
from enum import Enum, auto
from types import EllipsisType

import msgspec

from largesse.base.errors import InsufficientBalance, InvalidRequest, NotFound, existing
from largesse.base.money import label
from largesse.base.text import free_key
from largesse.customers.actor import Actor, ReadAgain, Transaction
from largesse.customers.customer_store import lock_customer
from largesse.customers.customers import create_customer
from largesse.customers.members import Invitation, invite
from largesse.customers.principal import ADMIN
from largesse.customers.roles import Right
from largesse.customers.staff_roles import StaffRight
from largesse.db.pool import Connection, Row
from largesse.db.statements import read_now
from largesse.ledger import store
from largesse.ledger.low_balance_store import Watch, find_watch, list_watchers, save_watch
from largesse.ledger.posting import NEXT_TRANSFER_ID, Entry, lock_accounts, post

MOST_ACCOUNTS = 200  # funding accounts of a customer, including closed ones
LONGEST_NAME = 100
MOST_WATCHERS = 20  # people of an account
_LOCK_CUSTOMER = "SELECT funding FROM customers WHERE id = $1 FOR NO KEY UPDATE"
_IS_CURRENCY = "SELECT EXISTS (SELECT FROM currencies WHERE code = $1)"
_KEYS = "SELECT key FROM accounts WHERE customer_id = $1 AND kind = 'funding'"
_BALANCE = (
    "SELECT balance_minor FROM accounts WHERE customer_id = $1 AND environment = $2 AND id = $3 AND kind = 'funding'"
)


class Why(Enum):
    """Why an account cannot be created, renamed, closed or opened."""

    TOO_MANY = auto()
    NAME_TAKEN = auto()
    NO_CURRENCY = auto()
    INVOICED = auto()
    MASTER = auto()
    HOLDS = auto()
    AWAITS = auto()


class AccountRefused(InvalidRequest):
    """The operation breaks a rule of funding accounts; `why` says which."""

    def __init__(self, why: Why, detail: str) -> None:
        super().__init__(detail)
        self.why = why


async def create_account(actor: Actor, *, currency: str, name: str) -> tuple[int, str]:
    """Creates an account that is assigned to nobody. Returns its id and its key, which is made from its name.

    Raises AccountRefused if an open account of the environment has the name, the currency is unknown, or the customer is invoiced or has
    MOST_ACCOUNTS.
    """
    customer_id, environment = actor.place
    async with actor.transaction(Right.SETTINGS, StaffRight.CUSTOMERS) as transaction:
        connection = transaction.connection
        # Locked, so that two at once neither exceed the limit nor take the same key.
        funding = await connection.fetchval(_LOCK_CUSTOMER, customer_id)
        if funding != "balance":
            raise AccountRefused(Why.INVOICED, "The customer is invoiced, so it has no funding accounts.")
        if not await connection.fetchval(_IS_CURRENCY, currency):
            raise AccountRefused(Why.NO_CURRENCY, f"There is no currency {currency!r}.")
        keys = await connection.fetch(_KEYS, customer_id)
        if len(keys) >= MOST_ACCOUNTS:
            raise AccountRefused(Why.TOO_MANY, f"A customer has at most {MOST_ACCOUNTS} funding accounts.")
        await _require_free_name(transaction, name)
        key = free_key(name, {row["key"] for row in keys}, "account")
        account_id: int = await connection.fetchval(store.INSERT_ACCOUNT, customer_id, environment, key, name, currency)
        after = {"name": name, "key": key, "currency": currency}
        await transaction.record("account.created", f"account {account_id}", after=after)
    return account_id, key


async def rename_account(actor: Actor, account_id: int, name: str) -> None:
    """Renames an account; its key stays. Raises NotFound, and AccountRefused for a name that is taken."""
    async with actor.transaction(Right.SETTINGS, StaffRight.CUSTOMERS) as transaction:
        before = (await _lock(transaction, account_id))["name"]
        if before == name:
            return
        await _require_free_name(transaction, name, account_id)
        await transaction.connection.execute(store.RENAME_ACCOUNT, actor.customer_id, account_id, name)
        await transaction.record(
            "account.renamed", f"account {account_id}", before={"name": before}, after={"name": name}
        )


async def close_account(actor: Actor, account_id: int) -> None:
    """Closes an empty account. Does nothing if it is closed.

    Raises NotFound, and AccountRefused for the master account, one that holds money, and one with a waiting top-up.
    """
    async with actor.transaction(Right.SETTINGS, StaffRight.CUSTOMERS) as transaction:
        account = await _lock(transaction, account_id)
        if account["closed_at"] is not None:
            return
        if account["is_master"]:
            raise AccountRefused(Why.MASTER, "A master account cannot be closed.")
        if account["balance_minor"]:
            balance = label(account["balance_minor"], account["currency"])
            raise AccountRefused(Why.HOLDS, f"The account holds {balance}: move it to another one first.")
        if await transaction.connection.fetchval(store.TOP_UP_WAITS, *actor.place, account_id):
            raise AccountRefused(Why.AWAITS, "A top-up of the account waits for its transfer: cancel it first.")
        await transaction.connection.execute(store.CLOSE_ACCOUNT, actor.customer_id, account_id)
        await transaction.record("account.closed", f"account {account_id}", after={"name": account["name"]})


async def open_account(actor: Actor, account_id: int) -> None:
    """Opens a closed account. Does nothing if it is open. Raises NotFound, and AccountRefused for a name that is taken."""
    async with actor.transaction(Right.SETTINGS, StaffRight.CUSTOMERS) as transaction:
        account = await _lock(transaction, account_id)
        if account["closed_at"] is None:
            return
        await _require_free_name(transaction, account["name"], account_id)
        await transaction.connection.execute(store.OPEN_ACCOUNT, actor.customer_id, account_id)
        await transaction.record("account.opened", f"account {account_id}", after={"name": account["name"]})


async def assign_accounts(actor: Actor, holder: store.Holder, holder_id: int, account_ids: Collection[int]) -> None:
    """Sets the accounts of the environment that a holder may use, in addition to those open to all. It applies from the next request on.

    Raises NotFound for an account, or a holder, that is not the customer's.
    """
    async with actor.transaction(Right.SETTINGS, StaffRight.CUSTOMERS, changes_access=True) as transaction:
        subject, accounts = await _lock_holder(transaction, holder, holder_id)
        if not set(account_ids) <= {account.id for account in accounts}:
            raise NotFound("There is no such funding account.")
        await _assign(transaction, holder, holder_id, subject, accounts, account_ids)


async def assign_account(actor: Actor, holder: store.Holder, holder_id: int, account_id: int, *, may_use: bool) -> None:
    """Assigns an account to a holder, or ends the assignment. Raises InvalidRequest for an account that is closed or open to all, and NotFound."""
    async with actor.transaction(Right.SETTINGS, StaffRight.CUSTOMERS, changes_access=True) as transaction:
        subject, accounts = await _lock_holder(transaction, holder, holder_id)
        account = next((one for one in accounts if one.id == account_id), None)
        if account is None:
            raise InvalidRequest("The account is closed.")
        if account.open_to_all:
            raise InvalidRequest(f"{account.name} is open to everybody.")
        assigned = {one.id for one in accounts if one.is_assigned}
        account_ids = assigned | {account_id} if may_use else assigned - {account_id}
        await _assign(transaction, holder, holder_id, subject, accounts, account_ids)


async def watch_balance(
    actor: Actor, account_id: int, watch: Watch | None, seen: Watch | EllipsisType | None = ...
) -> None:
    """Sets who is notified when the balance falls below an amount; None notifies nobody.

    Does not notify anybody at once if the balance is low already. Raises NotFound for an account that is not the customer's in this
    environment, and InvalidRequest for an amount that is not positive, no people, more than MOST_WATCHERS, or a person who may not be notified.
    With `seen`, also raises ReadAgain if the account is not watched so any more.
    """
    async with actor.transaction(Right.TRANSFER) as transaction:
        connection = transaction.connection
        await lock_customer(connection, actor.customer_id)  # so that the people of two changes at once do not mix
        balance_minor = existing(
            await connection.fetchval(_BALANCE, *actor.place, account_id), "There is no such funding account."
        )
        if watch is not None:
            await _require_watch(transaction, watch)
        before = await find_watch(connection, actor.customer_id, account_id)
        if not isinstance(seen, EllipsisType) and seen != before:
            raise ReadAgain
        await save_watch(connection, actor.customer_id, account_id, watch, balance_minor)
        if watch != before:
            subject = f"account {account_id}"
            await transaction.record("account.watched", subject, before=_audited(before), after=_audited(watch))


async def _lock(transaction: Transaction, account_id: int) -> Row:
    return await store.lock_account(transaction.connection, transaction.actor.place, account_id)


async def _require_free_name(transaction: Transaction, name: str, account_id: int = 0) -> None:
    actor = transaction.actor
    if await transaction.connection.fetchval(store.NAME_TAKEN, *actor.place, name, account_id):
        raise AccountRefused(Why.NAME_TAKEN, "Another account has this name.")


async def _lock_holder(
    transaction: Transaction, holder: store.Holder, holder_id: int
) -> tuple[str, list[store.Assignable]]:
    """Locks a holder, so that two assignments at once do not mix. Returns its name in the audit log, and the accounts. Raises NotFound."""
    actor, connection = transaction.actor, transaction.connection
    subject = existing(await connection.fetchval(holder.lock, actor.customer_id, holder_id), "There is no such person.")
    return subject, await store.list_assignable(connection, holder, actor.place, holder_id)


async def _assign(
    transaction: Transaction,
    holder: store.Holder,
    holder_id: int,
    subject: str,
    accounts: Sequence[store.Assignable],
    account_ids: Collection[int],
) -> None:
    added = [one for one in accounts if one.id in account_ids and not one.open_to_all]
    removed = [one.id for one in accounts if one.is_assigned and one not in added]
    await store.change_assignments(
        transaction.connection, holder, transaction.actor.customer_id, holder_id, removed, [one.id for one in added]
    )
    before, after = [one.name for one in accounts if one.is_assigned], [one.name for one in added]
    if before != after:
        await transaction.record("account.assigned", subject, before={"accounts": before}, after={"accounts": after})


async def _require_watch(transaction: Transaction, watch: Watch) -> None:
    """Raises InvalidRequest unless the account can be watched like this."""
    if watch.below_minor <= 0:
        raise InvalidRequest("The amount must be greater than zero.")
    if not 0 < len(watch.user_ids) <= MOST_WATCHERS:
        raise InvalidRequest(f"Choose 1 to {MOST_WATCHERS} people to notify.")
    watchers = {one.id for one in await list_watchers(transaction.connection, transaction.actor.customer_id)}
    if not watchers.issuperset(watch.user_ids):
        raise InvalidRequest("Only administrators and finance are notified.")


def _audited(watch: Watch | None) -> dict[str, int | Sequence[int]]:
    return {} if watch is None else {"below_minor": watch.below_minor, "user_ids": watch.user_ids}


ACCOUNT_NAME = "Main"


async def open_customer(
    actor: Actor,
    name: str,
    *,
    plan: str,
    funding: str,
    currency: str,
    environments: Sequence[str],
    email: str,
    mails: bool,
) -> tuple[int, Invitation]:
    """Creates a customer with an account in each of the environments, and invites its first administrator; returns its id and the invitation.

    An invoiced customer has no account. With `mails` the invitation is also mailed. Raises as `create_customer`, `create_account` and `invite` do.
    """
    async with actor.transaction(StaffRight.CUSTOMERS) as transaction:
        joined = actor.within(transaction)
        customer_id, _ = await create_customer(joined, name, plan=plan, funding=funding, key=None)
        for environment in environments if funding == "balance" else ():
            await create_account(joined.on_behalf_of(customer_id, environment), currency=currency, name=ACCOUNT_NAME)
        administrator = joined.on_behalf_of(customer_id)
        invitation = await invite(administrator, email, name=None, role=ADMIN, mails=mails, start_over=None)
    return customer_id, invitation


class Transfer(msgspec.Struct, frozen=True):
    """A transfer, and the balances of both accounts after it, in minor units."""

    id: int
    amount_minor: int
    currency: str
    from_name: str
    from_minor: int
    to_name: str
    to_minor: int


async def transfer(actor: Actor, *, from_id: int, to_id: int, amount_minor: int) -> Transfer:
    """Moves money between two funding accounts.

    Raises NotFound for an account that is not the customer's in this environment; InvalidRequest if both accounts are the same, have
    different currencies, or the second is closed, and for an amount that is not positive; InsufficientBalance for more than the first account holds.
    """
    if amount_minor <= 0:
        raise InvalidRequest("The amount must be greater than zero.")
    if from_id == to_id:
        raise InvalidRequest("The money must go to another account.")
    customer_id = actor.customer_id
    async with actor.transaction(Right.TRANSFER) as transaction:
        connection = transaction.connection
        locked = await lock_accounts(connection, customer_id, [from_id, to_id])
        source, target = await _read_both(connection, actor, from_id, to_id)
        currency = source["currency"]
        from_minor, to_minor = locked[from_id].balance_minor, locked[to_id].balance_minor
        if from_minor < amount_minor:
            raise InsufficientBalance(f"{source['name']} holds {label(from_minor, currency)} only.")
        transfer_id: int = await connection.fetchval(NEXT_TRANSFER_ID)
        at = await read_now(connection)
        from_minor, to_minor = from_minor - amount_minor, to_minor + amount_minor
        entries = [
            Entry(customer_id, from_id, transfer_id, "transfer", None, -amount_minor, from_minor),
            Entry(customer_id, to_id, transfer_id, "transfer", None, amount_minor, to_minor),
        ]
        await post(connection, transaction.entries, locked, entries, at)
        row = (customer_id, transfer_id, actor.environment, from_id, to_id, amount_minor, actor.user_id, at)
        await connection.execute(_INSERT, *row)
        after = {"from_account_id": from_id, "to_account_id": to_id, "amount_minor": amount_minor, "currency": currency}
        await transaction.record("transfer.made", f"transfer {transfer_id}", after=after)
    return Transfer(transfer_id, amount_minor, currency, source["name"], from_minor, target["name"], to_minor)


async def _read_both(connection: Connection, actor: Actor, from_id: int, to_id: int) -> tuple[Row, Row]:
    """Returns both accounts, read under their locks. Raises NotFound, and InvalidRequest if they do not fit each other."""
    rows = await connection.fetch(_READ, *actor.place, [from_id, to_id])
    accounts = {row["id"]: row for row in rows}
    if len(accounts) < 2:
        raise NotFound("There is no such funding account.")
    source, target = accounts[from_id], accounts[to_id]
    if source["currency"] != target["currency"]:
        raise InvalidRequest("The accounts have different currencies.")
    if target["closed_at"] is not None:
        raise InvalidRequest(f"{target['name']} is closed.")
    return source, target


_READ = """
    SELECT id, name, currency, closed_at FROM accounts
    WHERE customer_id = $1 AND environment = $2 AND kind = 'funding' AND id = ANY($3::int[])
"""
_INSERT = """
    INSERT INTO transfers (customer_id, id, environment, from_account_id, to_account_id, amount_minor, made_by, made_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
"""
