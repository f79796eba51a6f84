"""Retention of the back office's sign-in data, and key rotation for the secrets of second steps."""

from largesse.customers.second_step import totp_context
from largesse.encryption.columns import sealed_column
from largesse.jobs.registry import Old, RoomTasks
from largesse.staff.store import SIGN_IN

SECOND_STEPS = sealed_column(
    "staff", "totp", {"id": "int"}, lambda vault: vault.second_steps, lambda row: totp_context(row["id"], SIGN_IN)
)

TASKS = RoomTasks(
    retention=(
        Old("staff_form_posts", "posted_at", days=1),
        Old("staff_sessions", "ends_at", days=30),
        Old("staff_links", "ends_at", days=30),
    )
)
