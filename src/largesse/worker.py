"""The worker: runs the periodic tasks of all rooms, and delivers webhooks and mail. Any number may run, on any number of machines."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Self

import structlog

from largesse.base.hosts import by_name
from largesse.base.open_files import allow_files
from largesse.base.settings import Settings
from largesse.db.pool import Database
from largesse.encryption.vault import Vault
from largesse.housekeeping import ROOMS
from largesse.jobs.job_loop import Loop
from largesse.jobs.leases import LEASE_S
from largesse.jobs.notifier import News, listen
from largesse.jobs.registry import WorkerContext
from largesse.mail.mailer import DRAIN_S, Mailer
from largesse.mail.outcomes import MessageLeases
from largesse.mail.people.sending import PeopleMailer
from largesse.mail.server import MailServer
from largesse.mail.smtp import SmtpTransport
from largesse.suppliers.buyer import ask_again, open_lanes
from largesse.suppliers.description import open_supplier, read_descriptions
from largesse.webhooks.deliverer import IN_FLIGHT, QUEUES_AT_ONCE, RESERVE, Deliverer
from largesse.webhooks.resolver import Resolver
from largesse.webhooks.transport import HttpTransport

DATABASE_CONNECTIONS = 17  # connections of the pool; if more loops need one at the same time, they wait
# The sockets of both lanes of deliveries, and all other files. Many systems allow 1,024 by default.
OPEN_FILES = 2 * (QUEUES_AT_ONCE + RESERVE) * IN_FLIGHT + 1_024
_MAIL_PEOPLE_EVERY_S = 1.0
# How long a worker that ends may need: for a message under way, and for the database's time-outs.
_LONGEST_STEP_S = DRAIN_S + 15.0
_LAST_WORDS_S = 5.0
_CANCEL_AGAIN_S = 0.5

log = structlog.get_logger(__name__)


class Worker:
    """Works until the `async with` block ends, then drains.

    Draining starts nothing new, waits for what is in flight (each attempt has its timeout) and releases leases.
    `database` is a pool of the worker's own with DATABASE_CONNECTIONS, so that its loops and the API's requests do not
    wait for each other. With `captures`, production mail is captured when no mail server is set, as in the demo;
    otherwise it is held. Leases last `lease_s` seconds and are renewed. `more` are further loops to run.
    """

    def __init__(
        self,
        database: Database,
        settings: Settings,
        vault: Vault,
        *,
        captures: bool = False,
        lease_s: float = LEASE_S,
        more: Sequence[Loop] = (),
    ) -> None:
        self._database = database
        self._resolver = Resolver()
        self._transport = HttpTransport(
            settings.webhook_allowed_networks, settings.webhook_timeout_s, self._resolver.look_up
        )
        self._deliverer = Deliverer(database, vault, self._transport, self._wake_delivering, lease_s=lease_s)
        self._suppliers = [
            open_supplier(description, self._resolver.look_up) for description in read_descriptions(settings.suppliers)
        ]
        self._message_leases = MessageLeases(database, lease_s=lease_s)
        self._mailers = _mailers(database, settings, vault, self._message_leases, captures=captures)
        context = WorkerContext(database, vault, self._wake, default_expiry_days=settings.default_expiry_days)
        periodic = [
            (task, Loop(task.name, partial(task.step, context), every_s=task.every_s))
            for room in ROOMS
            for task in room.periodic
            if settings.smtp_url is not None or not task.needs_mail_server
        ]
        self._working = [
            *(loop for task, loop in periodic if task.finishes),
            Loop("deliver", partial(self._deliverer.step, failing=False)),
            Loop("deliver_failing", partial(self._deliverer.step, failing=True)),
            *(Loop("mail", mailer.step) for mailer in self._mailers),
            *(
                Loop(f"supplier_{buyer.name}", buyer.step)
                for supplier in self._suppliers
                for buyer in open_lanes(database, vault, supplier)
            ),
        ]
        if self._suppliers:
            names = frozenset(supplier.description.name for supplier in self._suppliers)
            self._working.append(Loop("ask_suppliers_again", partial(ask_again, database, names), every_s=60.0))
        self._on_orders = [loop for task, loop in periodic if task.on_orders]
        self._supporting = [
            *(loop for task, loop in periodic if not task.finishes),
            Loop("listen", self._listen),
            Loop("renew_subscription_queues", self._renew_subscription_queues, every_s=lease_s / 3),
            Loop("renew_messages", self._renew_messages, every_s=lease_s / 3),
            *more,
        ]
        self._people_mailers = _people_mailers(database, settings, vault)
        self._mailing_people = [
            Loop("mail_people", mailer.step, every_s=_MAIL_PEOPLE_EVERY_S) for mailer in self._people_mailers
        ]
        self._supporting += [
            Loop("renew_people_mail", mailer.renew, every_s=lease_s / 3) for mailer in self._people_mailers
        ]
        self._work: list[asyncio.Task[None]] = []
        self._support: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        allow_files(OPEN_FILES)
        self._work = [asyncio.create_task(loop.run()) for loop in [*self._working, *self._mailing_people]]
        self._support = [asyncio.create_task(loop.run()) for loop in self._supporting]
        log.info("worker.started")
        return self

    async def __aexit__(self, *_: object) -> None:
        log.info("worker.draining")
        for loop in [*self._working, *self._mailing_people]:
            loop.stop()
        mailers: list[Mailer | PeopleMailer] = [*self._mailers, *self._people_mailers]
        for mailer in mailers:
            mailer.drain()
        self._deliverer.drain()
        await _end(self._work, _LONGEST_STEP_S)
        await self._deliverer.close()
        await asyncio.gather(*(mailer.close() for mailer in mailers))
        for loop in self._supporting:
            loop.stop()
        await _cancel(self._support)
        await self._transport.close()
        for supplier in self._suppliers:
            await supplier.close()
        await self._resolver.close()
        log.info("worker.stopped")

    def wake(self, news: News = News.OUTBOX) -> None:
        """Makes the loops that the news concerns look for work now."""
        loops = {
            News.ORDERS: self._on_orders,
            News.OUTBOX: self._working,
            News.EVERYTHING: [*self._working, *self._mailing_people, *self._supporting],
        }
        for loop in loops[news]:
            loop.waker.wake()

    async def _listen(self) -> bool:
        await listen(self._database, self.wake)
        return False

    async def _renew_subscription_queues(self) -> bool:
        await self._deliverer.renew()
        return False

    async def _renew_messages(self) -> bool:
        await self._message_leases.renew()
        return False

    def _wake(self, *names: str) -> None:
        for loop in self._working:
            if loop.name in names:
                loop.waker.wake()

    def _wake_delivering(self) -> None:
        """Wakes both lanes: outcomes decide which lane a queue is in now."""
        self._wake("deliver", "deliver_failing")


async def _end(tasks: Sequence[asyncio.Task[None]], longest_s: float) -> None:
    """Waits for tasks that are about to end, then cancels those that have not."""
    _, late = await asyncio.wait(tasks, timeout=longest_s)
    if late:
        log.error("worker.cut_short", loops=len(late))
        for task in late:
            task.cancel()
        await asyncio.wait(late, timeout=_LAST_WORDS_S)


async def _cancel(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Cancels tasks and waits for them. Cancels again if needed, as the driver may turn a cancellation into its own error."""
    running: set[asyncio.Task[None]] = set(tasks)
    while running:
        for task in running:
            task.cancel()
        _, running = await asyncio.wait(running, timeout=_CANCEL_AGAIN_S)


def _people_mailers(database: Database, settings: Settings, vault: Vault) -> list[PeopleMailer]:
    """Returns two if the mail server allows it: one address that it hangs on must not hold up all links to sign in."""
    if settings.smtp_url is None:
        return []
    server = MailServer.from_url(settings.smtp_url)
    urls = {"public_url": by_name(settings.public_url), "mail_from": settings.mail_from}
    return [PeopleMailer(database, vault, SmtpTransport(server), **urls) for _ in range(min(2, server.connections))]


def _mailers(
    database: Database, settings: Settings, vault: Vault, message_leases: MessageLeases, *, captures: bool
) -> list[Mailer]:
    """Returns a mailer for each connection to the mail server, or a single one that sends nothing when no server is set."""
    server = MailServer.from_url(settings.smtp_url) if settings.smtp_url is not None else None
    return [
        Mailer(
            database,
            vault,
            public_url_of=settings.public_url_of,
            mail_from=settings.mail_from,
            transport=SmtpTransport(server) if server is not None else None,
            captures=captures,
            leases=message_leases,
        )
        for _ in range(server.connections if server is not None else 1)
    ]
