"""Instants as an operator types them."""

from __future__ import annotations

from datetime import UTC, datetime

from largesse.base import clock
from largesse.base.errors import StartError

HELP = "From when on: 2026-11-20 or 2026-11-20T08:30, in UTC unless it says otherwise (+01:00)."


def read_since(text: str) -> datetime:
    """The instant that --since gives. Raises StartError for one that is none, or lies in the future."""
    try:
        since = datetime.fromisoformat(text.strip())
        since = since.replace(tzinfo=UTC) if since.tzinfo is None else since.astimezone(UTC)
    except (ValueError, OverflowError):
        raise StartError("--since must be an instant such as 2026-11-20 or 2026-11-20T08:30+01:00") from None
    if since > clock.now():
        raise StartError("--since must not lie in the future")
    return since
