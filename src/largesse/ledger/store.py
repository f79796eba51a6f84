"""SQL of funding accounts: their balances, and who may use them. Only `posting` moves money."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum

import msgspec

from largesse.base.errors import NotFound, OperatorError
from largesse.base.money import label
from largesse.customers.principal import Principal
from largesse.db.fragments import Fragment
from largesse.db.pool import Connection, Row
from largesse.db.scope import Place
from largesse.db.statements import Table, insert
from largesse.ledger.payment_sources import names_account

_FUNDING_ACCOUNTS = """
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
"""
_UNFUNDED = """
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
    ), status AS (
        SELECT s.id, e.environment, keyed.id IS NOT NULL AS has_key, funded.id IS NOT NULL AS has_account
        FROM service_accounts s JOIN customers c ON c.id = s.customer_id
        CROSS JOIN (VALUES ('production'), ('staging')) AS e (environment)
        LEFT JOIN keyed ON keyed.id = s.id AND keyed.environment = e.environment
        LEFT JOIN funded ON funded.id = s.id AND funded.environment = e.environment
        WHERE s.id = ANY($1::int[]) AND s.active AND c.funding = 'balance' AND c.plan <> 'starter')
    SELECT id, array_agg(environment ORDER BY environment) FILTER (WHERE has_key AND NOT has_account) AS keyed,
           NOT bool_or(has_key) AND NOT bool_or(has_account) AS idle
    FROM status GROUP BY id ORDER BY id
"""
_LISTED_ACCOUNTS = """
    SELECT a.id, c.key AS customer, c.id AS customer_id, a.key, a.name, a.environment, a.is_master, a.open_to_all,
           ARRAY(SELECT s.key FROM account_service_accounts x JOIN service_accounts s ON s.id = x.service_account_id
                 WHERE x.customer_id = a.customer_id AND x.account_id = a.id ORDER BY s.key) AS service_accounts,
           ARRAY(SELECT u.email FROM account_users x JOIN users u ON u.id = x.user_id
                 WHERE x.customer_id = a.customer_id AND x.account_id = a.id ORDER BY u.email) AS people,
           a.currency, a.balance_minor, a.closed_at IS NOT NULL AS is_closed
    FROM accounts a JOIN customers c ON c.id = a.customer_id
    WHERE a.kind = 'funding' AND ($1::text[] IS NULL OR c.key = ANY($1))
    ORDER BY c.key, a.key
"""
# The customers with the words are found first: there are as many as accounts, and looking each account's up would read all of them.
_ALL_ACCOUNTS = """
    WITH named AS MATERIALIZED (
        SELECT id FROM customers WHERE $1 <> '' AND (position($1 IN lower(key)) > 0 OR position($1 IN lower(name)) > 0)
    ), page AS MATERIALIZED (
        SELECT * FROM accounts
        WHERE kind = 'funding' AND id > $2
          AND ($1 = '' OR customer_id IN (SELECT id FROM named) OR position($1 IN lower(name)) > 0)
        ORDER BY id LIMIT $3)
    SELECT a.id, c.key AS customer, c.name AS customer_name, a.name, a.environment, a.currency, a.balance_minor,
           a.closed_at IS NOT NULL AS is_closed
    FROM page a JOIN customers c ON c.id = a.customer_id ORDER BY a.id
"""
_FIND_FUNDING_ACCOUNT = """
    SELECT a.id, a.key, a.name, a.currency, a.environment, a.customer_id, c.key AS customer
    FROM accounts a JOIN customers c ON c.id = a.customer_id
    WHERE a.kind = 'funding' AND ((a.key = $1 AND ($2 = '' OR c.key = $2)) OR ($2 = '' AND a.id::text = $1))
    ORDER BY a.id
