"""Prepares the data of the demo, and the welcome text that `largesse demo` prints."""

import json
import shlex
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from largesse.audit.service import Acting, by_command
from largesse.base.errors import OperatorError
from largesse.base.hosts import by_name
from largesse.base.settings import Settings
from largesse.customers.customer_store import find_customer, find_service_account, has_customers
from largesse.customers.key_store import add_key, delete_key, key_exists, list_keys
from largesse.customers.members import list_members
from largesse.customers.sign_in_links import new_link
from largesse.db.clock import move_clock, wait_for_disk
from largesse.db.migrate import current_revision, upgrade
from largesse.db.pool import Connection, connect_once
from largesse.db.roles import Role
from largesse.db.scope import OPERATOR
from largesse.demo.history import CUSTOMER, make_history
from largesse.demo.people import ENVIRONMENT
from largesse.encryption.chain_keys import open_chains
from largesse.encryption.vault import load_vault
from largesse.installation import chain_ledger, database_address
from largesse.seed.load import LoadedSeed, load_seed
from largesse.seed.reading import demo_seed
from largesse.staff.service import demo_link

SERVICE_ACCOUNT = "hr-bot"
KEYS = {"production": "demo", "staging": "demo-staging"}
OWNER = ("owner@largesse.example", "Owner")  # address and name of the owner in the back office
HOOK = "/demo/webhook"  # receives webhooks, and answers 204
_BEFORE_HISTORY = timedelta(days=100)
PRODUCT = "coffee-house"  # a digital gift in pounds, sold at 10.00
ACCOUNTS = {"production": "acme-gbp", "staging": "acme-staging-gbp"}


async def prepare(settings: Settings, *, has_history: bool = True, say: Callable[[str], None] = lambda _: None) -> str:
    """Migrates the embedded database, loads the demo data, creates API keys, and returns the welcome text.

    The first time it also makes three months of history, unless `has_history` is false, and announces that with `say`. You can repeat it:
    data and keys stay. Raises OperatorError, also for an external database and for an installation that is not the demo's, as both may
    have real customers.
    """
    if settings.database_url is not None:
        raise OperatorError(
            "LARGESSE_DATABASE_URL is set, but `largesse demo` works only with the embedded database: unset it, "
            "or use `largesse migrate`, `load` and `serve`"
        )
    async with database_address(settings, None) as url:
        async with connect_once(url, OPERATOR) as owner:
            await _make_own(owner, settings.data_dir)
        await upgrade(url)
        await chain_ledger(settings)
        async with connect_once(url, OPERATOR) as owner:
            await _to_the_present(owner)  # in case an earlier start ended during the history
            is_new = not await _is_loaded(owner) and has_history and settings.environment == ENVIRONMENT
            if is_new:
                say("Making three months of orders to look around in. This happens once and takes some seconds.")
            unfinished = settings.data_dir / "demo-history-unfinished"
            if is_new:
                unfinished.touch()
                loaded = await _load_with_history(settings, owner)
                unfinished.unlink()
            else:
                loaded = await _load(settings)
                if unfinished.exists():
                    say(
                        f"The last start ended before the history was made. To make it, stop and remove {settings.data_dir}."
                    )
    async with _operator(settings) as connection:
        secrets = {one: await _demo_key(connection, settings.data_dir, one) for one in KEYS}
        sign_in = await _sign_in_link(connection)
        chains = await open_chains(connection, load_vault(settings), keep=True)
        async with connection.transaction():
            office = await demo_link(connection, Acting(by_command("largesse demo"), chains), *OWNER)
    is_live = settings.environment == ENVIRONMENT
    return welcome(
        settings.public_url,
        secrets[settings.environment],
        sign_in,
        office,
        test_mode=(settings.other_public_url, secrets["staging"]) if is_live else None,
        product_id=loaded.ids["products"][PRODUCT],
        account_id=loaded.ids["funding_accounts"][ACCOUNTS[settings.environment]],
    )


async def _make_own(owner: Connection, data_dir: Path) -> None:
    """Marks an installation without customers as the demo's. Raises OperatorError for one that has customers and no mark."""
    mark = data_dir / "demo"
    marks = mark, *(data_dir / f"demo-key-{one}" for one in KEYS)  # earlier releases made the files with keys
    is_used = await current_revision(owner) is not None and await has_customers(owner)
    if is_used and not any(one.exists() for one in marks):
        raise OperatorError(
            f"{data_dir} holds customers that are not the demo's: name another folder with LARGESSE_DATA_DIR"
        )
    mark.touch()


async def _load(settings: Settings) -> LoadedSeed:
    async with _operator(settings) as connection:
        chains = await open_chains(connection, load_vault(settings), keep=True)
        return await load_seed(connection, chains.entries, demo_seed())


