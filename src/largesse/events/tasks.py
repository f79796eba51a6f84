"""Retention of events, and the queues of events and of changed orders."""

from largesse.jobs.registry import Old, RoomTasks, Waiting

# An event outlives its deliveries: a delivery that is requested again on its last day still has all its attempts to make.
OLD = Old("events", "created_at", 35, also="fanned_out_at")
TASKS = RoomTasks(
    retention=(OLD,),
    queues=(
        Waiting("events", "fanned_out_at IS NULL", "events_waiting", "id", since="created_at"),
        Waiting("order_changes", "true", "order_changes_waiting", "id", since="changed_at"),
    ),
)