"""
_SEEN_ACCOUNTS = """
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
"""
_LOCK_CUSTOMER = "SELECT FROM customers WHERE id = $1 FOR NO KEY UPDATE"
_LOCK_ACCOUNT = """
    SELECT customer_id, environment, id, name, currency, is_master, balance_minor, closed_at FROM accounts
    WHERE customer_id = $1 AND environment = $2 AND id = $3 AND kind = 'funding' FOR NO KEY UPDATE
"""
_ASSIGNABLE = """
    SELECT id, name, currency, open_to_all, id = ANY($3::int[]) AS is_assigned FROM accounts
    WHERE customer_id = $1 AND environment = $2 AND kind = 'funding' AND closed_at IS NULL ORDER BY is_master DESC, id
"""
_TAKE_ALL = "DELETE FROM account_users WHERE customer_id = $1 AND user_id = $2"
# Removes assigned service accounts that are not in the new list.
_UNASSIGN = """
    DELETE FROM account_service_accounts AS saved
    WHERE account_id = ANY($1::int[]) AND NOT EXISTS (
        SELECT FROM unnest($2::int[], $3::int[], $4::int[]) AS new (customer_id, account_id, service_account_id)
        WHERE new.customer_id = saved.customer_id AND new.account_id = saved.account_id
          AND new.service_account_id = saved.service_account_id)
"""
_ASSIGN = Fragment("INSERT INTO account_service_accounts (customer_id, account_id, service_account_id)")
_UNLESS_ASSIGNED = Fragment("ON CONFLICT DO NOTHING")


class FundingAccount(msgspec.Struct, frozen=True):
    """A funding account that a caller may draw from."""

    id: int
    name: str
    is_master: bool
    currency: str
    currency_id: int  # ISO 4217 numeric
    balance_minor: int


class SeenAccount(msgspec.Struct, frozen=True):
    """A funding account as the customer's people see it."""

    id: int
    name: str
    is_master: bool
    open_to_all: bool
    service_accounts: list[str]  # names of the service accounts it is assigned to
    people: list[str]
    currency: str
    balance_minor: int
    is_closed: bool
    below_minor: int | None  # people are notified when the balance is below this; None if nobody is

    @property
    def is_low(self) -> bool:
        """Whether the balance is below the amount at which people are notified."""
        return self.below_minor is not None and self.balance_minor < self.below_minor and not self.is_closed


class OperatorAccount(msgspec.Struct, frozen=True):
    """A funding account as an operator sees it."""

    id: int
    customer: str
    customer_id: int
    key: str
    name: str
    environment: str
    is_master: bool
    open_to_all: bool
    service_accounts: list[str]  # keys
    people: list[str]  # e-mail addresses
    currency: str
    balance_minor: int
    is_closed: bool


class ListedAccount(msgspec.Struct, frozen=True):
    """A funding account in a list of all customers'."""

    id: int
    customer: str
    customer_name: str
    name: str
    environment: str
    currency: str
    balance_minor: int
    is_closed: bool


class Assignable(msgspec.Struct, frozen=True):
    """A funding account, and whether it is assigned to the holder."""

    id: int
    name: str
    currency: str
    open_to_all: bool
    is_assigned: bool


async def list_funding_accounts(connection: Connection, principal: Principal) -> list[FundingAccount]:
    """Returns the open accounts that a caller may draw from, in its environment: those open to all and those assigned to it.

    An administrator draws from every account.
    """
    rows = await connection.fetch(
        _FUNDING_ACCOUNTS,
        principal.customer_id,
        principal.environment,
        principal.service_account_id,
        principal.draws_on_all,
        principal.user_id,
    )
    return [FundingAccount(**row) for row in rows]


async def list_unfunded(connection: Connection, service_account_ids: Sequence[int]) -> list[tuple[int, list[str]]]:
    """Returns which of these service accounts cannot send because no funding account is open to them, each with the environments.

    Only active service accounts count, of customers that pay from a balance and whose plan includes the API. The environments are
    those they have an API key in, or both when they have no key and no funding account at all.
    """
    rows = await connection.fetch(_UNFUNDED, service_account_ids)
    return [(row["id"], row["keyed"] or ["production", "staging"]) for row in rows if row["keyed"] or row["idle"]]


