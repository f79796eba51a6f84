"""The only wiring: settings to database to application."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import signal
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import structlog
from starlette.routing import BaseRoute

from largesse.base.errors import StartError
from largesse.base.exposition import serve_metrics
from largesse.base.logs import configure_logs
from largesse.base.patience import Patience
from largesse.base.settings import Settings, load_settings
from largesse.base.turns import Turns
from largesse.base.vault import Vault, is_key_to_be_generated, load_vault, master_key_file
from largesse.catalogue import Catalogue
from largesse.database import (
    COMMANDS,
    DATABASE_FAILED,
    OPERATOR,
    REQUESTS,
    WORK,
    Database,
    Limits,
    end_orphans_for_ever,
    in_one_line,
)
from largesse.database.embedded import EmbeddedServer
from largesse.database.migrate import current_revision, head_revision
from largesse.delivery.queue import Notifier
from largesse.delivery.webhooks import DeliveryThrottle, Resolver
from largesse.fulfilment import ClaimedGifts, InventoryProvider, Provider, TestProvider
from largesse.identity import Authenticator, WrongKeys
from largesse.lines import is_sealed, prove_master_key
from largesse.lines.claiming import Claiming
from largesse.lines.claiming import Turns as RecipientTurns
from largesse.orders import MAX_ORDERS, IdWatch, Intake, OrderLists, Placer, Quoter, read_ids_left
from largesse.web.api import OPERATIONS, Application
from largesse.web.api.shapes.catalogue import CatalogueInJson
from largesse.web.claim import claim_pages
from largesse.web.docs import docs_pages
from largesse.web.kit.replies import encode_json
from largesse.web.kit.services import Services
from largesse.web.mailbox import mailbox_pages
from largesse.worker import DATABASE_CONNECTIONS, Worker

SERVING_CONNECTIONS = 10  # to the database, of a serving process without a worker
_WATCH_EVERY_S = 1.0

_log = structlog.get_logger(__name__)


def create_app() -> Application:
    """The application of a serving process; uvicorn calls it, once in each."""
    settings = load_settings()
    configure_logs(settings.log_format)
    _end_with_parent()
    if ports := os.environ.get("LARGESSE_SERVE_METRICS_PORTS"):
        serve_metrics([int(port) for port in ports.split(",")])
    return build_app(
        settings,
        with_worker=bool(os.environ.get("LARGESSE_SERVE_WITH_WORKER")),
        listens_on=os.environ.get("LARGESSE_SERVE_HOST", ""),
    )


def build_app(
    settings: Settings,
    *,
    with_worker: bool = False,
    mailbox: bool = False,
    listens_on: str = "",
    max_orders: int = MAX_ORDERS,
    wrong_keys: WrongKeys | None = None,
) -> Application:
    """The application for these settings. Its database is opened when it starts.

    `mailbox` captures and shows mail of production too, as the demo does; `listens_on` is the host it is served on. Only benchmarks
    set `max_orders`, which bounds the orders of one transaction, and only tests how many `wrong_keys` may come.
    """

    @asynccontextmanager
    async def lifespan(_: Application) -> AsyncIterator[Services]:
        async with AsyncExitStack() as stack:
            if with_worker:
                await stack.enter_async_context(open_worker(settings, captures=mailbox))
            services = await stack.enter_async_context(
                open_services(settings, makes_vouchers=mailbox, max_orders=max_orders, wrong_keys=wrong_keys)
            )
            # What lives now lives to the end: collections need not walk it again and again.
            gc.collect()
            gc.freeze()
            yield services

    def pages(services: Services) -> list[BaseRoute]:
        has_mailbox = mailbox or settings.environment == "staging"
        routes = [*docs_pages(settings, has_mailbox=has_mailbox), *claim_pages(services)]
        return [*routes, *mailbox_pages(services, listens_on)] if has_mailbox else routes

    return Application(OPERATIONS, lifespan=lifespan, pages=pages, rate_limit=settings.rate_limit)


def _end_with_parent() -> None:
    """Ends this process, drained, when the one that started it was killed and can no longer tell it to end."""
    # Not by os.getppid(): the parent may be gone before this line, and its successor would be watched instead.
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()


@asynccontextmanager
async def open_services(
    settings: Settings,
    *,
    makes_vouchers: bool = False,
    max_orders: int = MAX_ORDERS,
    wrong_keys: WrongKeys | None = None,
) -> AsyncIterator[Services]:
    """Everything operations and pages work with; on the way out, what is under way is finished first.

    `makes_vouchers`: what is not in stock gets a test voucher in production too, as the demo does.
    Raises StartError when the database cannot be reached or its schema is not the current one.
    """
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(open_database(settings, limits=REQUESTS))
        await check_schema(database)
        vault = await open_vault(database, settings)
        catalogue = Catalogue(database, CatalogueInJson())
        notifier = Notifier(database)
        stack.push_async_callback(notifier.close)
        patience = Patience()
        stack.push_async_callback(patience.close)

        def on_placed() -> None:
            patience.moved()
            notifier.notify_soon()

        ids = IdWatch()
        ids.note(await read_ids_left(database))
        placer = Placer(database, max_orders=max_orders, on_placed=on_placed, ids=ids)
        stack.push_async_callback(placer.close)
        authenticator = Authenticator(database, settings.environment, wrong_keys)
        stack.push_async_callback(authenticator.close)
        order_lists = OrderLists(database, encode_json)
        stack.push_async_callback(order_lists.close)
        resolver = Resolver()
        stack.push_async_callback(resolver.close)
        claiming, gifts = _recipients(settings, database, vault, makes_vouchers=makes_vouchers)
        intake = Intake(database, catalogue, placer, vault, patience, settings.public_url)
        yield Services(
            settings=settings,
            database=database,
            vault=vault,
            catalogue=catalogue,
            authenticator=authenticator,
            intake=intake,
            quoter=Quoter(database, intake, vault),
            order_lists=order_lists,
            claiming=claiming,
            gifts=gifts,
            resolver=resolver,
            delivery_throttle=DeliveryThrottle(),
            patience=patience,
            writing_turns=Turns(at_once=6, each=3, max_waiting=1_000),
        )


def _recipients(
    settings: Settings, database: Database, vault: Vault, *, makes_vouchers: bool
) -> tuple[Claiming, ClaimedGifts]:
    """What recipients do, before a gift is claimed and after.

    Voucher numbers come from stock; in staging, and for what is not in stock where it `makes_vouchers`, they are made up.
    """
    provider: Provider = InventoryProvider()
    if settings.environment == "staging":
        provider = TestProvider(vault)
    elif makes_vouchers:
        provider = TestProvider(vault, InventoryProvider())
    turns = RecipientTurns()
    gifts = ClaimedGifts(database, vault, settings.environment, provider, turns)
    claiming = Claiming(
        database,
        vault,
        settings.environment,
        gifts,
        default_expiry_days=settings.default_expiry_days,
        turns=turns,
    )
    return claiming, gifts


@asynccontextmanager
async def open_worker(settings: Settings, *, captures: bool = False) -> AsyncIterator[Worker]:
    """A worker that delivers until the block ends, and then drains. `captures` is the worker's.

    Raises StartError when the database cannot be reached or its schema is not the current one.
    """
    async with open_database(settings, max_connections=DATABASE_CONNECTIONS, limits=WORK) as database:
        await check_schema(database)
        vault = await open_vault(database, settings)
        async with Worker(database, settings, vault, captures=captures) as worker:
            yield worker


async def open_vault(database: Database, settings: Settings, *, keep: bool = True) -> Vault:
    """The vault of the installation, whose master key is the one its database is sealed under. Raises StartError.

    Without `keep` nothing is written: an audit changes nothing.
    """
    async with database.connection(OPERATOR) as connection:
        if is_key_to_be_generated(settings) and await is_sealed(connection):
            raise StartError(
                f"LARGESSE_MASTER_KEY is not set and {master_key_file(settings)} is missing, but the database is "
                "sealed: bring the file back from a backup"
            )
        vault = load_vault(settings)
        await prove_master_key(connection, vault, keep=keep)
    return vault


@asynccontextmanager
async def open_database(
    settings: Settings, *, max_connections: int = SERVING_CONNECTIONS, limits: Limits = COMMANDS
) -> AsyncIterator[Database]:
    """The pool of the installation's database. Raises StartError when it cannot be reached.

    Processes that stay look after what others have left at the server.
    """
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(database_address(settings))
        try:
            database = await Database.connect(url, max_connections=max_connections, limits=limits)
        except DATABASE_FAILED as error:
            raise StartError(f"the database cannot be reached: {in_one_line(error)}") from None
        stack.push_async_callback(database.close)
        if limits is not COMMANDS:
            stack.callback(asyncio.create_task(end_orphans_for_ever(database)).cancel)
        yield database


@asynccontextmanager
async def database_address(settings: Settings) -> AsyncIterator[str]:
    """The address of the installation's database; an embedded server runs as long as the block. Raises StartError."""
    if settings.database_url is not None:
        yield settings.database_url
        return
    async with embedded_server(settings) as server:
        yield server.url()


