"""What of signing in is old and may go: forms that were answered, sessions and links that ended, tries that are allowed again."""

from __future__ import annotations

from largesse.delivery.queue.maintenance import Old

OLD = (
    Old("form_posts", "posted_at", days=1),
    Old("sessions", "ends_at", days=30),
    Old("sign_in_links", "ends_at", days=30),
    Old("sign_in_allowances", "counted_at", days=1),
)
