"""Delivers webhooks: takes queues, makes their attempts, and writes the outcomes in batches.

There are two lanes. A subscription whose last attempt failed is in the failing lane until an attempt succeeds. All others are in
the first lane. So slow and dead receivers delay only each other.

One customer's receivers may fill a lane. Then places in reserve take the queues of customers who have few in it, so that others do not wait.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence

import msgspec
import structlog

from largesse.base import clock
from largesse.db.pool import Database
from largesse.db.scope import WORKER
from largesse.encryption.vault import Vault
from largesse.jobs import metrics
from largesse.jobs.leases import LEASE_S, Lease, StillHeldError, Terms
from largesse.jobs.recorder import LAST_TRIES_S, Recorder
from largesse.webhooks.outcomes import MAX_ATTEMPTS, Attempted, judge, record
from largesse.webhooks.queues import SUBSCRIPTION_QUEUES, Job, SubscriptionQueue, take_queues
from largesse.webhooks.signing import Signer
from largesse.webhooks.store import secret_context
from largesse.webhooks.transport import HttpTransport

IN_FLIGHT = 4  # attempts of one subscription at the same time
QUEUES_AT_ONCE = 128  # queues of any customers in each lane of one worker
RESERVE = 32  # more queues in a full lane, of customers with fewer than _FEW queues in it
_FEW = 4
_TURN_S = 5.0  # after this time, a queue starts no more attempts, and others go first
_JOBS_A_TURN = 512
_JOBS_A_FAILING_TURN = 2 * IN_FLIGHT
# With so many jobs, a queue probably has more, so its outcomes are written at once and its next turn can begin.
_LONG_TURN_JOBS = 64

log = structlog.get_logger(__name__)

Report = Attempted | Lease  # an attempt whose outcome to write, or a queue to give back


class _Turn(msgspec.Struct):
    """The turn of one queue: its jobs, which several tasks attempt at the same time."""

    queue: SubscriptionQueue
    jobs: Iterator[Job]
    ends: float  # time.monotonic
    signer: Signer
    log: structlog.typing.FilteringBoundLogger
    writing: list[asyncio.Future[bool]] = []
    gone: bool = False


def _limit(lane: Collection[Lease]) -> tuple[int, list[int]]:
    """Returns how many more queues a lane may take, and the customers whose queues it may not take."""
    free = QUEUES_AT_ONCE - len(lane)
    if free > 0:
        return min(free, QUEUES_AT_ONCE // 4), []
    queues = Counter(lease.customer_id for lease in lane)
    return min(free + RESERVE, _FEW), [customer_id for customer_id, count in queues.items() if count >= _FEW]


class Deliverer:
    """Delivers the webhooks of a worker. `step` starts due deliveries. `close` ends the turns and gives the queues back.

    Calls `on_freed` at the end of each turn, since its queue may be due again.
    """

    def __init__(
        self,
        database: Database,
        vault: Vault,
        transport: HttpTransport,
        on_freed: Callable[[], None],
        *,
        lease_s: float = LEASE_S,
    ) -> None:
        self._database = database
        self._vault = vault
        self._transport = transport
        self._draining = False
        self._lanes: dict[bool, dict[Lease, asyncio.Task[None]]] = {False: {}, True: {}}
        self._on_freed = on_freed
        self._lease_s = lease_s
        self._recorder: Recorder[Report] = Recorder("webhook", self._write)

    async def step(self, *, failing: bool) -> bool:
        """Takes queues into a lane and starts their turns. Returns True if more may be due."""
        lane = self._lanes[failing]
        limit, without = _limit(lane)
        if limit <= 0 or self._draining or self._recorder.is_stuck:
            return False
        jobs_each = _JOBS_A_FAILING_TURN if failing else _JOBS_A_TURN
        terms = Terms(self._lease_s, {lease.key for lease in self._held})
        try:
            async with self._database.transaction(WORKER) as connection:
                taken = await take_queues(connection, limit, jobs_each, failing=failing, without=without, terms=terms)
        except StillHeldError:
            await self.renew()
            return False
        for queue in taken:
            lane[queue.lease] = asyncio.create_task(self._occupy(queue, failing))
        return bool(taken)

    async def renew(self) -> None:
        """Extends the leases of all turns."""
        if self._held:
            async with self._database.connection(WORKER) as connection:
                await SUBSCRIPTION_QUEUES.renew(connection, self._held, lease_s=self._lease_s)

    @property
    def _held(self) -> list[Lease]:
        """The leases of all turns."""
        return [lease for lane in self._lanes.values() for lease in lane]

    async def settle(self) -> None:
        """Waits until no turn is left."""
        while turns := [turn for lane in self._lanes.values() for turn in lane.values()]:
            await asyncio.wait(turns)

    def drain(self) -> None:
        """Starts no more attempts. Each queue is given back when its attempts in flight have ended."""
        self._draining = True
        self._recorder.hurry(self._transport.timeout_s + LAST_TRIES_S)

    async def close(self) -> None:
        """Drains, waits for the attempts in flight, which have a time-out, and writes all outcomes."""
        self.drain()
        await self.settle()
        await self._recorder.close()

    async def _occupy(self, queue: SubscriptionQueue, failing: bool) -> None:
        """Serves a queue for one turn. After an error the queue is not given back: it pauses until its lease ends."""
        try:
            if await self._take_turn(queue):
                await self._written([self._recorder.add(queue.lease)], queue)
        except Exception as error:
            log.exception("webhook.turn_failed", subscription_id=str(queue.subscription_id), error=type(error).__name__)
        finally:
            del self._lanes[failing][queue.lease]
            self._on_freed()

    async def _take_turn(self, queue: SubscriptionQueue) -> bool:
        """Makes the queue's attempts. Returns False if the outcome of one could not be written."""
        says = log.bind(subscription_id=str(queue.subscription_id))
        turn = _Turn(queue, iter(queue.jobs), clock.passed_s() + _TURN_S, self._signer(queue), says)
        await asyncio.gather(*(self._run(turn) for _ in range(min(IN_FLIGHT, len(queue.jobs)))))
        return await self._written(turn.writing, queue)

    async def _written(self, writing: Sequence[asyncio.Future[bool]], queue: SubscriptionQueue) -> bool:
        """Waits for outcomes. Returns False if one could not be written."""
        if len(queue.jobs) >= _LONG_TURN_JOBS:
            self._recorder.hasten()
        return all([await written for written in writing])

    def _signer(self, queue: SubscriptionQueue) -> Signer:
        secrets, context = self._vault.webhooks, secret_context(queue.subscription_id)
        previous = b"" if queue.previous_secret is None else secrets.open(queue.previous_secret, context)
        return Signer(secrets.open(queue.sealed_secret, context), previous)

    async def _run(self, turn: _Turn) -> None:
        """Makes one attempt after the other until the turn is over."""
        for job in turn.jobs:
            if turn.gone or self._draining or clock.passed_s() >= turn.ends:
                return
            if self._recorder.is_stuck:
                return  # outcomes cannot be written now, so the attempt would probably be repeated
            attempted = await self._attempt(turn, job)
            if attempted.verdict.outcome == "gone":
                turn.gone = True
            turn.writing.append(self._recorder.add(attempted))

    async def _attempt(self, turn: _Turn, job: Job) -> Attempted:
        headers = turn.signer.headers(job.id, job.event, job.body)
        result = await self._transport.post(turn.queue.target_url, job.body, headers, turn.queue.customer_id)
        number = MAX_ATTEMPTS - job.attempts_left + 1
        now = clock.now()
        verdict = judge(result, attempt=number, attempts_left=job.attempts_left, now=now)
        metrics.WEBHOOK_ATTEMPTS.labels(verdict.outcome).inc()
        metrics.WEBHOOK_SECONDS.observe(result.duration_s)
        if verdict.outcome == "delivered" and job.attempts == 0:
            metrics.WEBHOOK_DELAY_SECONDS.observe((now - job.created_at).total_seconds())
        turn.log.info(
            "webhook.attempt",
            delivery_id=job.id,
            order_id=job.order_id,
            attempt=job.attempts + 1,
            outcome=verdict.outcome,
            status=result.status,
            error=result.error,
            duration_ms=round(result.duration_s * 1000),
            retry_in_s=round(verdict.delay_s, 1) or None,
        )
        return Attempted(turn.queue, job, clock.passed_s(), result, verdict)

    async def _write(self, reports: list[Report]) -> None:
        attempted = [report for report in reports if isinstance(report, Attempted)]
        leaving = [report for report in reports if isinstance(report, Lease)]
        async with self._database.transaction(WORKER) as connection:
            await record(connection, attempted, leaving)
