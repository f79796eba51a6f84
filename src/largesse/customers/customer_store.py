"""The SQL of customers and service accounts. Also declares the tables of people and API keys for seed files."""

import re
from collections.abc import Collection, Mapping
from datetime import datetime

import msgspec

from largesse.base.errors import OperatorError, existing
from largesse.customers.restrictions import Limit, read_limits, write_limits
from largesse.db.fragments import Fragment, compose
from largesse.db.pool import Connection, Row
from largesse.db.statements import Table

_CUSTOMERS_COUNTED = Fragment("""
    SELECT id, key, name, plan, funding,
           (SELECT count(*) FROM service_accounts s WHERE s.customer_id = c.id) AS service_accounts,
           (SELECT count(*) FROM api_keys k WHERE k.customer_id = c.id) AS api_keys,
           created_at
    FROM customers c
""")
_LIST = compose("{customers} ORDER BY key", customers=_CUSTOMERS_COUNTED)
_ONE = compose("{customers} WHERE id = $1", customers=_CUSTOMERS_COUNTED)
_NEWEST = "SELECT id, key, name, plan, funding, created_at FROM customers WHERE id < $1 ORDER BY id DESC LIMIT $2"
# `search_customers` makes $3. `id + 0` keeps the planner from reading all customers by id to find the few with a rare word.
_SEARCH = """
    SELECT id, key, name, plan, funding, created_at FROM customers
    WHERE to_tsvector('simple', name || ' ' || key) @@ to_tsquery('simple', $3) AND id < $1 ORDER BY id + 0 DESC LIMIT $2
"""
_INACTIVE_USERS = "SELECT customer_id, lower(email) FROM users WHERE customer_id = ANY($1::int[]) AND NOT is_active"
_INACTIVE_SERVICE_ACCOUNTS = (
    "SELECT customer_id, key FROM service_accounts WHERE customer_id = ANY($1::int[]) AND NOT active"
)
_HAS_ANY = "SELECT EXISTS (SELECT FROM customers)"
_KEYS_AMONG = "SELECT key FROM customers WHERE key = ANY($1::text[])"
_FIND = "SELECT id FROM customers WHERE key = $1"
_ADD = (
    "INSERT INTO customers (key, name, plan, funding) VALUES ($1, $2, $3, $4) ON CONFLICT (key) DO NOTHING RETURNING id"
)
_LOCK = "SELECT FROM customers WHERE id = $1 FOR NO KEY UPDATE"
UPDATE_CUSTOMER = "UPDATE customers SET name = $2, plan = $3, funding = $4 WHERE id = $1"
SET_REQUIRES_SECOND_STEP = "UPDATE customers SET requires_second_step = $2 WHERE id = $1"
_CONFIRMED_ABOVE = "SELECT confirm_above FROM customers WHERE id = $1"
_SET_CONFIRMED_ABOVE = "UPDATE customers SET confirm_above = $2 WHERE id = $1"
_FOLLOW_UP = "SELECT follow_up::text FROM customers WHERE id = $1"
_TAKES_NOTES = "SELECT takes_notes FROM customers WHERE id = $1"
_SET_TAKES_NOTES = "UPDATE customers SET takes_notes = $2 WHERE id = $1"
_SET_FOLLOW_UP = "UPDATE customers SET follow_up = $2::text::jsonb WHERE id = $1"
_LIST_SERVICE_ACCOUNTS = """
    SELECT s.id, s.customer_id, c.key AS customer, s.key, s.name, s.active,
           (SELECT count(*) FROM api_keys k WHERE k.customer_id = s.customer_id AND k.service_account_id = s.id
            AND ($2::text IS NULL OR k.environment = $2) AND k.deleted_at IS NULL) AS api_keys, s.limits
    FROM service_accounts s JOIN customers c ON c.id = s.customer_id
    WHERE ($1::int IS NULL OR s.customer_id = $1) AND ($3::text IS NULL OR c.key = $3)
    ORDER BY c.key, lower(s.name), s.id
"""
ADD_SERVICE_ACCOUNT = "INSERT INTO service_accounts (customer_id, key, name) VALUES ($1, $2, $3) RETURNING id"
_LOCK_SERVICE_ACCOUNT = (
    "SELECT name, active, limits FROM service_accounts WHERE customer_id = $1 AND id = $2 FOR NO KEY UPDATE"
)
SET_ACTIVE = "UPDATE service_accounts SET active = $3 WHERE customer_id = $1 AND id = $2"
_SET_LIMITS = "UPDATE service_accounts SET limits = $3 WHERE customer_id = $1 AND id = $2"
_CURRENCIES = "SELECT code FROM currencies ORDER BY code"
_CURRENCIES_HELD = "SELECT DISTINCT currency FROM accounts WHERE customer_id = $1"
_IS_CURRENCY = "SELECT EXISTS (SELECT FROM currencies WHERE code = $1)"
_HIGHEST = 2**31 - 1
_WORD = re.compile(r"[^\W_]+")
_MOST_NUMBERED = 1_000
_MOST_WORDS = 8  # words of a search that count; further ones are ignored


