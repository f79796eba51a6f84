"""Checks of the back office: who may be there, as which role, and what was done with requests about personal data."""

from __future__ import annotations

from largesse.verify.check import Check

STAFF = (
    Check(
        "staff-roles-are-recorded",
        "The audit log says that an active member of staff was invited, and last gave them the role that they have.",
        "SELECT staff_unrecorded()",
    ),
    Check(
        "privacy-requests-are-done",
        "The audit log says that a request about personal data that is done was finished; one to erase has its receipt.",
        "SELECT privacy_requests_unrecorded()",
    ),
)
