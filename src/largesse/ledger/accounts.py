"""Funding accounts: which a service account may draw from.

A customer's funding accounts as its people see them: what each holds, and who uses it.

Funding accounts as a world file describes them, and who may draw on them. Their money moves through the ledger alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from largesse.base.errors import NotFound, OperatorError
from largesse.customers.principal import Principal
from largesse.db.pool import Connection, Row
from largesse.db.statements import Saved, Table, Values, insert


@dataclass(frozen=True, slots=True)
class FundingAccount:
    """A funding account as its holder sees it."""

    id: int
    name: str
    is_master: bool
    currency: str
    currency_id: int  # ISO 4217 numeric
    balance_minor: int


async def list_funding_accounts(connection: Connection, principal: Principal) -> list[FundingAccount]:
    """The accounts that the principal may draw from, in its environment: those open to all, and those assigned to its service account.

    A person draws from those open to all and from those assigned to them, an administrator from each.
    """
    rows = await connection.fetch(
        """
        SELECT accounts.id, accounts.name, is_master, currency, currencies.id AS currency_id, balance_minor
        FROM accounts JOIN currencies ON currencies.code = accounts.currency
        WHERE customer_id = $1 AND environment = $2 AND kind = 'funding' AND closed_at IS NULL
          AND (open_to_all OR $4 OR EXISTS (
              SELECT FROM account_service_accounts a
              WHERE a.customer_id = $1 AND a.account_id = accounts.id
                AND a.service_account_id = $3) OR EXISTS (
              SELECT FROM account_users a
              WHERE a.customer_id = $1 AND a.account_id = accounts.id AND a.user_id = $5))
        ORDER BY is_master DESC, accounts.id
        """,
        principal.customer_id,
        principal.environment,
        principal.service_account_id,
        principal.draws_on_all,
        principal.user_id,
    )
    return [FundingAccount(**row) for row in rows]


async def list_unfunded(connection: Connection, service_account_ids: Sequence[int]) -> list[tuple[int, list[str]]]:
    """Which of those service accounts can send nothing for want of a funding account, each with the environments concerned.

    They are active, of customers that pay from a balance and whose plan includes the API; the environments are those they
    have an API key in, or both where they have none yet and no funding account anywhere.
    """
    rows = await connection.fetch(
        """
        WITH keyed AS MATERIALIZED (
            SELECT DISTINCT service_account_id AS id, environment FROM api_keys
            WHERE service_account_id = ANY($1::int[]) AND deleted_at IS NULL
        ), funded AS MATERIALIZED (
            SELECT DISTINCT s.id, a.environment
            FROM service_accounts s JOIN accounts a ON a.customer_id = s.customer_id AND a.kind = 'funding'
            LEFT JOIN account_service_accounts x
                ON x.customer_id = a.customer_id AND x.account_id = a.id AND x.service_account_id = s.id
            WHERE s.id = ANY($1::int[]) AND a.closed_at IS NULL
              AND (a.open_to_all OR x.customer_id IS NOT NULL)
        ), standing AS (
            SELECT s.id, e.environment, keyed.id IS NOT NULL AS has_key, funded.id IS NOT NULL AS has_account
            FROM service_accounts s JOIN customers c ON c.id = s.customer_id
            CROSS JOIN (VALUES ('production'), ('staging')) AS e (environment)
            LEFT JOIN keyed ON keyed.id = s.id AND keyed.environment = e.environment
            LEFT JOIN funded ON funded.id = s.id AND funded.environment = e.environment
            WHERE s.id = ANY($1::int[]) AND s.active AND c.funding = 'balance' AND c.plan <> 'starter')
        SELECT id, array_agg(environment ORDER BY environment) FILTER (WHERE has_key AND NOT has_account) AS keyed,
               NOT bool_or(has_key) AND NOT bool_or(has_account) AS idle
        FROM standing GROUP BY id ORDER BY id
        """,
        service_account_ids,
    )
    return [(row["id"], row["keyed"] or ["production", "staging"]) for row in rows if row["keyed"] or row["idle"]]


@dataclass(frozen=True, slots=True)
class AccountRecord:
    """A funding account as an operator sees it."""

    id: int
    customer: str
    key: str
    name: str
    environment: str
    is_master: bool
    open_to_all: bool
    service_accounts: list[str]
    people: list[str]  # by address
    currency: str
    balance_minor: int
    is_closed: bool


async def list_accounts(connection: Connection, customer: str | None = None) -> list[AccountRecord]:
    """All funding accounts, or those of one customer, by customer and key."""
    rows = await connection.fetch(
        """
        SELECT a.id, c.key AS customer, a.key, a.name, a.environment, a.is_master, a.open_to_all,
               ARRAY(SELECT s.key FROM account_service_accounts x JOIN service_accounts s ON s.id = x.service_account_id
                     WHERE x.customer_id = a.customer_id AND x.account_id = a.id ORDER BY s.key) AS service_accounts,
               ARRAY(SELECT u.email FROM account_users x JOIN users u ON u.id = x.user_id
                     WHERE x.customer_id = a.customer_id AND x.account_id = a.id ORDER BY u.email) AS people,
               a.currency, a.balance_minor, a.closed_at IS NOT NULL AS is_closed
        FROM accounts a JOIN customers c ON c.id = a.customer_id
        WHERE a.kind = 'funding' AND ($1::text IS NULL OR c.key = $1)
        ORDER BY c.key, a.key
        """,
        customer,
    )
    return [AccountRecord(**row) for row in rows]


async def find_funding_account(connection: Connection, name: str) -> Row:
    """The funding account of an id, a key, or customer/key: its id, key, name, currency and environment, and its customer's key and id.

    Raises OperatorError for none and for several.
    """
    customer, _, key = name.rpartition("/")
    rows = await connection.fetch(
        """
        SELECT a.id, a.key, a.name, a.currency, a.environment, a.customer_id, c.key AS customer
        FROM accounts a JOIN customers c ON c.id = a.customer_id
        WHERE a.kind = 'funding' AND ((a.key = $1 AND ($2 = '' OR c.key = $2)) OR ($2 = '' AND a.id::text = $1))
        ORDER BY a.id
        """,
        key,
        customer,
    )
    if not rows:
        raise OperatorError(f"there is no funding account {name!r}")
    if len(rows) > 1:
        names = ", ".join(f"{row['customer']}/{key} (id {row['id']})" for row in rows)
        raise OperatorError(f"{name!r} could be any of {names}")
    return rows[0]


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


async def assign(connection: Connection, account_ids: Sequence[int], assigned: Sequence[tuple[int, int, int]]) -> None:
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