async def list_accounts(connection: Connection, customers: Collection[str] | None = None) -> list[OperatorAccount]:
    """Returns all funding accounts, or those of the customers of these keys, by customer and key."""
    rows = await connection.fetch(_LISTED_ACCOUNTS, customers)
    return [OperatorAccount(**row) for row in rows]


def unspendable(accounts: Iterable[OperatorAccount], funding: str) -> dict[str, int]:
    """Returns the money in production that a customer with that `funding` cannot spend, in minor units by currency."""
    held = Counter[str]()
    for account in accounts:
        if not names_account(funding) and account.environment == "production":
            held[account.currency] += account.balance_minor
    return dict(+held)


def warn_of_unspendable(customer: str, held: Mapping[str, int], remedy: str) -> str:
    """Returns a warning of money that an invoiced customer cannot spend. `remedy` is what lets it be spent again."""
    sums = ", ".join(label(minor, currency) for currency, minor in sorted(held.items()))
    return (
        f"the accounts of {customer} hold {sums}, which its orders do not use while it is invoiced. The money stays there, and refunds "
        f"of earlier orders are added to it. {remedy} lets it be spent again."
    )


async def list_all_accounts(connection: Connection, words: str, after: int, most: int) -> list[ListedAccount]:
    """Returns funding accounts of all customers by id, after that id, with `words` in the name of customer or account."""
    return [ListedAccount(*row) for row in await connection.fetch(_ALL_ACCOUNTS, words.lower(), after, most)]


async def find_funding_account(connection: Connection, name: str) -> Row:
    """Returns the account named by an id, a key, or customer/key: id, key, name, currency, environment, customer (key), customer_id.

    Raises OperatorError for none and for several.
    """
    customer, _, key = name.rpartition("/")
    rows = await connection.fetch(_FIND_FUNDING_ACCOUNT, key, customer)
    if not rows:
        raise OperatorError(f"there is no funding account {name!r}")
    if len(rows) > 1:
        names = ", ".join(f"{row['customer']}/{key} (id {row['id']})" for row in rows)
        raise OperatorError(f"{name!r} could be any of {names}")
    return rows[0]


async def list_seen_accounts(connection: Connection, place: Place, *, user_id: int | None) -> list[SeenAccount]:
    """Returns a customer's funding accounts in an environment, master accounts first and closed ones last.

    With a user, only the open accounts that the user may use.
    """
    rows = await connection.fetch(_SEEN_ACCOUNTS, *place, user_id)
    return [SeenAccount(**row) for row in rows]


async def find_seen_account(
    connection: Connection, place: Place, account_id: int, *, user_id: int | None
) -> SeenAccount:
    """Returns one of the accounts that `list_seen_accounts` lists. Raises NotFound."""
    for account in await list_seen_accounts(connection, place, user_id=user_id):
        if account.id == account_id:
            return account
    raise no_such_account()


def no_such_account() -> NotFound:
    """Returns the error for an account that is unknown or another customer's."""
    return NotFound("There is no such funding account.")


async def lock_account(connection: Connection, place: Place, account_id: int) -> Row:
    """Locks a customer, then its funding account, until the transaction ends. Raises NotFound."""
    # Locks the customer first, as creating an account does, so that two accounts cannot get the same name.
    await connection.execute(_LOCK_CUSTOMER, place[0])
    row = await connection.fetchrow(_LOCK_ACCOUNT, *place, account_id)
    if row is None:
        raise no_such_account()
    return row


