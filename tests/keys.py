"""API keys of tests, named by the keys of their customer and service account."""

from typing import Any

from largesse.customers.customer_store import find_service_account
from largesse.customers.key_store import add_key
from largesse.db.pool import Connection


async def create_key(
    connection: Connection, *, customer: str, service_account: str, environment: str, key: str, **restrictions: Any
) -> tuple[int, str]:
    """Creates an API key; returns its id and its secret."""
    account = await find_service_account(connection, customer, service_account)
    return await add_key(
        connection,
        customer_id=account.customer_id,
        service_account_id=account.id,
        environment=environment,
        key=key,
        **restrictions,
    )
