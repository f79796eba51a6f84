"""The packages whose tasks the worker runs, and their maintenance: pruning old rows and measuring queues."""

from largesse.approvals import tasks as approvals
from largesse.automations import tasks as automations
from largesse.campaigns import tasks as campaigns
from largesse.catalogue import tasks as catalogue
from largesse.contacts import tasks as contacts
from largesse.customers import tasks as customers
from largesse.db.pool import Connection
from largesse.db.statements import plan_by_index
from largesse.drafts import tasks as drafts
from largesse.events import tasks as events
from largesse.fulfilment import tasks as fulfilment
from largesse.jobs import registry
from largesse.jobs.registry import PeriodicTask, RoomTasks, with_connection
from largesse.lab import tasks as lab
from largesse.lines import tasks as lines
from largesse.mail import tasks as mail
from largesse.orders import tasks as orders
from largesse.privacy import tasks as privacy
from largesse.reports import tasks as reports
from largesse.request_log import tasks as request_log
from largesse.staff import tasks as staff
from largesse.suppliers import tasks as suppliers
from largesse.webhooks import tasks as webhooks

_MEASURE_EVERY_S = 5.0
_PRUNE_EVERY_S = 60.0


async def prune(connection: Connection) -> bool:
    """Deletes a batch of old rows from each table. Returns True if there may be more."""
    return await registry.prune(connection, RETENTION)


async def measure(connection: Connection) -> None:
    """Sets the gauges of the clock and of what waits."""
    async with connection.transaction():
        await plan_by_index(connection)
        await registry.measure_clock(connection)
        await registry.measure(connection, [queue for room in ROOMS for queue in room.queues])
        for gauge, waiting in [pair for room in ROOMS for pair in room.gauges]:
            gauge.set(await registry.count(connection, waiting))


ROOMS = (
    lines.TASKS,
    catalogue.TASKS,
    orders.TASKS,
    fulfilment.TASKS,
    suppliers.TASKS,
    webhooks.TASKS,
    mail.TASKS,
    events.TASKS,
    drafts.TASKS,
    approvals.TASKS,
    automations.TASKS,
    campaigns.TASKS,
    contacts.TASKS,
    privacy.TASKS,
    reports.TASKS,
    customers.TASKS,
    staff.TASKS,
    request_log.TASKS,
    lab.TASKS,
    RoomTasks(
        periodic=(
            PeriodicTask("measure", with_connection(measure), every_s=_MEASURE_EVERY_S),
            PeriodicTask("prune", with_connection(prune), every_s=_PRUNE_EVERY_S),
        )
    ),
)
RETENTION = [old for room in ROOMS for old in room.retention]
DUE_TIMES = [due for room in ROOMS for due in room.due_times]
