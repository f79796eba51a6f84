"""What of drafts is old and may go: those that nobody has touched for two weeks, with everybody who is in them."""

from __future__ import annotations

from largesse.delivery.queue.maintenance import Old

OLD = (
    Old("drafts", "changed_at", days=14),
    Old("draft_columns", "used_at", days=400),
)