async def _load_with_history(settings: Settings, owner: Connection) -> LoadedSeed:
    """Loads the demo data as of three months ago, and makes the history since then."""
    await move_clock(owner, -_BEFORE_HISTORY)
    await wait_for_disk(owner, waits=False)
    try:
        loaded = await _load(settings)
        await make_history(settings, owner, loaded, f"{settings.public_url}{HOOK}")
    finally:
        await _to_the_present(owner)
    return loaded


async def _to_the_present(owner: Connection) -> None:
    """Sets the database's clock to the present time, and its settings so that a crash loses nothing."""
    await move_clock(owner, timedelta())
    await wait_for_disk(owner, waits=True)


async def _is_loaded(connection: Connection) -> bool:
    try:
        await find_customer(connection, CUSTOMER)
    except OperatorError:
        return False
    return True


@asynccontextmanager
async def _operator(settings: Settings) -> AsyncIterator[Connection]:
    async with (
        database_address(settings, Role.OPERATOR) as url,
        connect_once(url, OPERATOR, role=Role.OPERATOR) as connection,
    ):
        yield connection


async def _sign_in_link(connection: Connection) -> str:
    """Returns the secret of a link that signs in the demo's administrator once. The link of the last start ends."""
    customer_id = await find_customer(connection, CUSTOMER)
    administrators = (one for one in await list_members(connection, customer_id) if one.role == "admin")
    async with connection.transaction():
        return await new_link(connection, "sign_in", user_id=next(administrators).id)


async def _demo_key(connection: Connection, data_dir: Path, environment: str) -> str:
    """Returns the secret of the demo's API key: the same as at the last start, or a new one if it is lost.

    The data directory holds it in a file that only its owner can read. It gives access to demo data only.
    """
    file = data_dir / f"demo-key-{environment}"
    if file.exists() and await key_exists(connection, stored := file.read_text(encoding="ascii").strip(), environment):
        return stored
    async with connection.transaction():
        for record in await list_keys(connection, CUSTOMER):
            if record.key == KEYS[environment]:
                await delete_key(connection, record.id)
        account = await find_service_account(connection, CUSTOMER, SERVICE_ACCOUNT)
        _, secret = await add_key(
            connection,
            customer_id=account.customer_id,
            service_account_id=account.id,
            environment=environment,
            key=KEYS[environment],
        )
    file.touch(mode=0o600)
    file.write_text(f"{secret}\n", encoding="ascii")
    return secret


def welcome(
    public_url: str,
    secret: str,
    sign_in: str,
    office: str,
    *,
    test_mode: tuple[str, str] | None = None,
    product_id: int,
    account_id: int,
) -> str:
    """Returns the text that the demo prints: addresses, API keys, links that sign in once, and two requests to paste into a shell.

    `test_mode` is the address of test mode and the secret of its API key, if the demo serves test mode too.
    """
    gift = {"productId": product_id, "value": 10, "accountId": account_id}
    recipients = [{"email": "ada@example.com", "name": "Ada"}, {"email": "grace@example.com", "name": "Grace"}]
    named = by_name(public_url)
    return f"""
Largesse is running with its demo world.

  API      {public_url}
  App      {named}/app
  Office   {named}/office
  Docs     {public_url}/docs
  Claim    {public_url}/claim
  Mail     {public_url}/mailbox
  API key  {secret}
{_test_mode(*test_mode) if test_mode else ""}
Sign in to the web application, once by this link:

  {named}/app/link/{sign_in}

And to the back office, where you set up a second step first:

  {named}/office/link/{office}

Send two people a gift of £10 each:

{_curl(public_url, secret, {**gift, "recipients": recipients, "message": "Thank you!"})}

Or have three codes to hand out yourself:

{_curl(public_url, secret, {**gift, "codeQuantity": 3})}

Webhooks may go to this machine: http://127.0.0.1:3000/hook, say.

Ctrl-C ends it. The data and the keys stay for the next start.
"""


def _test_mode(public_url: str, secret: str) -> str:
    return f"""
In test mode nothing is sent or charged:

  API      {public_url}
  Mail     {public_url}/mailbox
  API key  {secret}
"""


def webhook_routes() -> list[BaseRoute]:
    """Returns the route of the demo's own webhook receiver."""

    async def receive(_: Request) -> Response:
        return Response(status_code=204)

    return [Route(HOOK, receive, methods=["POST"])]


def _curl(public_url: str, secret: str, body: dict[str, Any]) -> str:
    """Returns a shell command that places the order `body`."""
    parts = [
        f"curl {public_url}/send/gift",
        f"-H {shlex.quote(f'Authorization: Bearer {secret}')}",
        "-H 'Content-Type: application/json'",
        f"-d {shlex.quote(json.dumps(body))}",
    ]
    return " \\\n  ".join(parts)