class ListedCustomer(msgspec.Struct, frozen=True):
    """A customer in a list."""

    id: int
    key: str
    name: str
    plan: str  # starter, pro or enterprise
    funding: str  # balance or invoiced
    created_at: datetime


class Customer(ListedCustomer, frozen=True):
    """A customer, with how many service accounts and API keys it has."""

    service_accounts: int
    api_keys: int


class ServiceAccount(msgspec.Struct, frozen=True):
    """A service account, with the number of its API keys and its limits."""

    id: int
    customer_id: int
    customer: str
    key: str
    name: str
    active: bool
    api_keys: int
    limits: Mapping[str, Limit]  # limits by currency


async def list_customers(connection: Connection) -> list[Customer]:
    """Returns all customers, by key."""
    rows = await connection.fetch(_LIST)
    return [Customer(**row) for row in rows]


async def has_customers(connection: Connection) -> bool:
    """Returns whether there is a customer."""
    found: bool = await connection.fetchval(_HAS_ANY)
    return found


async def search_customers(
    connection: Connection, search: str, *, before: int = _HIGHEST, limit: int = 50
) -> list[ListedCustomer]:
    """Returns the newest customers with ids below `before` whose name or key matches a search.

    Each word of the search must be the beginning of a word there. An empty search finds all.
    """
    words = _WORD.findall(search.lower())[:_MOST_WORDS]
    if not words and search.strip():
        return []
    query = (_SEARCH, " & ".join(f"'{word}':*" for word in words)) if words else (_NEWEST,)
    rows = await connection.fetch(query[0], before, limit, *query[1:])
    return [ListedCustomer(**row) for row in rows]


async def read_customer(connection: Connection, customer_id: int) -> Customer:
    """Returns a customer. Raises NotFound."""
    return Customer(**existing(await connection.fetchrow(_ONE, customer_id), "There is no such customer."))


async def numbered_keys(connection: Connection, key: str) -> set[str]:
    """Returns the keys in use among `key` and `key` with a number up to _MOST_NUMBERED."""
    keys = [key, *(f"{key}-{number}" for number in range(2, _MOST_NUMBERED + 1))]
    return {row["key"] for row in await connection.fetch(_KEYS_AMONG, keys)}


async def find_customer(connection: Connection, key: str) -> int:
    """Returns the id of the customer with a key. Raises OperatorError for an unknown key."""
    customer_id: int | None = await connection.fetchval(_FIND, key)
    if customer_id is None:
        raise OperatorError(f"there is no customer {key!r}")
    return customer_id


async def add_customer(connection: Connection, *, key: str, name: str, plan: str, funding: str) -> int | None:
    """Adds a customer and returns its id; None if the key is taken."""
    customer_id: int | None = await connection.fetchval(_ADD, key, name, plan, funding)
    return customer_id


async def lock_customer(connection: Connection, customer_id: int) -> None:
    """Locks a customer until the transaction ends, so that operations on its service accounts, programmes and terms take turns."""
    await connection.execute(_LOCK, customer_id)


async def confirmed_above(connection: Connection, customer_id: int) -> dict[str, int]:
    """Returns the amounts above which people must confirm who they are before they send, in minor units by currency."""
    amounts: str | None = await connection.fetchval(_CONFIRMED_ABOVE, customer_id)
    return {} if amounts is None else msgspec.json.decode(amounts, type=dict[str, int])


async def set_confirmed_above(connection: Connection, customer_id: int, amounts: Mapping[str, int]) -> None:
    """Saves the amounts that `confirmed_above` returns."""
    await connection.execute(
        _SET_CONFIRMED_ABOVE,
        customer_id,
        msgspec.json.encode(amounts, order="deterministic").decode() if amounts else None,
    )


async def find_follow_up(connection: Connection, customer_id: int) -> str | None:
    """Returns a customer's settings for unclaimed orders, as JSON; None if there are none."""
    stored: str | None = await connection.fetchval(_FOLLOW_UP, customer_id)
    return stored


async def set_follow_up(connection: Connection, customer_id: int, stored: str | None) -> None:
    """Saves the settings for unclaimed orders that `find_follow_up` returns."""
    await connection.execute(_SET_FOLLOW_UP, customer_id, stored)


