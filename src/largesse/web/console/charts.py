"""Figures on cards, bar charts and small lines as SVG, each with a description in words. Pages show the numbers beside them.

Horizontal positions are percentages, so that text has the same size on every screen. Vertical positions are pixels.
"""

from collections.abc import Callable, Sequence

import msgspec
from babel.numbers import format_percent
from markupsafe import Markup, escape

from largesse.web.console.context import PageContext

_HEIGHT, _FLOOR, _CEILING = 240, 208, 24
_LABELS = 8
_NEAR_THE_END = 88  # percent of the width: labels after it are aligned to the right, so that they fit
_MOST_RULES = 4  # horizontal lines above zero, each with its value
_STEPS = (1, 2, 2.5, 5, 10)
_LINE_WIDTH, _LINE_HEIGHT = 240, 40


class Bar(msgspec.Struct, frozen=True):
    """One position on the axis: its label, and the value of each of its bars."""

    label: str
    values: tuple[int, ...]
    said: str  # the bar's values in words


def bars(title: str, description: str, points: Sequence[Bar], scale: Callable[[int], str]) -> Markup:
    """Returns a bar chart. The bars of a position are side by side, and a tooltip shows its values. `scale` formats a value of the axis.

    Shows as many labels as fit. Every other label has the class `minor`, which is hidden in narrow windows.
    """
    highest = max((value for point in points for value in (0, *point.values)), default=0)
    apart = rule_step(highest)
    rules = -(-highest // apart)
    step = 100 / max(len(points), 1)
    label_every = -(-len(points) // _LABELS) or 1
    drawn = [_rule(at * apart, at / max(rules, 1), scale) for at in range(rules + 1)]
    drawn += [_place(point, at * step, step, rules * apart or 1) for at, point in enumerate(points)]
    for at, point in enumerate(points):
        if at % label_every == 0:
            drawn.append(_label(point.label, at * step + step * 0.1, is_minor=at // label_every % 2 == 1))
    return Markup('<svg class="chart" height="{}" role="img"><title>{}</title><desc>{}</desc>{}</svg>').format(
        _HEIGHT, title, description, Markup("").join(drawn)
    )


def rule_step(highest: int) -> int:
    """Returns the distance between the lines of an axis up to `highest`: 1, 2, 2.5 or 5 times a power of ten, for at most four lines."""
    least = max(highest, 1) / _MOST_RULES
    power = 10 ** (len(str(int(least))) - 1)
    return next(max(int(power * one), 1) for one in _STEPS if power * one >= least and (power * one) % 1 == 0)


def line(title: str, description: str, values: Sequence[int], *, is_stepped: bool = True) -> Markup:
    """Returns a small line chart without labels. With `is_stepped`, each value holds until the next.

    The bottom is below the lowest value by half the range of the values, but not below zero: the line shows how values changed.
    """
    lowest, highest = min(values, default=0), max(values, default=0)
    floor = max(lowest - (highest - lowest) / 2, 0)
    step = _LINE_WIDTH / max(len(values) - 1, 1)
    heights = [
        _LINE_HEIGHT - 2 - max(value - floor, 0) / ((highest - floor) or 1) * (_LINE_HEIGHT - 4) for value in values
    ]
    to = "H{:.1f}V{:.1f}" if is_stepped else "L{:.1f} {:.1f}"
    drawn = "".join(to.format(at * step, height) if at else f"M0 {height:.1f}" for at, height in enumerate(heights))
    return Markup(
        '<svg class="line" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img"><title>{}</title><desc>{}</desc>'
        '<path class="under-line" d="{}V{}H0Z"/><path d="{}"/></svg>'
    ).format(_LINE_WIDTH, _LINE_HEIGHT, title, description, drawn, _LINE_HEIGHT, drawn)


def _rule(value: int, height: float, scale: Callable[[int], str]) -> Markup:
    y = _FLOOR - height * (_FLOOR - _CEILING)
    return Markup(
        '<line class="axis" x1="0" y1="{y:.1f}" x2="100%" y2="{y:.1f}"/><text class="value" x="-8" y="{below:.1f}">{text}</text>'
    ).format(y=y, below=y + 4, text=scale(value))


def _label(label: str, x: float, *, is_minor: bool) -> Markup:
    anchor = Markup(' text-anchor="end"') if x > _NEAR_THE_END else ""
    kind = Markup(' class="minor"') if is_minor else ""
    at = 100 if anchor else x
    return Markup('<text x="{:.1f}%" y="{}"{}{}>{}</text>').format(at, _HEIGHT - 10, anchor, kind, label)


def _place(point: Bar, x: float, step: float, highest: int) -> Markup:
    width = step * 0.8 / len(point.values)
    # The rectangle has the full height, so that the tooltip also appears above the bars.
    air = f'<rect class="air" x="{x:.2f}%" y="0" width="{step:.2f}%" height="{_FLOOR}"/>'
    drawn = []
    for at, value in enumerate(point.values):
        height = max(value, 0) / highest * (_FLOOR - _CEILING)
        left, top = x + step * 0.1 + at * width, _FLOOR - height
        drawn.append(
            f'<rect class="series-{at}" x="{left:.2f}%" y="{top:.1f}" width="{width:.2f}%" height="{height:.1f}"/>'
        )
    # Numbers need no escaping, and `Markup.format` took most of a chart's time.
    return Markup(f'<g class="place"><title>{escape(point.said)}</title>{air}{"".join(drawn)}</g>')  # noqa: S704


_MOST_TIMES = 10  # growth beyond this factor is not shown as a percentage


class Change(msgspec.Struct, frozen=True):
    """The change of a figure: `direction` is 1, 0 or -1, and `by` is the amount, such as `12 %` or `4 points`."""

    direction: int
    by: str


class Figure(msgspec.Struct, frozen=True):
    """A figure on a card. `against` names the period that it is compared with."""

    label: str
    value: str
    change: Change | None = None
    against: str = ""
    note: str = ""
    path: str = ""  # the path of the page with details
    line: Markup = Markup()


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
