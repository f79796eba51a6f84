"""What is broken on purpose about the back office, and which check must find it."""

from __future__ import annotations

from tests.verify.corruption import corruption as _c

_REQUEST = """
    INSERT INTO privacy_requests (id, kind, received_on, due_on, done_at, outcome, erasure_id)
    VALUES (77, '{kind}', '2030-01-01', '2030-01-31', now(), '{outcome}', {erasure})
"""

STAFF_CORRUPTIONS = (
    # Somebody whom nobody invited.
    _c(
        "staff-roles-are-recorded",
        None,
        "INSERT INTO staff (email, email_key, name, role) VALUES ('eve@x.example', 'eve@x.example', 'Eve', 'owner')",
    ),
    _c("privacy-requests-are-done", ("77",), _REQUEST.format(kind="export", outcome="done", erasure="NULL")),
    _c("privacy-requests-are-done", ("77",), _REQUEST.format(kind="erase", outcome="declined", erasure="NULL")),
    _c("privacy-requests-are-done", ("77",), _REQUEST.format(kind="erase", outcome="done", erasure="9999")),
)
