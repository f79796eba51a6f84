"""Places the due gifts of automations. Serving processes do this: one of them takes a run for some minutes.

A run gets the state `placing` before its order is placed, and counts towards the cap from then on. If the process dies, another one takes the run
again, if the gift is still due. The external reference of the order has rule, contact and day, so that it is not sent twice.
"""

import asyncio
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import msgspec
import structlog
from msgspec.structs import replace

from largesse.automations import model, run_store, store
from largesse.automations.service import CostsMore, ask_again
from largesse.base import errors
from largesse.customers.authenticator import Caller, person_calls
from largesse.db.pool import DATABASE_FAILED, Connection, Database, Row
from largesse.db.scope import LOOKUP, for_customer
from largesse.jobs.outbox import mail_users
from largesse.orders.follow_ups import read_defaults
from largesse.orders.order import Order
from largesse.orders.recipients import Recipient
from largesse.orders.request import SendRequest, TemplateChoice, send_request
from largesse.orders.service import OrderService

RUNS_AT_ONCE = 50
_SIDE_BY_SIDE = 8
TAKEN_FOR_S = 120.0
_EVERY_S = 15.0
_AGAIN_AFTER = timedelta(hours=1)
_TURN = timedelta(seconds=5)  # how long a gift waits for earlier ones of the month
_MADE_UP = timedelta(days=model.MADE_UP_DAYS)
_MOST_REASON = 300  # characters
_MAILED_AFTER_S = 300.0  # how long a mail about a refused gift waits, so that it counts the day's others

log = structlog.get_logger(__name__)


class AutomationRunner:
    """Places the due runs of an environment until it is closed."""

    def __init__(self, database: Database, orders: OrderService, environment: str) -> None:
        self._database = database
        self._orders = orders
        self._environment = environment
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to look for due runs."""
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Finishes the current runs, then ends."""
        self._closing.set()
        if self._task is not None:
            await self._task

    async def step(self) -> bool:
        """Places the next due runs. Returns whether there were any."""
        async with self._database.transaction(LOOKUP) as connection:
            keys = await run_store.take_runs(connection, self._environment, RUNS_AT_ONCE, TAKEN_FOR_S)
        slots = asyncio.Semaphore(_SIDE_BY_SIDE)

        async def place(key: model.RunKey) -> None:
            async with slots:
                await self._place(key)

        await asyncio.gather(*(place(key) for key in keys))
        return bool(keys)

    async def _run(self) -> None:
        while not self._closing.is_set():
            try:
                if await self.step():
                    continue
            except DATABASE_FAILED:
                log.warning("automations.waiting", why="the database is away")
            except Exception:
                log.exception("automations.failed")
            try:
                await asyncio.wait_for(self._closing.wait(), _EVERY_S)
            except TimeoutError:
                continue

    async def _place(self, key: model.RunKey) -> None:
        """Places one run, or records why not."""
        try:
            prepared = await self._prepare(key)
            if prepared is not None:
                await self._send(key, *prepared)
        except DATABASE_FAILED:
            raise
        except Exception:  # the other runs go on, and this one is tried again
            log.exception("automation_run.failed", customer=key.customer_id, automation=key.automation_id)

    async def _prepare(self, key: model.RunKey) -> tuple[Caller, model.Automation, SendRequest, datetime] | None:
        """Records that the run is being placed. Returns caller, automation and request of its order, and until when to try; None if it must not be placed."""
        async with self._database.transaction(for_customer(key.customer_id, self._environment)) as connection:
            automation = await store.lock_automation(
                connection, (key.customer_id, self._environment), key.automation_id
            )
            run = await run_store.lock_run(connection, key)
            if automation is None or run is None:
                return None
            order = await run_store.find_order(connection, key, self._environment)
            if order is not None:  # a process placed the order, and died before it recorded this
                await run_store.set_run(connection, key, model.PLACED, order_reference=order)
                return None
            contact = await run_store.read_contact(connection, key, automation.group_id)
            until = run["due_at"] + _MADE_UP
            used, before, again_at = 0, 0, None
            if automation.cap is not None:
                used, before, again_at = await run_store.count_used(connection, key, run["send_on"])
            given = await run_store.find_given(connection, key.customer_id, key.automation_id, [key.contact_id])
            days = given.get(key.contact_id, [])
            if run["state"] == model.PLACING:  # a process died before it placed the order
                days.remove(key.on_day)
            verdict = _verdict(
                automation, contact, key, now=run["now"], until=until, used=used, earlier=run["reason"], given=days
            )
            if verdict is not None:
                await _record(connection, key, run, *verdict, run["now"] + _AGAIN_AFTER)
                return None
            if run["state"] == model.WAITING and automation.cap is not None and used + before >= automation.cap:
                look_at = max(again_at or run["now"], run["now"]) + _TURN  # earlier gifts come first
                await run_store.set_run(connection, key, model.WAITING, reason=run["reason"], look_at=look_at)
                return None
            assert contact is not None, "without one, nothing is sent"
            try:
                caller = await person_calls(
                    connection,
                    user_id=automation.user_id,
                    customer_id=key.customer_id,
                    environment=self._environment,
                    session_id=None,
                )
            except errors.Unauthorized as refusal:
                await _try_again(connection, key, run, until, refusal.detail)
                return None
            await run_store.set_run(connection, key, model.PLACING)
        principal = replace(caller.principal, automation_id=automation.id)
        caller = msgspec.structs.replace(caller, principal=principal)
        return caller, automation, _request(caller, automation, key, contact[0], contact[1]), until

    async def _send(
        self, key: model.RunKey, caller: Caller, automation: model.Automation, request: SendRequest, until: datetime
    ) -> None:
        reason, reference, refusal = None, None, None
        most = automation.approved_minor if automation.asks_approval else None

        def check(order: Order) -> None:
            if most is not None and order.total_minor > most:
                raise CostsMore("The gift costs more than when the automation was approved.")

        try:
            reference = (await self._orders.send(caller, request, check=check)).reference
        except errors.ReferenceUsed as used:
            reference = used.holder
        except errors.Problem as problem:
            reason, refusal = _reason(problem), problem
        async with self._database.transaction(for_customer(key.customer_id, self._environment)) as connection:
            if reference is not None and not await run_store.is_of_automation(connection, key.customer_id, reference):
                reason = f"Order {reference} has the reference {key.external_reference}."
            if reason is not None:  # lock the automation before the run, as others do
                await store.lock_automation(connection, (key.customer_id, self._environment), key.automation_id)
            asks_again = refusal is not None and await ask_again(connection, automation, refusal)
            run = await run_store.lock_run(connection, key)
            if reason is None:  # also if another process decided meanwhile that it is not due any more
                await run_store.set_run(connection, key, model.PLACED, order_reference=reference)
            elif run is not None:
                await _try_again(connection, key, run, until, model.NOT_APPROVED if asks_again else reason)


