"""Watching balances: who is told once an account falls below what was set, and not again until it has risen above it.

Orders know nothing of it. A worker compares balances with what was set every so often, in one statement over the accounts that are
watched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from largesse.audit.service import Acting
from largesse.base.errors import InvalidRequest, NotFound
from largesse.db.pool import Connection
from largesse.db.shard_groups import Customers, list_shard_groups
from largesse.db.sharding import arguments, within
from largesse.db.statements import insert

TOLD_ROLES = ("admin", "finance")
MOST_TOLD = 20  # people of an account


@dataclass(frozen=True, slots=True)
class Watch:
    """Below how much, in minor units, who is told: users by id."""

    below_minor: int
    user_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Reader:
    """Somebody who may be told."""

    id: int
    name: str
    email: str


async def list_readers(connection: Connection, customer_id: int) -> list[Reader]:
    """The people of a customer who may be told of a low balance, by name."""
    rows = await connection.fetch(
        """
        SELECT id, name, email FROM users
        WHERE customer_id = $1 AND is_active AND role = ANY($2::text[]) ORDER BY lower(name), id
        """,
        customer_id,
        list(TOLD_ROLES),
    )
    return [Reader(**row) for row in rows]


async def find_watch(connection: Connection, customer_id: int, account_id: int) -> Watch | None:
    """How an account is watched; None: it is not."""
    row = await connection.fetchrow(
        """
        SELECT w.below_minor, ARRAY(
            SELECT user_id FROM account_watchers x
            WHERE x.customer_id = w.customer_id AND x.account_id = w.account_id ORDER BY user_id) AS user_ids
        FROM account_watches w WHERE w.customer_id = $1 AND w.account_id = $2
        """,
        customer_id,
        account_id,
    )
    return None if row is None else Watch(row["below_minor"], tuple(row["user_ids"]))


async def set_watch(
    connection: Connection, acting: Acting, *, customer_id: int, environment: str, account_id: int, watch: Watch | None
) -> None:
    """Has an account watched so from now on, or no longer. Call it inside a transaction.

    Nobody is told at once of a balance that is low already. Raises NotFound for an account that is not the customer's in this environment, and
    InvalidRequest for an amount that is not positive, and for nobody, more than MOST_TOLD, or somebody who may not be told.
    """
    account = await connection.fetchrow(
        """
        SELECT balance_minor, currency FROM accounts
        WHERE customer_id = $1 AND environment = $2 AND id = $3 AND kind = 'funding'
        """,
        customer_id,
        environment,
        account_id,
    )
    if account is None:
        raise NotFound("There is no such funding account.")
    if watch is not None:
        await _refuse(connection, customer_id, watch)
    before = await find_watch(connection, customer_id, account_id)
    await connection.execute(
        "DELETE FROM account_watchers WHERE customer_id = $1 AND account_id = $2", customer_id, account_id
    )
    if watch is None:
        await connection.execute(
            "DELETE FROM account_watches WHERE customer_id = $1 AND account_id = $2", customer_id, account_id
        )
    else:
        await _write(connection, customer_id, account_id, watch, account["balance_minor"])
    if watch != before:
        await acting.record(
            connection,
            "account.watched",
            f"account {account_id}",
            customer_id=customer_id,
            environment=environment,
            before=_told(before),
            after=_told(watch),
        )


async def fallen(connection: Connection, customers: Customers = None) -> list[tuple[int, int, list[int]]]:
    """The accounts, of those customers, else of all, that have fallen below what was set since it was asked last: customer, account, and the users to tell.

    Call it inside a transaction, whose commit says that they were told. Of two who ask at once, one gets each.
    """
    told = []
    for shard_group in await list_shard_groups(connection, customers):
        rows = await connection.fetch(
            f"""
            UPDATE account_watches w SET is_low = a.balance_minor < w.below_minor FROM accounts a
            WHERE a.customer_id = w.customer_id AND a.id = w.account_id AND w.is_low <> (a.balance_minor < w.below_minor)
              {within("w.customer_id", "$1", shard_group)} {within("a.customer_id", "$1", shard_group)}
            RETURNING w.customer_id, w.account_id, w.is_low AND a.closed_at IS NULL AS is_told, ARRAY(
                SELECT user_id FROM account_watchers x
                WHERE x.customer_id = w.customer_id AND x.account_id = w.account_id
                {within("x.customer_id", "$1", shard_group)} ORDER BY user_id) AS user_ids
            """,  # noqa: S608 - a placeholder
            *arguments(shard_group),
        )
        told += [(row["customer_id"], row["account_id"], row["user_ids"]) for row in rows if row["is_told"]]
    return sorted(told)


# Of the customers in $1, those who have any account watched.
CUSTOMERS_WATCHING = "SELECT DISTINCT customer_id FROM account_watches WHERE customer_id = ANY($1::int[])"


async def _refuse(connection: Connection, customer_id: int, watch: Watch) -> None:
    if watch.below_minor <= 0:
        raise InvalidRequest("The amount must be greater than zero.")
    if not 0 < len(watch.user_ids) <= MOST_TOLD:
        raise InvalidRequest(f"1 to {MOST_TOLD} people are told.")
    readers = {one.id for one in await list_readers(connection, customer_id)}
    if not readers.issuperset(watch.user_ids):
        raise InvalidRequest("Only administrators and finance are told.")


async def _write(connection: Connection, customer_id: int, account_id: int, watch: Watch, balance_minor: int) -> None:
    await connection.execute(
        """
        INSERT INTO account_watches (customer_id, account_id, below_minor, is_low) VALUES ($1, $2, $3, $4)
        ON CONFLICT (customer_id, account_id) DO UPDATE SET below_minor = excluded.below_minor, is_low = excluded.is_low
        """,
        customer_id,
        account_id,
        watch.below_minor,
        balance_minor < watch.below_minor,
    )
    await insert(
        connection,
        "INSERT INTO account_watchers (customer_id, account_id, user_id)",
        [(customer_id, account_id, user_id) for user_id in sorted(set(watch.user_ids))],
    )


def _told(watch: Watch | None) -> dict[str, int | Sequence[int]]:
    return {} if watch is None else {"below_minor": watch.below_minor, "user_ids": watch.user_ids}
