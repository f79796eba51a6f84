"""The worker's tasks for webhooks, and their encrypted columns. Also erases an address from stored answers, as receivers may echo anything."""

from largesse.base.email import email_key
from largesse.db.pool import Connection
from largesse.db.scope import WORKER
from largesse.db.shard_groups import Customers
from largesse.db.statements import count_changed, plan_by_index
from largesse.encryption.columns import SealedTable, sealed_column
from largesse.events.store import CUSTOMERS_WAITING
from largesse.jobs import metrics
from largesse.jobs.registry import DueTimes, Old, PeriodicTask, RoomTasks, Waiting, WorkerContext, with_connection
from largesse.webhooks import queues
from largesse.webhooks.queues import fan_out
from largesse.webhooks.store import cancel_rest, secret_context

_EVENTS_AT_ONCE = 500


async def erase_from_answers(connection: Connection, email: str, customer_id: int | None) -> int:
    """Deletes the answers to one customer or to all that contain the address, and returns how many. Reads all stored answers."""
    return await count_changed(connection, queues.ERASE_ANSWERS, email_key(email), customer_id)


def _sealed_secrets(column: str) -> SealedTable:
    return sealed_column(
        "webhook_subscriptions",
        column,
        {"customer_id": "int", "id": "uuid"},
        lambda vault: vault.webhooks,
        lambda row: secret_context(row["id"]),
    )


SECRETS, PREVIOUS_SECRETS = _sealed_secrets("sealed_secret"), _sealed_secrets("previous_secret")


async def end_previous_secrets(connection: Connection) -> None:
    """Deletes the previous secrets of subscriptions whose rotation is over."""
    async with connection.transaction():
        await plan_by_index(connection)
        await connection.execute(queues.END_PREVIOUS_SECRETS)


async def _fan_out_events(context: WorkerContext) -> bool:
    async def step(customers: Customers) -> tuple[int, int]:
        return await context.database.read(WORKER, fan_out, _EVENTS_AT_ONCE, customers)

    made = await context.shard_groups.run(CUSTOMERS_WAITING, step)
    if any(events for events, _ in made):
        context.wake("report")
    if deliveries := sum(deliveries for _, deliveries in made):
        metrics.FANNED_OUT.labels("delivery").inc(deliveries)
        context.wake("deliver", "deliver_failing")
    return any(events == _EVENTS_AT_ONCE for events, _ in made)


TASKS = RoomTasks(
    periodic=(
        PeriodicTask("fan_out_events", _fan_out_events, finishes=True, on_orders=True),
        PeriodicTask("end_previous_secrets", with_connection(end_previous_secrets), every_s=60.0),
        # It looks at each subscription with pending deliveries, and seldom finds a deleted one.
        PeriodicTask("cancel_deliveries", with_connection(cancel_rest), every_s=300.0),
    ),
    retention=(
        Old("delivery_attempts", "started_at", 30),
        Old("deliveries", "created_at", 30, "state <> 'pending'"),
        # A delivery that still waits is deleted before its event, which it needs. That happens only if no worker has run for a month.
        Old("deliveries", "created_at", 34),
    ),
    queues=(
        Waiting(
            "deliveries",
            "state = 'pending'",
            "deliveries_pending",
            "customer_id, subscription_id, due_at",
            oldest=queues.OLDEST,
        ),
    ),
    gauges=(
        (
            metrics.FAILING_SUBSCRIPTIONS,
            Waiting("subscription_queues", "failing", "subscription_queues_failing", "subscription_id"),
        ),
    ),
    due_times=(
        DueTimes(
            "deliveries",
            ("due_at",),
            "state = 'pending'",
            staging="subscription_id IN ("
            "SELECT id FROM webhook_subscriptions WHERE customer_id = $1 AND environment = 'staging')",
            before=queues.WAKE_STAGING,
        ),
        DueTimes("webhook_subscriptions", ("previous_until",), "previous_secret IS NOT NULL"),
    ),
)
