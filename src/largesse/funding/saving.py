"""Funding accounts as a world file describes them, and who may draw on them. Their money moves through the ledger alone."""

from __future__ import annotations

from collections.abc import Sequence

from largesse.database.inserting import insert
from largesse.database.pool import Connection
from largesse.database.saving import Saved, Table, Values

_ACCOUNTS = Table(
    "accounts",
    {
        "customer_id": "integer",
        "key": "text",
        "kind": "text",
        "name": "text",
        "is_master": "boolean",
        "open_to_all": "boolean",
        "currency": "text",
        "environment": "text",
    },
    match="saved.customer_id = new.customer_id AND saved.key = new.key",
    fixed=("customer_id", "key", "kind", "currency", "environment"),
)


async def save_accounts(connection: Connection, rows: Sequence[Values]) -> Saved:
    """Adds funding accounts, without money, and overwrites those that differ, found by customer and key.

    Raises FixedColumn for another currency or environment.
    """
    return await _ACCOUNTS.save(connection, rows)


async def assign(
    connection: Connection, account_ids: Sequence[int], assigned: Sequence[tuple[int, int, int]]
) -> None:
    """Makes these the only assignments of those accounts: who leaves the list may draw no more.

    An assignment is a customer, its account, and its service account, by id.
    """
    columns = tuple([each[column] for each in assigned] for column in range(3))
    await connection.execute(
        """
        DELETE FROM account_service_accounts AS saved
        WHERE account_id = ANY($1::int[]) AND NOT EXISTS (
            SELECT FROM unnest($2::int[], $3::int[], $4::int[]) AS new (customer_id, account_id, service_account_id)
            WHERE new.customer_id = saved.customer_id AND new.account_id = saved.account_id
              AND new.service_account_id = saved.service_account_id)
        """,
        account_ids,
        *columns,
    )
    await insert(
        connection,
        "INSERT INTO account_service_accounts (customer_id, account_id, service_account_id)",
        assigned,
        conflict="ON CONFLICT DO NOTHING",
    )
