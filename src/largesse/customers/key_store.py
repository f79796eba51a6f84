"""The SQL of API keys: creating, listing, restricting and deleting them. The secret of a key is never stored, only its hash."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from largesse.base.errors import NotFound, OperatorError
from largesse.base.settings import Network
from largesse.customers.authenticator import new_secret, secret_hash, well_formed
from largesse.db.pool import Connection, Row

_ADD = """
    INSERT INTO api_keys (customer_id, service_account_id, key, environment, hash, scopes, networks, made_by, replaces)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
    ON CONFLICT (customer_id, key) WHERE deleted_at IS NULL DO NOTHING
    RETURNING id
"""
_EXISTS = "SELECT EXISTS (SELECT FROM api_keys WHERE hash = $1 AND environment = $2)"
_LIST = """
    SELECT k.id, k.customer_id, c.key AS customer, k.key, s.key AS service_account,
           s.name AS service_account_name, k.environment, k.scopes, k.networks,
           k.created_at, u.name AS made_by, k.replaces, k.last_seen_at, host(k.last_seen_address) AS last_seen_address,
           k.deleted_at
    FROM api_keys k
    JOIN customers c ON c.id = k.customer_id
    JOIN service_accounts s ON s.id = k.service_account_id
    LEFT JOIN users u ON u.id = k.made_by
    WHERE ($1::text IS NULL OR c.key = $1) AND ($2::int IS NULL OR k.customer_id = $2) AND (k.deleted_at IS NULL OR $3)
      AND ($4::int IS NULL OR k.id = $4) AND ($5::int IS NULL OR k.made_by = $5)
    ORDER BY k.id
"""
_LOCK = """
    SELECT customer_id, service_account_id, environment, key, scopes, networks, replaces FROM api_keys
    WHERE id = $1 AND deleted_at IS NULL FOR NO KEY UPDATE
"""
_FIND_REPLACEMENT = "SELECT id FROM api_keys WHERE customer_id = $1 AND replaces = $2 AND deleted_at IS NULL"
_DELETED = """
    SELECT customer_id, key, max(deleted_at) AS deleted_at FROM api_keys
    JOIN (SELECT DISTINCT * FROM unnest($1::int[], $2::text[]) AS n (customer_id, key)) AS names USING (customer_id, key)
    GROUP BY customer_id, key HAVING count(*) = count(deleted_at)
"""
_NARROW = """
    WITH locked AS MATERIALIZED (SELECT id FROM api_keys WHERE id = $1 AND deleted_at IS NULL FOR UPDATE)
    UPDATE api_keys SET scopes = $2, networks = $3 FROM locked WHERE api_keys.id = locked.id
"""
_DELETE = "UPDATE api_keys SET hash = NULL, deleted_at = clock_now() WHERE id = $1 AND deleted_at IS NULL"


class ApiKey(msgspec.Struct, frozen=True):
    """An API key without its secret."""

    id: int
    customer_id: int
    customer: str
    key: str
    service_account: str
    service_account_name: str
    environment: str
    scopes: Sequence[str] | None  # None: all scopes
    networks: Sequence[Network] | None  # None: all networks
    created_at: datetime
    made_by: str | None  # the name of the person who created it; None: an operator created it
    replaces: int | None  # the id of the key that it replaces
    last_seen_at: datetime | None
    last_seen_address: str | None
    deleted_at: datetime | None


class NameTaken(OperatorError):
    """The customer has an API key with that name."""

    def __init__(self, key: str) -> None:
        super().__init__(f"the customer already has an API key {key!r}")


async def add_key(  # noqa: PLR0913 - the columns of a key, each by its name
    connection: Connection,
    *,
    customer_id: int,
    service_account_id: int,
    environment: str,
    key: str,
    scopes: Sequence[str] | None = None,
    networks: Sequence[Network] | None = None,
    made_by: int | None = None,
    replaces: int | None = None,
) -> tuple[int, str]:
    """Creates an API key and returns its id and its secret, which cannot be read again. Raises NameTaken.

    `scopes` and `networks` restrict the key unless they are None. `made_by` is the id of a user, `replaces` the id of the key that it
    replaces. The name of a deleted key can be used again.
    """
    secret = new_secret(environment)
    key_id: int | None = await connection.fetchval(
        _ADD,
        customer_id,
        service_account_id,
        key,
        environment,
        secret_hash(secret),
        scopes,
        networks,
        made_by,
        replaces,
    )
    if key_id is None:
        raise NameTaken(key)
    return key_id, secret


async def key_exists(connection: Connection, secret: str, environment: str) -> bool:
    """Returns whether `secret` belongs to an API key of this environment."""
    return well_formed(secret) and await connection.fetchval(_EXISTS, secret_hash(secret), environment)


async def list_keys(
    connection: Connection,
    customer: str | None = None,
    *,
    customer_id: int | None = None,
    key_id: int | None = None,
    made_by: int | None = None,
    with_deleted: bool = False,
) -> list[ApiKey]:
    """Returns API keys, oldest first: all, those of a customer (by key or id), the one with an id, or those that a user created."""
    rows = await connection.fetch(_LIST, customer, customer_id, with_deleted, key_id, made_by)
    return [ApiKey(**row) for row in rows]


async def lock_key(connection: Connection, key_id: int) -> Row:
    """Returns the columns of a key that a second key copies, and locks the key. Raises NotFound for an unknown or deleted key."""
    row = await connection.fetchrow(_LOCK, key_id)
    if row is None:
        raise no_such_key(key_id)
    return row


async def find_replacement(connection: Connection, customer_id: int, key_id: int) -> int | None:
    """Returns the id of the key that replaces another; None if there is none."""
    replacement_id: int | None = await connection.fetchval(_FIND_REPLACEMENT, customer_id, key_id)
    return replacement_id


async def deleted_keys(connection: Connection, names: Sequence[tuple[int, str]]) -> dict[tuple[int, str], datetime]:
    """Returns when keys were deleted, by customer id and name. Leaves out names that were never used or are in use."""
    rows = await connection.fetch(_DELETED, [customer_id for customer_id, _ in names], [key for _, key in names])
    return {(row["customer_id"], row["key"]): row["deleted_at"] for row in rows}


async def narrow_key(
    connection: Connection, key_id: int, *, scopes: Sequence[str] | None, networks: Sequence[Network] | None
) -> None:
    """Sets the scopes and networks of a key; None means all. Raises NotFound for an unknown or deleted key.

    Waits for transactions that write for the key. They finish with its old scopes and networks.
    """
    narrowed = await connection.execute(_NARROW, key_id, scopes, networks)
    if narrowed == "UPDATE 0":
        raise no_such_key(key_id)


async def delete_key(connection: Connection, key_id: int) -> None:
    """Deletes a key. Requests under way finish or are refused. Raises NotFound for an unknown or deleted key.

    Its row stays, with its name and without its hash.
    """
    deleted = await connection.execute(_DELETE, key_id)
    if deleted == "UPDATE 0":
        raise no_such_key(key_id)


def no_such_key(key_id: int) -> NotFound:
    """Returns the error for an id that belongs to no key."""
    return NotFound(f"there is no API key {key_id}")
