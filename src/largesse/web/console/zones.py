"""The time zones that people choose from."""

from __future__ import annotations

from functools import cache
from zoneinfo import available_timezones

_PLACES = frozenset(
    (
        "Africa",
        "America",
        "Antarctica",
        "Arctic",
        "Asia",
        "Atlantic",
        "Australia",
        "Europe",
        "Indian",
        "Pacific",
    )
)


def zone_choices(chosen: str) -> list[tuple[str, str]]:
    """Pairs of value and label: UTC, the zones of places, and the one that is chosen, whatever it is."""
    names = sorted({*_of_places(), chosen} - {""})
    return [("", "UTC"), *((name, name.replace("_", " ")) for name in names)]


@cache
def known_zones() -> frozenset[str]:
    """All zones that the machine knows."""
    return frozenset(available_timezones())


@cache
def _of_places() -> frozenset[str]:
    return frozenset(name for name in known_zones() if name.partition("/")[0] in _PLACES)
