"""Making the demo's world, and the text that welcomes to it."""

from __future__ import annotations

from largesse.database import Connection, connect_once
from largesse.database.migrate import upgrade
from largesse.demo.welcome import welcome
from largesse.errors import StartError
from largesse.identity import create_key
from largesse.main import database_address
from largesse.settings import Settings
from largesse.world import demo_world, load_world

CUSTOMER = "acme"
SERVICE_ACCOUNT = "hr-bot"
KEY = "demo"
PRODUCT = "coffee-house"  # digital, pounds, sold at 10.00
ACCOUNTS = {"production": "acme-gbp", "staging": "acme-staging-gbp"}


async def prepare(settings: Settings) -> str:
    """Migrates the embedded database, loads the demo world and makes an API key; returns the welcome text.

    Safe to repeat: the world stays as it is, and a new key takes the place of the last demo's, whose secret nobody
    can read any more. Raises StartError, always so where an external database is set: it may hold real customers.
    """
    if settings.database_url is not None:
        raise StartError(
            "LARGESSE_DATABASE_URL is set, but `largesse demo` is for the embedded database alone: unset it, "
            "or use `largesse migrate`, `load` and `serve`"
        )
    async with database_address(settings) as url:
        await upgrade(url)
        async with connect_once(url) as connection:
            loaded = await load_world(connection, demo_world())
            secret = await _fresh_key(connection, settings.environment)
    return welcome(
        settings.public_url,
        secret,
        product_id=loaded.ids["products"][PRODUCT],
        account_id=loaded.ids["funding_accounts"][ACCOUNTS[settings.environment]],
    )


async def _fresh_key(connection: Connection, environment: str) -> str:
    """The secret of a new key, made in place of the one of that name."""
    async with connection.transaction():
        await connection.execute(
            "DELETE FROM api_keys WHERE key = $1 AND customer_id = (SELECT id FROM customers WHERE key = $2)",
            KEY,
            CUSTOMER,
        )
        _, secret = await create_key(
            connection, customer=CUSTOMER, service_account=SERVICE_ACCOUNT, environment=environment, key=KEY
        )
    return secret
