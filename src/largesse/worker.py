"""The worker: which kind of job goes to which function. Any number may run, on any number of machines."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Self

import structlog

from largesse.audit.service import Acting, by_worker
from largesse.base.hosts import by_name
from largesse.base.open_files import allow_files
from largesse.base.settings import Settings
from largesse.db.pool import Connection, Database
from largesse.db.scope import WORKER
from largesse.db.shard_groups import Customers, ShardGroupRunner
from largesse.encryption.chain_keys import Chains, open_chains
from largesse.encryption.vault import Vault
from largesse.events.order_changes import CUSTOMERS_CHANGED
from largesse.events.store import CUSTOMERS_WAITING
from largesse.fulfilment.allocation import allocate_all_waiting
from largesse.fulfilment.tasks import CUSTOMERS_LATE, expire_late, measure_inventory
from largesse.jobs import housekeeping, metrics
from largesse.jobs.job_loop import Loop
from largesse.jobs.leases import LEASE_S
from largesse.jobs.notifier import listen
from largesse.ledger.low_balance_store import CUSTOMERS_WATCHING
from largesse.lines.attempts import prune_guesses
from largesse.mail import requeue
from largesse.mail.fan_out import CUSTOMERS_WAITING as CUSTOMERS_MAILED
from largesse.mail.fan_out import fan_out as fan_out_mail
from largesse.mail.mailer import DRAIN_S, Mailer
from largesse.mail.message_leases import MessageLeases
from largesse.mail.people.sending import PeopleMailer
from largesse.mail.people.writing import queue_low_balances
from largesse.mail.smtp import MailServer
from largesse.mail.transport import SmtpTransport
from largesse.reports.updates import apply_changes
from largesse.webhooks.deliverer import IN_FLIGHT, QUEUES_AT_ONCE, Deliverer
from largesse.webhooks.fan_out import fan_out as fan_out_events
from largesse.webhooks.resolver import Resolver
from largesse.webhooks.transport import HttpTransport

DATABASE_CONNECTIONS = 17  # what the pool should have: one for each loop and writer that may want one at once
# Sockets of both rooms of deliveries, and all else; many systems start at 1,024 files.
OPEN_FILES = 2 * QUEUES_AT_ONCE * IN_FLIGHT + 1_024
_EVENTS_AT_ONCE = 500
_MAIL_JOBS_AT_ONCE = 100
MAIL_CONNECTIONS = 4
_MEASURE_EVERY_S = 5.0
_PRUNE_EVERY_S = 60.0
_SERVE_WAITING_EVERY_S = 30.0
_RELEASE_EVERY_S = 2.0
_MAIL_PEOPLE_EVERY_S = 1.0
_WATCH_BALANCES_EVERY_S = 10.0
_LONGEST_STEP_S = DRAIN_S + 15.0  # of a worker that is to end: a message under way, and the database's time-outs
_LAST_WORDS_S = 5.0
_CANCEL_AGAIN_S = 0.5

log = structlog.get_logger(__name__)


class Worker:
    """Delivers webhooks and mail for as long as the `async with` block lasts; leaving it drains.

    Draining starts nothing new, waits for what is in flight (each attempt has its time-out) and gives back what was
    leased. `database` is a pool of the worker's own, of DATABASE_CONNECTIONS: its loops must not wait behind the
    API's requests, nor those behind the loops. `captures`: mail of production too is captured where no mail server is
    set, as the demo does; else it is held. What is leased is leased for `lease_s` seconds, again and again. `more` are loops that it keeps besides its own.
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
        self._shard_groups = ShardGroupRunner(database)
        self._vault = vault
        self._resolver = Resolver()
        self._transport = HttpTransport(
            settings.webhook_allowed_networks, settings.webhook_timeout_s, self._resolver.look_up
        )
        self._deliverer = Deliverer(database, vault, self._transport, self._wake_delivering, lease_s=lease_s)
        self._desk = MessageLeases(database, lease_s=lease_s)
        self._mailers = _mailers(database, settings, vault, self._desk, captures=captures)
        self._delivering = [Loop("deliver", self._deliver), Loop("deliver_failing", self._deliver_failing)]
        self._mailing = [Loop("mail", mailer.step) for mailer in self._mailers]
        self._chains: Chains | None = None
        self._reporting = Loop("report", self._report)
        self._working = [
            Loop("fan_out_events", self._fan_out_events),
            Loop("fan_out_mail", self._fan_out_mail),
            self._reporting,
            *self._delivering,
            *self._mailing,
        ]
        self._keeping = [
            Loop("listen", self._listen),
            Loop("renew_subscription_queues", self._renew_subscription_queues, every_s=lease_s / 3),
            Loop("renew_messages", self._renew_messages, every_s=lease_s / 3),
            Loop("measure", self._measure, every_s=_MEASURE_EVERY_S),
            Loop("prune", self._prune, every_s=_PRUNE_EVERY_S),
            Loop("measure_stock", self._measure_inventory, every_s=_PRUNE_EVERY_S),
            Loop("prune_guesses", self._prune_guesses, every_s=_PRUNE_EVERY_S),
            Loop("expire_gifts", self._expire_gifts, every_s=_PRUNE_EVERY_S),
            Loop("serve_waiting", self._allocate_waiting, every_s=_SERVE_WAITING_EVERY_S),
            *more,
        ]
        self._people_mailer: PeopleMailer | None = None
        if settings.smtp_url is not None:
            self._people_mailer = _people_mailer(database, settings)
            self._keeping.append(Loop("mail_people", self._people_mailer.step, every_s=_MAIL_PEOPLE_EVERY_S))
            self._keeping.append(Loop("watch_balances", self._watch_balances, every_s=_WATCH_BALANCES_EVERY_S))
            self._keeping.append(Loop("release_held", self._release_held, every_s=_RELEASE_EVERY_S))
        self._work: list[asyncio.Task[None]] = []
        self._keep: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        allow_files(OPEN_FILES)
        self._work = [asyncio.create_task(loop.run()) for loop in self._working]
        self._keep = [asyncio.create_task(loop.run()) for loop in self._keeping]
        log.info("worker.started")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        log.info("worker.draining")
        for loop in self._working:
            loop.stop()
        for mailer in self._mailers:
            mailer.drain()
        self._deliverer.drain()
        await _end(self._work, _LONGEST_STEP_S)
        await self._deliverer.close()
        await asyncio.gather(*(mailer.close() for mailer in self._mailers))
        for loop in self._keeping:
            loop.stop()
        await _cancel(self._keep)
        if self._people_mailer is not None:
            await self._people_mailer.close()
        await self._transport.close()
        await self._resolver.close()
        log.info("worker.stopped")

    def wake(self) -> None:
        """Makes every loop look for work now."""
        for loop in self._working:
            loop.waker.wake()

    async def _fan_out_events(self) -> bool:
        async def step(customers: Customers) -> tuple[int, int]:
            async with self._database.connection(WORKER) as connection:
                return await fan_out_events(connection, _EVENTS_AT_ONCE, customers)

        made = await self._shard_groups.run(CUSTOMERS_WAITING, step)
        events, deliveries = _added(made)
        if events:
            self._reporting.waker.wake()
        if deliveries:
            metrics.FANNED_OUT.labels("delivery").inc(deliveries)
            self._wake_delivering()
        return any(taken == _EVENTS_AT_ONCE for taken, _ in made)

    async def _fan_out_mail(self) -> bool:
        async def step(customers: Customers) -> tuple[int, int]:
            async with self._database.transaction(WORKER) as connection:
                return await fan_out_mail(connection, _MAIL_JOBS_AT_ONCE, customers)

        jobs, made = _added(await self._shard_groups.run(CUSTOMERS_MAILED, step))
        if made:
            metrics.FANNED_OUT.labels("message").inc(made)
            self._wake_mailing()
        return jobs > 0

    async def _report(self) -> bool:
        async def step(customers: Customers) -> int:
            async with self._database.transaction(WORKER) as connection:
                acting = Acting(by_worker("reports"), await self._open_chains(connection))
                return await apply_changes(connection, acting, customers=customers)

        return any(await self._shard_groups.run(CUSTOMERS_CHANGED, step))

    async def _open_chains(self, connection: Connection) -> Chains:
        # A new installation gets its keys as the first process serves.
        if self._chains is None or not self._chains.moves.has_keys:
            self._chains = await open_chains(connection, self._vault, keep=False)
        return self._chains

    async def _deliver(self) -> bool:
        return await self._deliverer.step(failing=False)

    async def _deliver_failing(self) -> bool:
        return await self._deliverer.step(failing=True)

    async def _listen(self) -> bool:
        await listen(self._database, self.wake)
        return False

    async def _renew_subscription_queues(self) -> bool:
        await self._deliverer.renew()
        return False

    async def _renew_messages(self) -> bool:
        await self._desk.renew()
        return False

    async def _measure(self) -> bool:
        async with self._database.connection(WORKER) as connection:
            await housekeeping.measure(connection)
        return False

    async def _prune(self) -> bool:
        async with self._database.connection(WORKER) as connection:
            return await housekeeping.prune(connection)

    async def _measure_inventory(self) -> bool:
        async with self._database.connection(WORKER) as connection:
            await measure_inventory(connection)
        return False

    async def _prune_guesses(self) -> bool:
        async with self._database.connection(WORKER) as connection:
            await prune_guesses(connection)
        return False

    async def _expire_gifts(self) -> bool:
        async def step(customers: Customers) -> bool:
            async with self._database.transaction(WORKER) as connection:
                return await expire_late(connection, customers)

        return any(await self._shard_groups.run(CUSTOMERS_LATE, step))

    async def _allocate_waiting(self) -> bool:
        """Imports serve those who wait; this is for numbers that came free in another way."""
        await allocate_all_waiting(self._database, self._vault)
        return False

    async def _release_held(self) -> bool:
        async with self._database.transaction(WORKER) as connection:
            released = await requeue.release(connection)
        if released:
            log.info("mail.released", messages=released)
            self._wake_mailing()
        return False

    async def _watch_balances(self) -> bool:
        async def step(customers: Customers) -> int:
            async with self._database.transaction(WORKER) as connection:
                return await queue_low_balances(connection, customers)

        mails = sum(await self._shard_groups.run(CUSTOMERS_WATCHING, step))
        if mails:
            log.info("balances.low", mails=mails)
        return False

    def _wake_mailing(self) -> None:
        for loop in self._mailing:
            loop.waker.wake()

    def _wake_delivering(self) -> None:
        """A queue was filled or freed; which room it is in now, its outcomes decide."""
        for loop in self._delivering:
            loop.waker.wake()


