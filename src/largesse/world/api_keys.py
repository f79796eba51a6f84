"""Loading API keys: the missing ones are made, those that were deleted stay so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from largesse.database.pool import Connection
from largesse.identity.key_records import deleted_keys
from largesse.identity.saving import save_keys
from largesse.identity.secret import new_secret, secret_hash
from largesse.world.document import World
from largesse.world.saving import NewRow, save


@dataclass(frozen=True, slots=True)
class SavedKeys:
    """The secrets of the keys that were made, and what to say of those that were not, each with its place in the file."""

    secrets: dict[tuple[str, str], str]  # by the keys of the customer and of the API key
    warnings: list[str]


async def save_api_keys(
    connection: Connection,
    world: World,
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