async def _try_again(connection: Connection, key: model.RunKey, run: Row, until: datetime, reason: str) -> None:
    """Records why a gift could not be placed. It is tried again while there is time, else it has failed."""
    again_at = run["now"] + _AGAIN_AFTER
    is_late = again_at > until
    state = model.FAILED if is_late else model.WAITING
    await _record(connection, key, run, state, reason, None if is_late else again_at)


async def _record(
    connection: Connection, key: model.RunKey, run: Row, state: str, reason: str | None, look_at: datetime | None
) -> None:
    """Saves the state of a gift that is not sent now. Mails that it was refused or missed, if it is the first one of its day."""
    await run_store.set_run(connection, key, state, reason=reason, look_at=look_at)
    # Approvers are mailed when an automation begins to wait for them.
    if state in {model.FAILED, model.MISSED} or (state == model.WAITING and reason != model.NOT_APPROVED):
        user_ids = await run_store.mark_mailed(connection, key, run["send_on"])
        await mail_users(
            connection, "automation_refused", user_ids, automation_id=key.automation_id, delay_s=_MAILED_AFTER_S
        )


def _verdict(
    automation: model.Automation,
    contact: tuple[str, str | None, model.Days] | None,
    key: model.RunKey,
    *,
    now: datetime,
    until: datetime,
    used: int,
    earlier: str | None,
    given: Sequence[date],
) -> tuple[str, str | None] | None:
    """Returns the state of a due gift that is not sent now, and why; None if it is sent. `used` is the number of the month's gifts, `earlier` the reason
    why it could not be placed before, `given` the days for which the contact got gifts."""
    if contact is None or not contact[2].is_active:
        return model.SKIPPED, model.LEFT
    if automation.paused_at is not None or automation.ended_at is not None:
        return model.SKIPPED, model.PAUSED
    if not model.has_day(automation, contact[2], key.on_day):
        return model.SKIPPED, model.CHANGED
    if model.is_again(key.on_day, given):
        return model.SKIPPED, model.AGAIN
    if automation.state == "asks":
        return (model.WAITING if now <= until else model.FAILED), model.NOT_APPROVED
    if automation.cap is not None and used >= automation.cap:  # also if it is late already
        return model.SKIPPED, model.CAP
    if now > until:
        return (model.FAILED, earlier) if earlier is not None else (model.MISSED, None)
    return None


def _reason(problem: errors.Problem) -> str:
    """Returns why a gift could not be placed: a code that pages translate, or the text of the problem."""
    match problem:
        case errors.InsufficientBalance():
            return model.BALANCE
        case errors.ApprovalRequired():
            return f"{model.APPROVAL}:{', '.join(problem.rules)}"[:_MOST_REASON]
        case errors.BudgetExceeded(per_gift_minor=None):
            return f"{model.BUDGET}:{problem.currency}:{problem.left_minor or 0}:{problem.budget}"
        case errors.BudgetExceeded():
            return f"{model.PER_GIFT}:{problem.currency}:{problem.per_gift_minor}:{problem.budget}"
    return problem.detail[:_MOST_REASON]


def _request(
    caller: Caller, automation: model.Automation, key: model.RunKey, email: str, name: str | None
) -> SendRequest:
    """Returns the request of the order: the template, with the customer's settings for unclaimed gifts."""
    defaults = read_defaults(caller.follow_up)
    return send_request(
        TemplateChoice(automation.template_id),
        None,
        account_id=automation.account_id,
        recipients=[Recipient(email, name)],
        source=model.SOURCE,
        external_reference=key.external_reference,
        placeholders=True,
        claim_by=defaults.claim_by(caller.now, ZoneInfo(automation.zone)),
        reminder_days=list(defaults.reminder_days or ()),
    )
