"""Wires the application: from settings to database to services to pages."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Protocol, TypeVar

import structlog
from asyncpg import InsufficientPrivilegeError

from largesse.audit.service import Acting, by_worker
from largesse.automations.placing import AutomationRunner
from largesse.base.cooperative import FairTurns
from largesse.base.errors import MayNotAct, Problem
from largesse.base.logs import configure_logs
from largesse.base.metrics_server import serve_metrics
from largesse.base.settings import Settings, load_settings
from largesse.base.timeouts import Timeouts
from largesse.catalogue.cache import Catalogue
from largesse.customers.authenticator import Authenticator, WrongKeys
from largesse.db.pool import Database
from largesse.db.roles import Role
from largesse.db.scope import OFFICE
from largesse.db.session import REQUESTS, WORK
from largesse.encryption.chain_keys import Chains
from largesse.encryption.master_keys import tell_sealing_for_ever
from largesse.encryption.vault import Vault
from largesse.installation import OFFICE_CONNECTIONS, cancelled, chains_of, check_schema, open_database, open_vault
from largesse.jobs.job_loop import Loop
from largesse.jobs.notifier import Notifier
from largesse.ledger.own_accounts import OwnAccountCache
from largesse.orders.ids import IdWatch, read_capacity
from largesse.orders.listing import OrderLists
from largesse.orders.placer import MAX_ORDERS, Placer
from largesse.orders.quoter import Quoter
from largesse.orders.request import SendRequest
from largesse.orders.service import OrderService
from largesse.request_log.service import RequestLog
from largesse.web.api.application import Application
from largesse.web.api.routes import operations_of
from largesse.web.api.shapes import CatalogueInJson
from largesse.web.kit.asgi import InBrowser, encode_json
from largesse.web.kit.services import Services
from largesse.webhooks.resolver import Resolver
from largesse.webhooks.service import DeliveryThrottle

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

    from largesse.worker import Worker

# A garbage collection starts after 2,000 new objects, and one of an older generation after five of the younger one.
# So the oldest gets at most 50,000 new objects, which take 30 ms. With 5 million, a collection stopped the process for 0.6 seconds.
GC_THRESHOLDS = (2_000, 5, 5)

_log = structlog.get_logger(__name__)
_HAS_OFFICE = "SELECT id FROM staff LIMIT 1"


def create_app() -> Application:
    """Returns the application of a serving process. Each of several processes calls it once."""
    settings = load_settings()
    configure_logs(settings.log_format)
    _end_with_parent()
    if ports := os.environ.get("LARGESSE_SERVE_METRICS_PORTS"):
        serve_metrics([int(port) for port in ports.split(",")], os.environ["LARGESSE_SERVE_METRICS_HOST"])
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
    pages: Sequence[BaseRoute] = (),
    listens_on: str = "",
    max_orders: int = MAX_ORDERS,
    wrong_keys: WrongKeys | None = None,
) -> Application:
    """Returns the application for these settings. It opens its database when it starts.

    `mailbox` and `pages` are for the demo: `mailbox` captures and shows mail of production too, and `pages` are added. `listens_on` is the
    server's host. `max_orders` bounds the orders of one transaction; only benchmarks set it. Only tests set `wrong_keys`.
    """

    @asynccontextmanager
    async def lifespan(_: Application) -> AsyncIterator[Services]:
        async with AsyncExitStack() as stack:
            if with_worker:
                await stack.enter_async_context(open_worker(settings, captures=mailbox))
            services = await stack.enter_async_context(
                open_services(settings, is_demo=mailbox, max_orders=max_orders, wrong_keys=wrong_keys)
            )
            runner = _closing(stack, AutomationRunner(services.database, services.orders, settings.environment))
            runner.start()
            yield services

    async def make_pages(services: Services) -> tuple[Sequence[BaseRoute], InBrowser]:
        made = await asyncio.to_thread(_import_pages)
        has_mailbox = mailbox or settings.environment == "staging"
        routes, in_browser = made.all_pages(services, is_demo=mailbox, has_mailbox=has_mailbox, listens_on=listens_on)
        collect_seldom()
        threading.Thread(target=made.load_texts, daemon=True).start()
        return [*pages, *routes], in_browser

    return Application(
        operations_of(settings.environment), lifespan=lifespan, pages=make_pages, rate_limit=settings.rate_limit
    )


def _import_pages() -> ModuleType:
    """Imports the pages, and returns their module. Also loads what the first requests need, so that they do not wait for it."""
    import aiodns  # noqa: F401
    import email_validator  # noqa: F401

    from largesse.base.i18n.templates import read_templates
    from largesse.base.zones import known_zones
    from largesse.web import pages
    from largesse.web.kit.assets import icons

    icons()
    read_templates()
    known_zones()
    return pages


def collect_seldom() -> None:
    """Makes garbage collections skip the objects that live as long as the process, and start less often.

    With Python's own thresholds they took 8 % of the time of an order, and 7 % of a worker's processor time for a mail.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)


def _end_with_parent() -> None:
    """Drains and ends this process if its parent is killed."""
    # os.getppid() would watch the wrong process if the parent ends before this line.
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()


