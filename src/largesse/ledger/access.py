"""Who may use the funding accounts of a customer that are not open to all: service accounts, and people who use some alone.

An administrator uses every account; whoever is neither sees what their role lets them see.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from largesse.base.errors import NotFound
from largesse.db.pool import Connection
from largesse.db.statements import insert


class Holder(Enum):
    """Whom an account is assigned to, with the statements for each, the last but for its rows."""

    SERVICE_ACCOUNT = (
        "SELECT id FROM service_accounts WHERE customer_id = $1 AND id = $2 FOR NO KEY UPDATE",
        "SELECT account_id FROM account_service_accounts WHERE customer_id = $1 AND service_account_id = $2",
        """
        DELETE FROM account_service_accounts
        WHERE customer_id = $1 AND service_account_id = $2 AND account_id = ANY($3::int[])
        """,
        "INSERT INTO account_service_accounts (customer_id, service_account_id, account_id)",
    )
    PERSON = (
        "SELECT id FROM users WHERE customer_id = $1 AND id = $2 AND is_active FOR NO KEY UPDATE",
        "SELECT account_id FROM account_users WHERE customer_id = $1 AND user_id = $2",
        "DELETE FROM account_users WHERE customer_id = $1 AND user_id = $2 AND account_id = ANY($3::int[])",
        "INSERT INTO account_users (customer_id, user_id, account_id)",
    )

    def __init__(self, lock: str, read: str, take: str, give: str) -> None:
        self.lock, self.read, self.take, self.give = lock, read, take, give


@dataclass(frozen=True, slots=True)
class Assignable:
    """A funding account, and whether it is assigned."""

    id: int
    name: str
    currency: str
    open_to_all: bool
    is_assigned: bool


class Assigned(NamedTuple):
    """The names of the accounts that somebody might use, beside those open to all, and of those they may use now."""

    before: list[str]
    after: list[str]


async def list_assignable(
    connection: Connection, holder: Holder, customer_id: int, environment: str, holder_id: int
) -> list[Assignable]:
    """The open funding accounts of a customer in an environment, the master ones first, each with whether that one may use it."""
    held = [row[0] for row in await connection.fetch(holder.read, customer_id, holder_id)]
    rows = await connection.fetch(
        """
        SELECT id, name, currency, open_to_all, id = ANY($3::int[]) AS is_assigned FROM accounts
        WHERE customer_id = $1 AND environment = $2 AND kind = 'funding' AND closed_at IS NULL ORDER BY is_master DESC, id
        """,
        customer_id,
        environment,
        held,
    )
    return [Assignable(**row) for row in rows]


async def assign_accounts(
    connection: Connection,
    holder: Holder,
    customer_id: int,
    environment: str,
    holder_id: int,
    account_ids: Collection[int],
) -> Assigned:
    """Makes these the only accounts of that environment that somebody may use, beside those open to all, which are none of these.

    Call it inside a transaction. It holds from the next request on. Raises NotFound for an account, or somebody, that is not the customer's.
    """
    # Locked, so that two who assign at the same time do not end up with what neither wanted.
    if await connection.fetchval(holder.lock, customer_id, holder_id) is None:
        raise NotFound("There is nobody of that number.")
    accounts = await list_assignable(connection, holder, customer_id, environment, holder_id)
    if not set(account_ids) <= {account.id for account in accounts}:
        raise NotFound("There is no such funding account.")
    wanted = [one for one in accounts if one.id in account_ids and not one.open_to_all]
    unwanted = [one for one in accounts if one.is_assigned and one not in wanted]
    before = [one.name for one in accounts if one.is_assigned]
    await connection.execute(holder.take, customer_id, holder_id, [one.id for one in unwanted])
    await insert(
        connection, holder.give, [(customer_id, holder_id, one.id) for one in wanted], conflict="ON CONFLICT DO NOTHING"
    )
    return Assigned(before, [one.name for one in wanted])


async def take_all_accounts(connection: Connection, customer_id: int, user_id: int) -> None:
    """Leaves a person none: who is invited again later begins without."""
    await connection.execute("DELETE FROM account_users WHERE customer_id = $1 AND user_id = $2", customer_id, user_id)
