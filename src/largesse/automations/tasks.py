"""The tasks of automations: the worker plans the next days. In staging, the test clock brings them forward."""

from datetime import timedelta

from asyncpg import QueryCanceledError

from largesse.automations import store
from largesse.automations.model import MADE_UP_DAYS, PLANNED_DAYS
from largesse.automations.service import country_zones
from largesse.db.pool import Connection
from largesse.db.scope import WORKER
from largesse.jobs.registry import DueTimes, Old, PeriodicTask, RoomTasks, Waiting, WorkerContext

_AT_ONCE = 20  # automations per statement, which must end in time: each may have gifts for 200,000 contacts
_ALONE_S = 300  # the time limit of a statement for a single automation


async def plan(context: WorkerContext) -> bool:
    """Plans some due automations: each once an hour, so that new contacts are included. Returns whether there may be more.

    After a statement that took too long, the worker's next ones plan fewer, so that large customers stop no others.
    """
    at_once = context.at_once.get("plan", _AT_ONCE)
    time_s = _ALONE_S if at_once == 1 else None
    try:
        async with context.database.transaction(WORKER) as connection:
            planned, _ = await store.plan_due(
                connection, country_zones(), most=at_once, ahead=PLANNED_DAYS, back=MADE_UP_DAYS, time_s=time_s
            )
    except (QueryCanceledError, TimeoutError):
        if at_once == 1:
            raise
        context.at_once["plan"] = at_once // 2
        return True
    context.at_once["plan"] = min(2 * at_once, _AT_ONCE)
    return planned > 0


async def plan_before_clock(connection: Connection, customer_id: int, by: timedelta) -> None:
    """Plans the days of a period before the test clock skips it for a customer in staging."""
    await store.plan_ahead(connection, country_zones(), customer_id, ahead=PLANNED_DAYS, by=by)


TASKS = RoomTasks(
    periodic=(PeriodicTask("plan_automations", plan, every_s=60.0),),
    retention=(Old("automation_runs", "ended_at", days=400),),
    # A gift that waits for its customer, such as for an approval, keeps its `due_at` and is looked at again later.
    queues=(
        Waiting(
            "automation_runs", "state IN ('waiting', 'placing')", "automation_runs_due", "look_at", since="look_at"
        ),
    ),
    due_times=(DueTimes("automation_runs", ("look_at", "due_at"), "state = 'waiting'", prepare=plan_before_clock),),
)
