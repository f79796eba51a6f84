"""Telling people that an account has fallen below what was set for it."""

from __future__ import annotations

from dataclasses import dataclass

from largesse.database.pool import Connection, commit_as_one
from largesse.database.rounds import Customers
from largesse.delivery.outbox import mail_low_balance
from largesse.funding.watching import TOLD_ROLES, fallen


@dataclass(frozen=True, slots=True)
class LowBalance:
    """An account that holds little, as it is now; amounts in minor units."""

    account: str
    environment: str
    currency: str
    balance_minor: int
    below_minor: int


async def queue_low_balances(connection: Connection, customers: Customers = None) -> int:
    """Has everybody told, of those customers, else of all, whose accounts have fallen; returns how many mails. Call it inside a transaction."""
    mails = 0
    await commit_as_one(connection)
    for _, account_id, user_ids in await fallen(connection, customers):
        await mail_low_balance(connection, account_id, user_ids)
        mails += len(user_ids)
    return mails


async def read_low_balance(connection: Connection, user_id: int, account_id: int) -> LowBalance | None:
    """What a user is to be told of an account; None where they are not, any longer, or it has risen since."""
    row = await connection.fetchrow(
        """
        SELECT a.name AS account, a.environment, a.currency, a.balance_minor, w.below_minor
        FROM users u
        JOIN account_watchers x ON x.customer_id = u.customer_id AND x.user_id = u.id
        JOIN account_watches w ON w.customer_id = x.customer_id AND w.account_id = x.account_id
        JOIN accounts a ON a.customer_id = w.customer_id AND a.id = w.account_id
        WHERE u.id = $1 AND a.id = $2 AND u.is_active AND u.role = ANY($3::text[]) AND a.balance_minor < w.below_minor
        """,
        user_id,
        account_id,
        list(TOLD_ROLES),
    )
    return None if row is None else LowBalance(**row)
