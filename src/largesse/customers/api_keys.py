"""API keys as people see them: making, listing, narrowing, replacing and deleting them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from largesse.base.errors import OperatorError
from largesse.base.settings import Network
from largesse.customers.authenticator import new_secret, secret_hash, well_formed
from largesse.db.pool import Connection

MOST_NAME = 100
_NUMBER = re.compile(r" [0-9]{1,3}$")
_MOST_NUMBER = 200


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """An API key as an operator sees it: never its secret."""

    id: int
    customer: str
    key: str
    service_account: str
    environment: str
    scopes: Sequence[str] | None  # None: all
    networks: Sequence[Network] | None  # None: everywhere
    created_at: datetime
    made_by: str | None  # the name of the person who made it; None: an operator
    replaces: int | None  # the id of the key whose place it is to take
    last_seen_at: datetime | None
    last_seen_address: str | None
    deleted_at: datetime | None


class NamedKey(NamedTuple):
    """Whose key it is that was changed or deleted, and what it is called."""

    customer_id: int
    environment: str
    key: str


class SecondKey(NamedTuple):
    """A key that was made to replace another, and its secret, told only here."""

    id: int
    key: str
    secret: str
    first: NamedKey


class NameTaken(Exception):
    """The customer has an API key of that name."""


async def add_key(  # noqa: PLR0913 - what a key is, each by its name
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
    """Makes an API key called `key` for a service account of the customer; returns its id and its secret, told only here.

    It is for those `scopes` alone, and for use from those `networks`, where they are given. `made_by` is the user who asks for it,
    `replaces` the key whose place it is to take. Raises NameTaken; one that was deleted leaves its name free.
    """
    secret = new_secret(environment)
    key_id: int | None = await connection.fetchval(
        """
        INSERT INTO api_keys (customer_id, service_account_id, key, environment, hash, scopes, networks, made_by, replaces)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
        ON CONFLICT (customer_id, key) WHERE deleted_at IS NULL DO NOTHING
        RETURNING id
        """,
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
        raise NameTaken
    return key_id, secret


async def create_key(
    connection: Connection,
    *,
    customer: str,
    service_account: str,
    environment: str,
    key: str,
    scopes: Sequence[str] | None = None,
    networks: Sequence[Network] | None = None,
) -> tuple[int, str]:
    """What `add_key` does, for an operator, by the keys of the customer and the service account.

    Raises OperatorError when one of them is unknown or the customer has a key of that name.
    """
    owner = await connection.fetchrow(
        """
        SELECT c.id AS customer_id, s.id AS service_account_id
        FROM customers c LEFT JOIN service_accounts s ON s.customer_id = c.id AND s.key = $2
        WHERE c.key = $1
        """,
        customer,
        service_account,
    )
    if owner is None:
        raise OperatorError(f"there is no customer {customer!r}")
    if owner["service_account_id"] is None:
        raise OperatorError(f"customer {customer!r} has no service account {service_account!r}")
    try:
        return await add_key(connection, **owner, environment=environment, key=key, scopes=scopes, networks=networks)
    except NameTaken:
        raise OperatorError(f"customer {customer!r} already has an API key {key!r}") from None


async def key_holds(connection: Connection, secret: str, environment: str) -> bool:
    """Whether `secret` is that of an API key of this environment."""
    return well_formed(secret) and await connection.fetchval(
        "SELECT EXISTS (SELECT FROM api_keys WHERE hash = $1 AND environment = $2)", secret_hash(secret), environment
    )


async def list_keys(
    connection: Connection,
    customer: str | None = None,
    *,
    customer_id: int | None = None,
    key_id: int | None = None,
    with_deleted: bool = False,
) -> list[KeyRecord]:
    """All API keys, or those of one customer, by its key or id, or the one of an id, oldest first; those that were deleted only when asked for."""
    rows = await connection.fetch(
        """
        SELECT k.id, c.key AS customer, k.key, s.key AS service_account, k.environment, k.scopes, k.networks,
               k.created_at, u.name AS made_by, k.replaces, k.last_seen_at, host(k.last_seen_address) AS last_seen_address,
               k.deleted_at
        FROM api_keys k
        JOIN customers c ON c.id = k.customer_id
        JOIN service_accounts s ON s.id = k.service_account_id
        LEFT JOIN users u ON u.id = k.made_by
        WHERE ($1::text IS NULL OR c.key = $1) AND ($2::int IS NULL OR k.customer_id = $2) AND (k.deleted_at IS NULL OR $3)
          AND ($4::int IS NULL OR k.id = $4)
        ORDER BY k.id
        """,
        customer,
        customer_id,
        with_deleted,
        key_id,
    )
    return [KeyRecord(**row) for row in rows]


async def find_key(connection: Connection, key_id: int) -> KeyRecord:
    """The API key of an id. Raises OperatorError for an unknown one, or a deleted key."""
    found = await list_keys(connection, key_id=key_id)
    if not found:
        raise OperatorError(f"there is no API key {key_id}")
    return found[0]


async def add_second_key(
    connection: Connection, key_id: int, *, customer_id: int | None = None, made_by: int | None = None
) -> SecondKey:
    """Makes a key beside another, which it is to replace: for the same, from the same networks, for the same service account.

    Both hold until the first is deleted. Call it inside a transaction. Raises OperatorError for a key that is not there, or not that customer's,
    and for one that has a second one already.
    """
    row = await connection.fetchrow(
        """
        SELECT customer_id, service_account_id, environment, key, scopes, networks, replaces FROM api_keys
        WHERE id = $1 AND deleted_at IS NULL AND ($2::int IS NULL OR customer_id = $2)
        FOR NO KEY UPDATE
        """,
        key_id,
        customer_id,
    )
    if row is None:
        raise OperatorError(f"there is no API key {key_id}")
    # Locked above, so that two who ask at the same time do not both get one.
    second = await connection.fetchval(
        "SELECT id FROM api_keys WHERE customer_id = $1 AND replaces = $2 AND deleted_at IS NULL",
        row["customer_id"],
        key_id,
    )
    if second is not None:
        raise OperatorError(f"API key {second} replaces it already")
    # One that is a second key itself has its number from here; any other's is part of its name.
    plain = row["key"] if row["replaces"] is None else _NUMBER.sub("", row["key"])
    for number in range(2, _MOST_NUMBER):
        name = numbered(plain, number)
        try:
            made_id, secret = await add_key(connection, **{**row, "key": name, "replaces": key_id}, made_by=made_by)
        except NameTaken:
            continue
        return SecondKey(made_id, name, secret, NamedKey(row["customer_id"], row["environment"], row["key"]))
    raise OperatorError(f"API keys are called as API key {key_id} up to number {_MOST_NUMBER}")


def numbered(name: str, number: int) -> str:
    """A name with a number after it."""
    suffix = f" {number}"
    return name[: MOST_NAME - len(suffix)] + suffix


async def deleted_keys(connection: Connection, names: Sequence[tuple[int, str]]) -> dict[tuple[int, str], datetime]:
    """When the keys of those names, each with its customer's id, were deleted; those that are there or never were are left out."""
    rows = await connection.fetch(
        """
        SELECT customer_id, key, max(deleted_at) AS deleted_at FROM api_keys
        JOIN (SELECT DISTINCT * FROM unnest($1::int[], $2::text[]) AS n (customer_id, key)) AS names USING (customer_id, key)
        GROUP BY customer_id, key HAVING count(*) = count(deleted_at)
        """,
        [customer_id for customer_id, _ in names],
        [key for _, key in names],
    )
    return {(row["customer_id"], row["key"]): row["deleted_at"] for row in rows}


