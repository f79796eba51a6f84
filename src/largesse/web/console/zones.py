"""The time zone of a person's pages: the one they chose, otherwise their browser's, otherwise UTC."""

from __future__ import annotations

from datetime import UTC, tzinfo
from functools import cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from starlette.requests import Request

from largesse.customers.sessions import SignedIn

BROWSER_ZONE = "largesse_zone"  # a cookie that console.js sets to the browser's time zone
_PLACES = frozenset(
    ("Africa", "America", "Antarctica", "Arctic", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific")
)


def zone_of(request: Request, session: SignedIn | None) -> tzinfo:
    """Returns the time zone of the pages. UTC if neither the person nor the browser names one that the machine knows."""
    chosen = session.zone if session else None
    try:
        return ZoneInfo(chosen) if chosen else ZoneInfo(browser_zone(request) or "UTC")
    except ZoneInfoNotFoundError:
        return UTC


def browser_zone(request: Request) -> str:
    """Returns the time zone that the browser named; empty if it named none that we know."""
    given = request.cookies.get(BROWSER_ZONE, "")
    return given if given in known_zones() else ""


def is_zone_unknown(request: Request, session: SignedIn | None) -> bool:
    """Returns whether neither the person nor the browser named a time zone, so that the person is asked."""
    return session is not None and not session.zone and not browser_zone(request)


def zone_choices(chosen: str) -> list[str]:
    """Returns the zones that people choose from: those of places, and the chosen one."""
    return sorted({*(name for name in known_zones() if name.partition("/")[0] in _PLACES), chosen} - {"", "UTC"})


@cache
def known_zones() -> frozenset[str]:
    """Returns all time zones that the machine knows."""
    return frozenset(available_timezones())
