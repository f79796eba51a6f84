"""Making the demo's world, and the text that welcomes to it."""

from __future__ import annotations

from pathlib import Path

from largesse.base.errors import StartError
from largesse.base.settings import Settings
from largesse.base.vault import load_vault
from largesse.chains.keys import open_chains
from largesse.database.migrate import upgrade
from largesse.database.pool import Connection, connect_once
from largesse.database.roles import Role
from largesse.database.scope import OPERATOR
from largesse.demo.welcome import welcome
from largesse.identity.customers import find_customer
from largesse.identity.key_records import create_key, delete_key, key_holds, list_keys
from largesse.installation import chain_ledger, database_address
from largesse.people.links import new_link
from largesse.people.managing import list_colleagues
from largesse.world.load import load_world
from largesse.world.reading import demo_world

CUSTOMER = "acme"
SERVICE_ACCOUNT = "hr-bot"
KEYS = {"production": "demo", "staging": "demo-staging"}
PRODUCT = "coffee-house"  # digital, pounds, sold at 10.00
ACCOUNTS = {"production": "acme-gbp", "staging": "acme-staging-gbp"}


async def prepare(settings: Settings) -> str:
    """Migrates the embedded database, loads the demo world and makes an API key; returns the welcome text.

    Safe to repeat: the world and the key stay as they are. Raises StartError, always so where an external database is set: it may hold real customers.
    """
    if settings.database_url is not None:
        raise StartError(
            "LARGESSE_DATABASE_URL is set, but `largesse demo` is for the embedded database alone: unset it, "
            "or use `largesse migrate`, `load` and `serve`"
        )
    async with database_address(settings, None) as url:
        await upgrade(url)
    await chain_ledger(settings)
    async with (
        database_address(settings, Role.OPERATOR) as url,
        connect_once(url, OPERATOR, role=Role.OPERATOR) as connection,
    ):
        chains = await open_chains(connection, load_vault(settings), keep=True)
        loaded = await load_world(connection, chains.entries, demo_world())
        secret = await _demo_key(connection, settings.data_dir, settings.environment)
        sign_in = await _sign_in_link(connection)
    return welcome(
        settings.public_url,
        secret,
        sign_in,
        product_id=loaded.ids["products"][PRODUCT],
        account_id=loaded.ids["funding_accounts"][ACCOUNTS[settings.environment]],
    )


async def _sign_in_link(connection: Connection) -> str:
    """The secret of a link that lets the demo's administrator in, once; the one of the last start holds no longer."""
    customer_id = await find_customer(connection, CUSTOMER)
    administrators = (one for one in await list_colleagues(connection, customer_id) if one.role == "admin")
    async with connection.transaction():
        return await new_link(connection, "sign_in", user_id=next(administrators).id)


async def _demo_key(connection: Connection, data_dir: Path, environment: str) -> str:
    """The secret of the demo's API key: the one of the last start, or a new one in place of it where that is lost.

    It is kept in the data directory, for its owner's eyes: beside a demo's world it guards nothing else.
    """
    file = data_dir / f"demo-key-{environment}"
    if file.exists() and await key_holds(
        connection, kept := file.read_text(encoding="ascii").strip(), environment
    ):
        return kept
    async with connection.transaction():
        for record in await list_keys(connection, CUSTOMER):
            if record.key == KEYS[environment]:
                await delete_key(connection, record.id)
        _, secret = await create_key(
            connection,
            customer=CUSTOMER,
            service_account=SERVICE_ACCOUNT,
            environment=environment,
            key=KEYS[environment],
        )
    file.touch(mode=0o600)
    file.write_text(f"{secret}\n", encoding="ascii")
    return secret