async def takes_notes(connection: Connection, customer_id: int) -> bool:
    """Returns whether recipients of a customer's gifts may write a thank-you note."""
    return bool(await connection.fetchval(_TAKES_NOTES, customer_id))


async def set_takes_notes(connection: Connection, customer_id: int, taken: bool) -> None:
    """Sets whether recipients may write a thank-you note."""
    await connection.execute(_SET_TAKES_NOTES, customer_id, taken)


async def list_service_accounts(
    connection: Connection,
    customer_id: int | None = None,
    environment: str | None = None,
    *,
    customer: str | None = None,
) -> list[ServiceAccount]:
    """Returns all service accounts, or those of a customer (by id or key), by name. Counts the API keys of an environment, or of both."""
    rows = await connection.fetch(_LIST_SERVICE_ACCOUNTS, customer_id, environment, customer)
    return [ServiceAccount(**{**row, "limits": read_limits(row["limits"])}) for row in rows]


async def find_service_account(connection: Connection, customer: str, key: str) -> ServiceAccount:
    """Returns a service account by the key of its customer and its own key. Raises OperatorError if there is none."""
    for account in await list_service_accounts(connection, customer=customer):
        if account.key == key:
            return account
    raise OperatorError(f"customer {customer!r} has no service account {key!r}")


async def lock_service_account(connection: Connection, customer_id: int, account_id: int) -> Row:
    """Returns name, active and limits of a service account, and locks it. Raises NotFound unless it is the customer's."""
    return existing(
        await connection.fetchrow(_LOCK_SERVICE_ACCOUNT, customer_id, account_id), "There is no such service account."
    )


async def set_limits(connection: Connection, customer_id: int, account_id: int, limits: Mapping[str, Limit]) -> None:
    """Sets the limits of a service account, by currency."""
    await connection.execute(_SET_LIMITS, customer_id, account_id, write_limits(limits))


async def list_currencies(connection: Connection, customer_id: int) -> list[str]:
    """Returns the codes of all currencies. Those in which the customer has accounts come first."""
    rows = await connection.fetch(_CURRENCIES)
    held = await connection.fetch(_CURRENCIES_HELD, customer_id)
    own = {row["currency"] for row in held}
    return sorted((row["code"] for row in rows), key=lambda code: (code not in own, code))


async def require_currency(connection: Connection, currency: str) -> None:
    """Raises OperatorError for an unknown currency."""
    if not await connection.fetchval(_IS_CURRENCY, currency):
        raise OperatorError(f"there is no currency {currency!r}")


async def inactive_users(connection: Connection, customer_ids: Collection[int]) -> set[tuple[int, str]]:
    """Returns the people who were removed from customers, by customer and address in lower case."""
    return {(row[0], row[1]) for row in await connection.fetch(_INACTIVE_USERS, customer_ids)}


async def inactive_service_accounts(connection: Connection, customer_ids: Collection[int]) -> set[tuple[int, str]]:
    """Returns the service accounts of customers that are switched off, by customer and key."""
    return {(row[0], row[1]) for row in await connection.fetch(_INACTIVE_SERVICE_ACCOUNTS, customer_ids)}


# The tables that a seed file fills. Customers are found by key, people by address, ignoring letter case, and API keys among those not deleted.
CUSTOMERS = Table(
    "customers",
    {"key": "text", "name": "text", "plan": "text", "funding": "text", "managed": "text"},
    match="saved.key = new.key",
    protected="saved.managed = 'office'",
)
# If the back office manages a customer, its people, service accounts and funding accounts stay as they are.
USERS = Table(
    "users",
    {"customer_id": "integer", "email": "text", "name": "text", "role": "text", "is_active": "boolean"},
    match="saved.customer_id = new.customer_id AND lower(saved.email) = lower(new.email)",
    protected="'office' = (SELECT managed FROM customers WHERE customers.id = saved.customer_id)",
)
SERVICE_ACCOUNTS = Table(
    "service_accounts",
    {"customer_id": "integer", "key": "text", "name": "text", "active": "boolean"},
    match="saved.customer_id = new.customer_id AND saved.key = new.key",
    protected="'office' = (SELECT managed FROM customers WHERE customers.id = saved.customer_id)",
)
API_KEYS = Table(
    "api_keys",
    {"customer_id": "integer", "key": "text", "service_account_id": "integer", "environment": "text", "hash": "bytea"},
    match="saved.customer_id = new.customer_id AND saved.key = new.key AND saved.deleted_at IS NULL",
    fixed=("service_account_id", "environment"),
    unwatched=("customer_id", "key", "hash"),
)
