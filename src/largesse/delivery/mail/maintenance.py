"""What is old, and what waits, in the tables of mail."""

from __future__ import annotations

from largesse.delivery.queue.maintenance import Old, Waiting

OLD = (Old("captured_mail", "captured_at", 30),)
QUEUES = (
    Waiting("mail_jobs", "fanned_out_at IS NULL", "mail_jobs_waiting", "due_at"),
    Waiting("messages", "state = 'pending'", "messages_pending", "rank_at"),
)
HELD = Waiting("messages", "state = 'held'", "messages_held", "rank_at")
