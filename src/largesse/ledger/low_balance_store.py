"""The SQL of low balances. People are notified once when a balance falls below an amount, and again after it has risen.

Placing orders does not check it. The worker compares balances from time to time, in one statement for all watched accounts.
"""

import hashlib

import msgspec

from largesse.base.money import to_number
from largesse.db.fragments import Fragment, grouped
from largesse.db.pool import Connection, Row
from largesse.db.shard_groups import Customers, list_shard_groups
from largesse.db.sharding import arguments
from largesse.db.statements import insert
from largesse.events.kinds import ACCOUNT_LOW, AccountLow
from largesse.events.store import record_event

NOTIFIED_ROLES = ("admin", "finance")
_WATCHERS = """
    SELECT id, name, email FROM users
    WHERE customer_id = $1 AND is_active AND role = ANY($2::text[]) ORDER BY lower(name), id
"""
_WATCHING = "SELECT user_id FROM account_watchers WHERE customer_id = $1 AND account_id = $2"
_WATCH = """
    SELECT w.below_minor, ARRAY(
        SELECT user_id FROM account_watchers x
        WHERE x.customer_id = w.customer_id AND x.account_id = w.account_id ORDER BY user_id) AS user_ids
    FROM account_watches w WHERE w.customer_id = $1 AND w.account_id = $2
"""
_DELETE_WATCHERS = "DELETE FROM account_watchers WHERE customer_id = $1 AND account_id = $2"
_DELETE_WATCH = "DELETE FROM account_watches WHERE customer_id = $1 AND account_id = $2"
_SAVE_WATCH = """
    INSERT INTO account_watches (customer_id, account_id, below_minor, is_low) VALUES ($1, $2, $3, $4)
    ON CONFLICT (customer_id, account_id) DO UPDATE SET below_minor = excluded.below_minor, is_low = excluded.is_low
"""
_ADD_WATCHERS = Fragment("INSERT INTO account_watchers (customer_id, account_id, user_id)")


class Watch(msgspec.Struct, frozen=True):
    """The balance, in minor units, below which these users are notified."""

    below_minor: int
    user_ids: tuple[int, ...]


class Watcher(msgspec.Struct, frozen=True):
    """A person who may be notified of a low balance."""

    id: int
    name: str
    email: str


async def list_watchers(connection: Connection, customer_id: int) -> list[Watcher]:
    """Returns the people of a customer who may be notified of a low balance, by name."""
    rows = await connection.fetch(_WATCHERS, customer_id, list(NOTIFIED_ROLES))
    return [Watcher(**row) for row in rows]


async def list_watching(connection: Connection, customer_id: int, account_id: int) -> list[int]:
    """Returns the ids of the users who watch an account."""
    return [row["user_id"] for row in await connection.fetch(_WATCHING, customer_id, account_id)]


async def find_watch(connection: Connection, customer_id: int, account_id: int) -> Watch | None:
    """Returns how an account is watched, or None."""
    row = await connection.fetchrow(_WATCH, customer_id, account_id)
    return None if row is None else Watch(row["below_minor"], tuple(row["user_ids"]))


async def save_watch(
    connection: Connection, customer_id: int, account_id: int, watch: Watch | None, balance_minor: int
) -> None:
    """Replaces how an account with that balance is watched; None ends it."""
    own = customer_id, account_id
    await connection.execute(_DELETE_WATCHERS, *own)
    if watch is None:
        await connection.execute(_DELETE_WATCH, *own)
        return
    await connection.execute(_SAVE_WATCH, *own, watch.below_minor, balance_minor < watch.below_minor)
    rows = [(*own, user_id) for user_id in sorted(set(watch.user_ids))]
    await insert(connection, _ADD_WATCHERS, rows)


# The customers among $1 with a watched account.
CUSTOMERS_WATCHING = "SELECT DISTINCT customer_id FROM account_watches WHERE customer_id = ANY($1::int[])"

MOST_MARKED = 2_000  # in a transaction: each account that has fallen takes two more statements
_PASSED = Fragment(
    "a.customer_id = w.customer_id AND a.id = w.account_id AND w.is_low <> (a.balance_minor < w.below_minor)"
)
_FIND_PASSED = grouped(
    """
    SELECT w.customer_id, w.account_id FROM account_watches w, accounts a
    WHERE {passed} {within w.customer_id} {within a.customer_id}
    LIMIT $1
    """,
    "$2",
    passed=_PASSED,
)
_MARK_LOW = grouped(
    """
    UPDATE account_watches w SET is_low = a.balance_minor < w.below_minor
    FROM accounts a, unnest($1::int[], $2::int[]) AS found (customer_id, account_id), (SELECT clock_now()) AS clock (now)
    WHERE {passed} AND w.customer_id = found.customer_id AND w.account_id = found.account_id
      {within w.customer_id} {within a.customer_id}
    RETURNING w.customer_id, w.account_id, w.is_low AND a.closed_at IS NULL AS has_fallen, w.below_minor,
        a.environment, a.name, a.currency, a.balance_minor, now, ARRAY(
        SELECT user_id FROM account_watchers x
        WHERE x.customer_id = w.customer_id AND x.account_id = w.account_id
        {within x.customer_id} ORDER BY user_id) AS user_ids
    """,
    "$3",
    passed=_PASSED,
)


async def mark_low_balances(connection: Connection, customers: Customers = None) -> list[tuple[int, int, list[int]]]:
    """Marks the watched accounts that are low now, MOST_MARKED at most, of some customers or of all. Returns those that have fallen since the last call:
    customer, account, user ids.

    Records `account.low` for each of these. After the commit the users count as notified: of two calls at once, only one returns an account.
    """
    fallen = []
    for group in await list_shard_groups(connection, customers):
        passed = await connection.fetch(_FIND_PASSED.of(group), MOST_MARKED, *arguments(group))
        columns = ([row[at] for row in passed] for at in range(2))
        for row in await connection.fetch(_MARK_LOW.of(group), *columns, *arguments(group)) if passed else ():
            if row["has_fallen"]:
                await _record_low(connection, row)
                fallen.append((row["customer_id"], row["account_id"], row["user_ids"]))
    return sorted(fallen)


async def _record_low(connection: Connection, row: Row) -> None:
    occurrence = f"{row['account_id']}/{row['now'].isoformat()}"
    low = AccountLow(
        id=f"evt_{hashlib.sha256(occurrence.encode()).hexdigest()[:24]}",
        event=ACCOUNT_LOW.name,
        customer_id=row["customer_id"],
        account_id=row["account_id"],
        account_name=row["name"],
        currency=row["currency"],
        balance=to_number(row["balance_minor"], row["currency"]),
        below=to_number(row["below_minor"], row["currency"]),
        occurred_at=row["now"],
    )
    await record_event(
        connection,
        ACCOUNT_LOW,
        low,
        order_id=None,
        customer_id=row["customer_id"],
        environment=row["environment"],
        at=row["now"],
    )