@asynccontextmanager
async def open_services(
    settings: Settings, *, is_demo: bool = False, max_orders: int = MAX_ORDERS, wrong_keys: WrongKeys | None = None
) -> AsyncIterator[Services]:
    """Opens the services that operations use. On exit, finishes the work under way first.

    With `is_demo`, mail of production is captured too if no mail server is set.
    Raises OperatorError if the database cannot be reached or its schema is not current.
    """
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(open_database(settings, role=Role.APP, limits=REQUESTS))
        await check_schema(database)
        opening_office = asyncio.create_task(_office_database(stack, settings))
        stack.push_async_callback(cancelled, opening_office)
        vault = await open_vault(database, settings)
        chains = await chains_of(database, vault, settings)
        stack.push_async_callback(cancelled, asyncio.create_task(_run_in_background(database, vault)))
        catalogue = _closing(stack, Catalogue(database, CatalogueInJson(settings.public_url)))
        notifier, timeouts = _closing(stack, Notifier(database)), _closing(stack, Timeouts())

        def on_placed() -> None:
            timeouts.moved()
            notifier.notify_soon()

        placer = _closing(stack, await _placer(database, chains, max_orders, on_placed))
        own_accounts = _closing(stack, OwnAccountCache(database))
        authenticator = _closing(stack, Authenticator(database, settings.environment, wrong_keys))
        request_log = _closing(stack, RequestLog(database, settings.request_log))
        order_lists = _closing(stack, OrderLists(database, encode_json))
        url = settings.public_url
        orders = OrderService(
            database, catalogue, placer, own_accounts, vault, timeouts, url, failure_of=_failures(settings)
        )
        if (office_database := await opening_office) is not None:
            office_database.credentials_key = vault.credentials_key
        yield Services(
            settings=settings,
            database=database,
            vault=vault,
            chains=chains,
            catalogue=catalogue,
            authenticator=authenticator,
            request_log=request_log,
            orders=orders,
            quoter=Quoter(database, orders, vault),
            order_lists=order_lists,
            office_database=office_database,
            resolver=_closing(stack, Resolver()),
            delivery_throttle=DeliveryThrottle(),
            captures=is_demo and settings.smtp_url is None,
            timeouts=timeouts,
            writing_turns=FairTurns(at_once=6, each=3, max_waiting=1_000),
        )


def _failures(settings: Settings) -> Callable[[SendRequest], Problem | None] | None:
    """Returns the function that refuses requests of the test lab on purpose; None in production, which has no lab."""
    if settings.environment != "staging":
        return None
    from largesse.lab.service import failure_of

    return failure_of


async def _placer(database: Database, chains: Chains, max_orders: int, on_placed: Callable[[], None]) -> Placer:
    ids = IdWatch()
    ids_left, _ = await read_capacity(database)
    ids.note(ids_left)
    return Placer(
        database,
        chains.entries,
        max_orders=max_orders,
        has_siblings=multiprocessing.parent_process() is not None,
        on_placed=on_placed,
        ids=ids,
    )


async def _office_database(stack: AsyncExitStack, settings: Settings) -> Database | None:
    """Opens the back office's connections. Returns None, and logs a warning, if the database login may not act as its role."""
    try:
        database = await stack.enter_async_context(
            open_database(settings, role=Role.OFFICE, max_connections=OFFICE_CONNECTIONS, limits=REQUESTS)
        )
        await database.fetchval(OFFICE, _HAS_OFFICE)
    except (MayNotAct, InsufficientPrivilegeError):  # the latter through PgBouncer, where logins act as themselves
        _log.warning("office_unavailable", role=Role.OFFICE, see="docs/office.md")
        return None
    return database


class _Closable(Protocol):
    async def close(self) -> None: ...


_AnyClosable = TypeVar("_AnyClosable", bound=_Closable)


def _closing(stack: AsyncExitStack, service: _AnyClosable) -> _AnyClosable:
    """Returns the service, and closes it when the stack is closed."""
    stack.push_async_callback(service.close)
    return service


async def _run_in_background(database: Database, vault: Vault) -> None:
    """Reports the key that this process encrypts with, and watches the database's disk, until it is cancelled."""
    await asyncio.gather(tell_sealing_for_ever(database, vault), database.disk.look_for_ever(database.transaction))


@asynccontextmanager
async def open_worker(settings: Settings, *, captures: bool = False) -> AsyncIterator[Worker]:
    """Runs a worker until the block ends, and drains it then. `captures` is passed to `Worker`.

    Raises OperatorError if the database cannot be reached or its schema is not current.
    """
    from largesse.base.i18n.templates import read_templates
    from largesse.worker import DATABASE_CONNECTIONS, Worker

    async with open_database(settings, role=Role.WORKER, max_connections=DATABASE_CONNECTIONS, limits=WORK) as database:
        await check_schema(database)
        vault = await open_vault(database, settings)
        await asyncio.to_thread(read_templates)
        background = asyncio.create_task(_run_in_background(database, vault))
        try:
            more = await _retaining(settings, database, vault)
            async with Worker(database, settings, vault, captures=captures, more=more) as worker:
                yield worker
        finally:
            background.cancel()


async def _retaining(settings: Settings, database: Database, vault: Vault) -> list[Loop]:
    """Returns the loop that erases recipients after the retention period, in a list. The list is empty if no period is set."""
    if not settings.retention_days:
        return []
    from largesse.privacy import retention

    acting = Acting(by_worker("retention"), await chains_of(database, vault, settings))
    retaining = retention.Retention(database, acting, settings.retention_days)
    return [Loop("erase_recipients", retaining.step, every_s=retention.EVERY_S)]
