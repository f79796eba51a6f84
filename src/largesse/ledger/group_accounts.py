"""Group accounts: a customer makes funding accounts of its own, renames them, and closes those that hold nothing.

From a closed account nothing is drawn, and nothing is paid into it. What an order that it paid for returns still goes there; it can be moved
out, or the account is opened again.
"""

from __future__ import annotations

from enum import Enum, auto

from largesse.audit.service import Acting
from largesse.base.errors import InvalidRequest, NotFound
from largesse.base.money import label
from largesse.base.text import free_key
from largesse.db.pool import Connection, Row

MOST_ACCOUNTS = 200  # funding accounts of a customer, the closed ones too
LONGEST_NAME = 100


class Why(Enum):
    """Why an account is not made, renamed, closed or opened."""

    TOO_MANY = auto()
    NAME_TAKEN = auto()
    NO_CURRENCY = auto()
    INVOICED = auto()
    MASTER = auto()
    HOLDS = auto()
    AWAITS = auto()


class AccountRefused(InvalidRequest):
    """What was to be done with an account breaks a rule; `why` says which."""

    def __init__(self, why: Why, detail: str) -> None:
        super().__init__(detail)
        self.why = why


async def add_account(
    connection: Connection, acting: Acting, *, customer_id: int, environment: str, currency: str, name: str
) -> int:
    """Makes an account that nobody is assigned to yet; returns its id. Call it inside a transaction.

    Its key is made of the name. Raises AccountRefused for a name that an open account of the environment has, an unknown currency, a customer
    that is invoiced, or one that has MOST_ACCOUNTS.
    """
    # Locked, so that two who add at the same time neither pass the limit nor take the same key.
    funding = await connection.fetchval("SELECT funding FROM customers WHERE id = $1 FOR NO KEY UPDATE", customer_id)
    if funding != "balance":
        raise AccountRefused(Why.INVOICED, "The customer is invoiced: it pays from no funding account.")
    if not await connection.fetchval("SELECT EXISTS (SELECT FROM currencies WHERE code = $1)", currency):
        raise AccountRefused(Why.NO_CURRENCY, f"There is no currency {currency!r}.")
    keys = await connection.fetch("SELECT key FROM accounts WHERE customer_id = $1 AND kind = 'funding'", customer_id)
    if len(keys) >= MOST_ACCOUNTS:
        raise AccountRefused(Why.TOO_MANY, f"A customer has at most {MOST_ACCOUNTS} funding accounts.")
    await _refuse_taken(connection, customer_id, environment, name)
    key = free_key(name, {row["key"] for row in keys}, "account")
    account_id: int = await connection.fetchval(
        """
        INSERT INTO accounts (customer_id, environment, kind, key, name, currency)
        VALUES ($1, $2, 'funding', $3, $4, $5) RETURNING id
        """,
        customer_id,
        environment,
        key,
        name,
        currency,
    )
    await acting.record(
        connection,
        "account.created",
        f"account {account_id}",
        customer_id=customer_id,
        environment=environment,
        after={"name": name, "key": key, "currency": currency},
    )
    return account_id


async def rename_account(
    connection: Connection, acting: Acting, *, customer_id: int, environment: str, account_id: int, name: str
) -> None:
    """Gives an account another name; its key stays. Call it inside a transaction. Raises NotFound, and AccountRefused for a name that is taken."""
    before = await _lock(connection, customer_id, environment, account_id)
    if before["name"] == name:
        return
    await _refuse_taken(connection, customer_id, environment, name, but=account_id)
    await connection.execute(
        "UPDATE accounts SET name = $3 WHERE customer_id = $1 AND id = $2", customer_id, account_id, name
    )
    await acting.record(
        connection,
        "account.renamed",
        f"account {account_id}",
        customer_id=customer_id,
        environment=environment,
        before={"name": before["name"]},
        after={"name": name},
    )


async def close_account(
    connection: Connection, acting: Acting, *, customer_id: int, environment: str, account_id: int
) -> None:
    """Closes an account that holds nothing; one that is closed stays as it is. Call it inside a transaction.

    Raises NotFound, and AccountRefused for the master account, one that holds money, and one that a top-up waits for.
    """
    account = await _lock(connection, customer_id, environment, account_id)
    if account["closed_at"] is not None:
        return
    if account["is_master"]:
        raise AccountRefused(Why.MASTER, "A master account cannot be closed.")
    if account["balance_minor"]:
        held = label(account["balance_minor"], account["currency"])
        raise AccountRefused(Why.HOLDS, f"The account holds {held}: move it to another one first.")
    awaited = await connection.fetchval(
        """
        SELECT EXISTS (SELECT FROM top_ups WHERE customer_id = $1 AND environment = $2 AND account_id = $3
                       AND state = 'waiting' AND expires_at > clock_now())
        """,
        customer_id,
        environment,
        account_id,
    )
    if awaited:
        raise AccountRefused(Why.AWAITS, "A top-up of the account waits for its transfer: cancel it first.")
    await _set_closed(connection, acting, account, "account.closed", "clock_now()")


async def open_account(
    connection: Connection, acting: Acting, *, customer_id: int, environment: str, account_id: int
) -> None:
    """Opens a closed account again; one that is open stays as it is. Call it inside a transaction. Raises NotFound, and AccountRefused for a name that is taken."""
    account = await _lock(connection, customer_id, environment, account_id)
    if account["closed_at"] is not None:
        await _refuse_taken(connection, customer_id, environment, account["name"], but=account_id)
        await _set_closed(connection, acting, account, "account.opened", "NULL")


async def _set_closed(connection: Connection, acting: Acting, account: Row, act: str, closed_at: str) -> None:
    await connection.execute(
        f"UPDATE accounts SET closed_at = {closed_at} WHERE customer_id = $1 AND id = $2",  # noqa: S608 - constants
        account["customer_id"],
        account["id"],
    )
    await acting.record(
        connection,
        act,
        f"account {account['id']}",
        customer_id=account["customer_id"],
        environment=account["environment"],
        after={"name": account["name"]},
    )


async def _lock(connection: Connection, customer_id: int, environment: str, account_id: int) -> Row:
    """A customer's funding account, locked until the transaction ends. Raises NotFound."""
    # The customer first, as `add_account` does, so that a name is taken by one alone.
    await connection.execute("SELECT FROM customers WHERE id = $1 FOR NO KEY UPDATE", customer_id)
    row = await connection.fetchrow(
        """
        SELECT customer_id, environment, id, name, currency, is_master, balance_minor, closed_at FROM accounts
        WHERE customer_id = $1 AND environment = $2 AND id = $3 AND kind = 'funding' FOR NO KEY UPDATE
        """,
        customer_id,
        environment,
        account_id,
    )
    if row is None:
        raise NotFound("There is no such funding account.")
    return row


async def _refuse_taken(connection: Connection, customer_id: int, environment: str, name: str, but: int = 0) -> None:
    taken = await connection.fetchval(
        """
        SELECT EXISTS (SELECT FROM accounts WHERE customer_id = $1 AND environment = $2 AND kind = 'funding'
                       AND lower(name) = lower($3) AND closed_at IS NULL AND id <> $4)
        """,
        customer_id,
        environment,
        name,
        but,
    )
    if taken:
        raise AccountRefused(Why.NAME_TAKEN, "Another account has this name.")
