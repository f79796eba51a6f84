"""Figures that are read across a room: a value, how it changed, and a small line of its past."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from babel.numbers import format_percent
from markupsafe import Markup

if TYPE_CHECKING:
    from largesse.web.console.context import PageContext

_MOST_TIMES = 10  # a growth beyond that says nothing as a percentage


@dataclass(frozen=True, slots=True)
class Change:
    """How a figure changed: `direction` is 1, 0 or -1, `by` says how much, such as `12 %` or `4 points`."""

    direction: int
    by: str


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a card. `against` names the time that its change is against."""

    label: str
    value: str
    change: Change | None = None
    against: str = ""
    note: str = ""
    path: str = ""  # of the page with more about it
    line: Markup = Markup()  # noqa: RUF009 - empty


def change_of(context: PageContext, now: int, before: int) -> Change | None:
    """Returns how a sum changed, as a percentage. None where there was nothing before, or so little that the percentage means nothing."""
    if before <= 0 or now > before * _MOST_TIMES:
        return None
    share = now / before - 1
    return Change((share > 0) - (share < 0), str(format_percent(abs(share), locale=context.language.locale)))


def change_of_share(context: PageContext, now: float, before: float) -> Change:
    """Returns how a share changed, in points of a hundred."""
    points = round(now * 100) - round(before * 100)
    by = context.ngettext("%(count)s point", "%(count)s points", abs(points))
    return Change((points > 0) - (points < 0), by)