async def narrow_key(
    connection: Connection, key_id: int, *, scopes: Sequence[str] | None, networks: Sequence[Network] | None
) -> NamedKey:
    """Says what a key is for and from where it may be used; None: everything, everywhere.

    What is under way with it is finished or held to that: this waits for transactions that write for the key. Raises OperatorError for an unknown id, or a deleted key.
    """
    narrowed = await connection.fetchrow(
        """
        WITH locked AS MATERIALIZED (SELECT id FROM api_keys WHERE id = $1 AND deleted_at IS NULL FOR UPDATE)
        UPDATE api_keys SET scopes = $2, networks = $3 FROM locked WHERE api_keys.id = locked.id
        RETURNING customer_id, environment, key
        """,
        key_id,
        scopes,
        networks,
    )
    if narrowed is None:
        raise OperatorError(f"there is no API key {key_id}")
    return NamedKey(**narrowed)


async def delete_key(connection: Connection, key_id: int) -> NamedKey:
    """Deletes a key: what is under way with it is finished or refused, and nothing is done with it afterwards.

    Its row stays, with its name and without its hash. Raises OperatorError for an unknown id, or one deleted before.
    """
    deleted = await connection.fetchrow(
        """
        UPDATE api_keys SET hash = NULL, deleted_at = clock_now() WHERE id = $1 AND deleted_at IS NULL
        RETURNING customer_id, environment, key
        """,
        key_id,
    )
    if deleted is None:
        raise OperatorError(f"there is no API key {key_id}")
    return NamedKey(**deleted)
