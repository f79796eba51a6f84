"""The time zone of a person's pages: their choice, otherwise their browser's zone, otherwise UTC."""

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
    """Returns the time zone of the pages. UTC if neither the person nor the browser names a zone that this machine knows."""
    chosen = session.zone if session else None
    try:
        return ZoneInfo(chosen) if chosen else ZoneInfo(browser_zone(request) or "UTC")
    except ZoneInfoNotFoundError:
        return UTC


def browser_zone(request: Request) -> str:
    """Returns the time zone that the browser named; empty if this machine does not know it, or there is none."""
    given = request.cookies.get(BROWSER_ZONE, "")
    return given if given in known_zones() else ""


def is_zone_unknown(request: Request, session: SignedIn | None) -> bool:
    """Returns whether neither the person nor the browser named a time zone. The page then asks the person."""
    return session is not None and not session.zone and not browser_zone(request)


def zone_choices(chosen: str) -> list[str]:
    """Returns the zones to choose from: those with the name of a region, and the chosen one."""
    return sorted({*(name for name in known_zones() if name.partition("/")[0] in _PLACES), chosen} - {"", "UTC"})


@cache
def known_zones() -> frozenset[str]:
    """Returns all time zones that this machine knows."""
    return frozenset(available_timezones())
