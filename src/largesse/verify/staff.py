"""Checks of the back office: its members and their roles, and privacy requests."""

from __future__ import annotations

from largesse.verify.check import Check

STAFF = (
    Check(
        "staff-roles-are-recorded",
        "The audit log shows that each active member of staff was invited, and was given the role they have.",
        "SELECT staff_unrecorded()",
    ),
    Check(
        "privacy-requests-are-done",
        "The audit log shows that each privacy request marked as done was finished. Each erasure has its receipt.",
        "SELECT privacy_requests_unrecorded()",
    ),
)