@asynccontextmanager
async def embedded_server(settings: Settings) -> AsyncIterator[EmbeddedServer]:
    """A hold on the embedded server for as long as the block, watched: one that dies is started again."""
    server = EmbeddedServer(settings.data_dir)
    try:
        # Cut short, the thread goes on; letting go then waits for it.
        await asyncio.to_thread(server.acquire)
        watch = asyncio.create_task(_keep_running(server))
        try:
            yield server
        finally:
            watch.cancel()
    finally:
        await asyncio.to_thread(server.release)


async def check_schema(database: Database) -> None:
    """Raises StartError when the schema is not the one this release needs."""
    async with database.connection(OPERATOR) as connection:
        trouble = schema_trouble(await current_revision(connection))
    if trouble is not None:
        raise StartError(trouble)


def schema_trouble(revision: str | None) -> str | None:
    """Why this release cannot work with a schema at that revision; None when it can."""
    named = f"at revision {revision}" if revision else "empty"
    if revision is None or revision < head_revision():
        return f"the database's schema is {named}: run `largesse migrate` first"
    if revision > head_revision():
        return f"the database's schema is {named}, newer than this release of Largesse"
    return None


async def _keep_running(server: EmbeddedServer) -> None:
    while True:
        await asyncio.sleep(_WATCH_EVERY_S)
        try:
            await asyncio.to_thread(server.ensure_running)
        except StartError as error:
            _log.error("embedded_server_not_started", reason=str(error))