# Returns whether another open account of the environment has this name.
NAME_TAKEN = """
    SELECT EXISTS (SELECT FROM accounts WHERE customer_id = $1 AND environment = $2 AND kind = 'funding'
                   AND lower(name) = lower($3) AND closed_at IS NULL AND id <> $4)
"""
INSERT_ACCOUNT = """
    INSERT INTO accounts (customer_id, environment, kind, key, name, currency)
    VALUES ($1, $2, 'funding', $3, $4, $5) RETURNING id
"""
RENAME_ACCOUNT = "UPDATE accounts SET name = $3 WHERE customer_id = $1 AND id = $2"
CLOSE_ACCOUNT = "UPDATE accounts SET closed_at = clock_now() WHERE customer_id = $1 AND id = $2"
OPEN_ACCOUNT = "UPDATE accounts SET closed_at = NULL WHERE customer_id = $1 AND id = $2"
# Returns whether a top-up of an account waits for its bank transfer.
TOP_UP_WAITS = """
    SELECT EXISTS (SELECT FROM top_ups WHERE customer_id = $1 AND environment = $2 AND account_id = $3
                   AND state = 'waiting' AND expires_at > clock_now())
"""


class Holder(Enum):
    """The kind of holder that an account is assigned to. `lock` also returns the holder's name in the audit log; the others are about assignments."""

    SERVICE_ACCOUNT = (
        "SELECT 'service account ' || id FROM service_accounts WHERE customer_id = $1 AND id = $2 FOR NO KEY UPDATE",
        "SELECT account_id FROM account_service_accounts WHERE customer_id = $1 AND service_account_id = $2",
        """
        DELETE FROM account_service_accounts
        WHERE customer_id = $1 AND service_account_id = $2 AND account_id = ANY($3::int[])
        """,
        Fragment("INSERT INTO account_service_accounts (customer_id, service_account_id, account_id)"),
    )
    PERSON = (
        "SELECT email FROM users WHERE customer_id = $1 AND id = $2 AND is_active FOR NO KEY UPDATE",
        "SELECT account_id FROM account_users WHERE customer_id = $1 AND user_id = $2",
        "DELETE FROM account_users WHERE customer_id = $1 AND user_id = $2 AND account_id = ANY($3::int[])",
        Fragment("INSERT INTO account_users (customer_id, user_id, account_id)"),
    )

    def __init__(self, lock: str, read: str, delete: str, insert: Fragment) -> None:
        self.lock, self.read, self.delete, self.insert = lock, read, delete, insert


async def list_assignable(connection: Connection, holder: Holder, place: Place, holder_id: int) -> list[Assignable]:
    """Returns a customer's open funding accounts in an environment, master accounts first, each with whether the holder may use it."""
    assigned = [row[0] for row in await connection.fetch(holder.read, place[0], holder_id)]
    rows = await connection.fetch(_ASSIGNABLE, *place, assigned)
    return [Assignable(**row) for row in rows]


async def change_assignments(
    connection: Connection,
    holder: Holder,
    customer_id: int,
    holder_id: int,
    removed: Collection[int],
    added: Collection[int],
) -> None:
    """Takes accounts, by id, from a holder and gives it others."""
    await connection.execute(holder.delete, customer_id, holder_id, list(removed))
    rows = [(customer_id, holder_id, account_id) for account_id in added]
    await insert(connection, holder.insert, rows, conflict=_UNLESS_ASSIGNED)


async def take_all_accounts(connection: Connection, customer_id: int, user_id: int) -> None:
    """Takes all accounts from a person, so that a later invitation starts without any."""
    await connection.execute(_TAKE_ALL, customer_id, user_id)


# The columns that loading a seed file saves, by customer and key. Balances are not among them.
ACCOUNTS = Table(
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
    protected="'office' = (SELECT managed FROM customers WHERE customers.id = saved.customer_id)",
)


async def assign(connection: Connection, account_ids: Sequence[int], assigned: Sequence[tuple[int, int, int]]) -> None:
    """Makes these the only service accounts assigned to these accounts: customer, account and service account, by id."""
    columns = tuple([each[column] for each in assigned] for column in range(3))
    await connection.execute(_UNASSIGN, account_ids, *columns)
    await insert(connection, _ASSIGN, assigned, conflict=_UNLESS_ASSIGNED)
