"""A customer's funding accounts as its people see them: what each holds, and who uses it."""

from __future__ import annotations

from dataclasses import dataclass

from largesse.base.errors import NotFound
from largesse.database.pool import Connection


@dataclass(frozen=True, slots=True)
class SeenAccount:
    """A funding account; the balance in minor units."""

    id: int
    name: str
    is_master: bool
    open_to_all: bool
    service_accounts: list[str]  # the names of those it is assigned to
    people: list[str]
    currency: str
    balance_minor: int
    is_closed: bool
    below_minor: int | None  # its people are told when it holds less; None: they are not

    @property
    def is_low(self) -> bool:
        """Whether it holds less than its people want to know of."""
        return self.below_minor is not None and self.balance_minor < self.below_minor and not self.is_closed


async def list_seen_accounts(
    connection: Connection, customer_id: int, environment: str, *, user_id: int | None
) -> list[SeenAccount]:
    """The funding accounts of a customer in an environment, the master ones first and the closed ones last.

    Those that a user may use, which closed ones are not, or with None all of them.
    """
    rows = await connection.fetch(
        """
        SELECT a.id, a.name, a.is_master, a.open_to_all, a.currency, a.balance_minor, a.closed_at IS NOT NULL AS is_closed,
               w.below_minor,
               ARRAY(SELECT s.name FROM account_service_accounts x JOIN service_accounts s ON s.id = x.service_account_id
                     WHERE x.customer_id = a.customer_id AND x.account_id = a.id ORDER BY s.name) AS service_accounts,
               ARRAY(SELECT u.name FROM account_users x JOIN users u ON u.id = x.user_id
                     WHERE x.customer_id = a.customer_id AND x.account_id = a.id ORDER BY u.name) AS people
        FROM accounts a LEFT JOIN account_watches w ON w.customer_id = a.customer_id AND w.account_id = a.id
        WHERE a.customer_id = $1 AND a.environment = $2 AND a.kind = 'funding'
          AND ($3::int IS NULL OR a.closed_at IS NULL AND (a.open_to_all OR EXISTS (
              SELECT FROM account_users x WHERE x.customer_id = a.customer_id AND x.account_id = a.id AND x.user_id = $3)))
        ORDER BY a.closed_at IS NOT NULL, a.is_master DESC, a.id
        """,
        customer_id,
        environment,
        user_id,
    )
    return [SeenAccount(**row) for row in rows]


async def find_seen_account(
    connection: Connection, customer_id: int, environment: str, account_id: int, *, user_id: int | None
) -> SeenAccount:
    """One of them. Raises NotFound."""
    accounts = await list_seen_accounts(connection, customer_id, environment, user_id=user_id)
    found = next((account for account in accounts if account.id == account_id), None)
    if found is None:
        raise NotFound("There is no such funding account.")
    return found
