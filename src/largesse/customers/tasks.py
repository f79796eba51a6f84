"""The tasks of signing in: deletes old forms, sessions, links and counts of attempts, and ended views of customers' pages.

Also names the encrypted secrets of second steps for key rotation.
"""

from largesse.customers.second_step import totp_context
from largesse.encryption.columns import sealed_column
from largesse.jobs.registry import Old, RoomTasks

SECOND_STEPS = sealed_column(
    "people", "totp", {"id": "int"}, lambda vault: vault.second_steps, lambda row: totp_context(row["id"])
)

TASKS = RoomTasks(
    retention=(
        Old("form_posts", "posted_at", days=1),
        Old("sessions", "ends_at", days=30),
        Old("sign_in_links", "ends_at", days=30),
        Old("sign_in_allowances", "counted_at", days=1),
        Old("customer_views", "ends_at", days=30),
    )
)