def _added(made: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """What was taken and what was made of it, in all."""
    all_made = list(made)
    return sum(taken for taken, _ in all_made), sum(count for _, count in all_made)


async def _end(tasks: Sequence[asyncio.Task[None]], longest_s: float) -> None:
    """Waits for tasks that are about to end; those that do not are cancelled."""
    _, late = await asyncio.wait(tasks, timeout=longest_s)
    if late:
        log.error("worker.cut_short", loops=len(late))
        for task in late:
            task.cancel()
        await asyncio.wait(late, timeout=_LAST_WORDS_S)


async def _cancel(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Cancels tasks and waits for them; again and again, as the driver may turn a cancellation into an error of its own."""
    running: set[asyncio.Task[None]] = set(tasks)
    while running:
        for task in running:
            task.cancel()
        _, running = await asyncio.wait(running, timeout=_CANCEL_AGAIN_S)


def _people_mailer(database: Database, settings: Settings) -> PeopleMailer:
    assert settings.smtp_url is not None, "there is a mail server"
    transport = SmtpTransport(MailServer.from_url(settings.smtp_url))
    return PeopleMailer(database, transport, public_url=by_name(settings.public_url), mail_from=settings.mail_from)


def _mailers(
    database: Database, settings: Settings, vault: Vault, desk: MessageLeases, *, captures: bool
) -> list[Mailer]:
    """One for each connection to the mail server; a single one, which sends nothing, where there is none."""
    server = MailServer.from_url(settings.smtp_url) if settings.smtp_url is not None else None
    return [
        Mailer(
            database,
            vault,
            public_url_of=settings.public_url_of,
            mail_from=settings.mail_from,
            transport=SmtpTransport(server) if server is not None else None,
            captures=captures,
            desk=desk,
        )
        for _ in range(MAIL_CONNECTIONS if server is not None else 1)
    ]
