"""Figures on cards: a value, its change, and a small line of its history."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from babel.numbers import format_percent
from markupsafe import Markup

if TYPE_CHECKING:
    from largesse.web.console.context import PageContext

_MOST_TIMES = 10  # more growth is not shown as a percentage


@dataclass(frozen=True, slots=True)
class Change:
    """The change of a figure: `direction` is 1, 0 or -1, and `by` is the amount, such as `12 %` or `4 points`."""

    direction: int
    by: str


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure on a card. `against` names the period that it is compared with."""

    label: str
    value: str
    change: Change | None = None
    against: str = ""
    note: str = ""
    path: str = ""  # of the page with details
    line: Markup = Markup()  # noqa: RUF009 - empty


def change_of(context: PageContext, now: int, before: int) -> Change | None:
    """Returns the change of a sum as a percentage. None if it was zero before, or is now more than _MOST_TIMES as high."""
    if before <= 0 or now > before * _MOST_TIMES:
        return None
    share = now / before - 1
    return Change((share > 0) - (share < 0), str(format_percent(abs(share), locale=context.language.locale)))


def change_of_share(context: PageContext, now: float, before: float) -> Change:
    """Returns the change of a share, in percentage points."""
    points = round(now * 100) - round(before * 100)
    by = context.ngettext("%(count)s point", "%(count)s points", abs(points))
    return Change((points > 0) - (points < 0), by)
