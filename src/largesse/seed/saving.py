"""Handing what a file wants to the rooms that own the tables, and telling of what they refuse by its place in the file.

Loading API keys: the missing ones are made, those that were deleted stay so.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from largesse.base.errors import OperatorError
from largesse.customers.authenticator import new_secret, secret_hash
from largesse.customers.customer_store import save_keys
from largesse.customers.key_store import deleted_keys
from largesse.db.pool import Connection
from largesse.db.statements import FixedColumn, Saved, Values
from largesse.seed.document import Place, SeedFile

_FIELDS = {"customer_id": "customer", "service_account_id": "service_account"}  # as the file calls them

Saving = Callable[[Connection, Sequence[Values]], Awaitable[Saved]]


@dataclass(frozen=True, slots=True)
class NewRow:
    """A row as the file wants it, by column."""

    place: Place
    values: Values


async def save(connection: Connection, saving: Saving, rows: Sequence[NewRow]) -> Saved:
    """Has `saving` add the rows that are missing and overwrite those that differ.

    Raises OperatorError, with the place in the file, where a column would change that cannot.
    """
    try:
        return await saving(connection, [row.values for row in rows])
    except FixedColumn as fixed:
        was = f", and is {fixed.was}" if isinstance(fixed.was, str) else ""
        field = _FIELDS.get(fixed.column, fixed.column)
        mistake = rows[fixed.place].place.mistake(field, f"cannot change once it is loaded{was}")
        raise OperatorError(mistake) from None


@dataclass(frozen=True, slots=True)
class SavedKeys:
    """The secrets of the keys that were made, and what to say of those that were not, each with its place in the file."""

    secrets: dict[tuple[str, str], str]  # by the keys of the customer and of the API key
    warnings: list[str]


async def save_api_keys(
    connection: Connection,
    world: SeedFile,
    customers: Mapping[str, int],
    service_accounts: Mapping[tuple[str, str], int],
) -> SavedKeys:
    """Makes the keys that are missing and were not deleted; the ids of customers and service accounts are given."""
    described = [(customer, api_key) for customer in world.customers for api_key in customer.api_keys]
    deleted = await deleted_keys(connection, [(customers[c.key], api_key.key) for c, api_key in described])
    kept, warnings = [], []
    for customer, api_key in described:
        at = deleted.get((customers[customer.key], api_key.key))
        if at is None:
            kept.append((customer, api_key, new_secret(api_key.environment)))
        else:
            warnings.append(
                api_key.place.mistake(
                    "key",
                    f"the API key {api_key.key!r} was deleted on {at:%Y-%m-%d} and stays deleted: take it out of "
                    "the file, or give the new one another key",
                )
            )
    rows = [
        NewRow(
            api_key.place,
            {
                "customer_id": customers[customer.key],
                "key": api_key.key,
                "service_account_id": service_accounts[customer.key, api_key.service_account],
                "environment": api_key.environment,
                "hash": "\\x" + secret_hash(secret).hex(),
            },
        )
        for customer, api_key, secret in kept
    ]
    saved = await save(connection, save_keys, rows)
    secrets = {
        (customer.key, api_key.key): secret
        for (customer, api_key, secret), created in zip(kept, saved.created, strict=True)
        if created
    }
    return SavedKeys(secrets, warnings)
