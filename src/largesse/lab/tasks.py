"""Claims gifts for recipients of the test lab whose address does that automatically."""

import structlog

from largesse.db.pool import DATABASE_AWAY, commit_as_one
from largesse.db.scope import WORKER
from largesse.jobs.registry import PeriodicTask, RoomTasks, WorkerContext
from largesse.lab.service import take_first
from largesse.lines.states import LineKey
from largesse.mail.mailbox import ClaimingMail, end_claiming, list_claiming

_AT_ONCE = 50
_EVERY_S = 1.0

log = structlog.get_logger(__name__)


async def _claim_gifts(context: WorkerContext) -> bool:
    waiting = await context.database.read(WORKER, list_claiming, _AT_ONCE)
    for mail in waiting:
        try:
            await _claim_gifts_of(context, mail)
        except DATABASE_AWAY:
            raise
        except Exception:
            # The others go on, and these gifts can be claimed by hand.
            log.exception("test_gift.not_claimed", customer=mail.customer_id, order=mail.order_id)
            async with context.database.connection(WORKER) as connection:
                await end_claiming(connection, mail)
    if waiting:
        context.wake("fan_out_events")
    return len(waiting) == _AT_ONCE


async def _claim_gifts_of(context: WorkerContext, mail: ClaimingMail) -> None:
    async with context.database.transaction(WORKER) as connection:
        await commit_as_one(connection)
        for number in sorted(mail.line_numbers):
            key = LineKey(mail.customer_id, mail.order_id, number)
            await take_first(connection, context.vault, key, context.default_expiry_days)
        await end_claiming(connection, mail)


TASKS = RoomTasks(periodic=(PeriodicTask("claim_test_gifts", _claim_gifts, every_s=_EVERY_S),))
