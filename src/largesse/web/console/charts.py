"""Bar charts and small lines as SVG. Each describes itself in words, and pages show the numbers beside it.

Across, places are parts of the width, so that letters stay as large as they are on any screen; down, they are pixels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

_HEIGHT, _FLOOR, _CEILING = 240, 208, 24
_LABELS = 8
_NEAR_THE_END = 88  # percent of the width: labels beyond it are aligned to the right, so that they fit
_MOST_RULES = 4  # across the chart, each with its value, above zero
_STEPS = (1, 2, 2.5, 5, 10)
_LINE_WIDTH, _LINE_HEIGHT = 240, 40


@dataclass(frozen=True, slots=True)
class Bar:
    """One place on the axis: its label, and the value of each of its bars."""

    label: str
    values: tuple[int, ...]
    said: str  # the values in words


def bars(title: str, description: str, points: Sequence[Bar], scale: Callable[[int], str]) -> Markup:
    """Returns a bar chart. Bars of a place stand side by side, and its values are shown under the pointer; `scale` writes a value of the axis.

    Shows as many labels as fit. Every other one is `minor`, and hidden on narrow windows.
    """
    highest = max((value for point in points for value in (0, *point.values)), default=0)
    apart = rule_step(highest)
    rules = -(-highest // apart)
    step = 100 / max(len(points), 1)
    label_every = -(-len(points) // _LABELS) or 1
    # The values of the axis stand over the bars.
    drawn = [_place(point, at * step, step, rules * apart or 1) for at, point in enumerate(points)]
    drawn += [_rule(at * apart, at / max(rules, 1), scale) for at in range(rules + 1)]
    for at, point in enumerate(points):
        if at % label_every == 0:
            drawn.append(_label(point.label, at * step + step * 0.1, is_minor=at // label_every % 2 == 1))
    return Markup('<svg class="chart" height="{}" role="img"><title>{}</title><desc>{}</desc>{}</svg>').format(
        _HEIGHT, title, description, Markup("").join(drawn)
    )


def rule_step(highest: int) -> int:
    """Returns the distance of the rules of an axis up to `highest`: 1, 2, 2.5 or 5 times a power of ten, and at most four of them."""
    least = max(highest, 1) / _MOST_RULES
    power = 10 ** (len(str(int(least))) - 1)
    return next(max(int(power * one), 1) for one in _STEPS if power * one >= least and (power * one) % 1 == 0)


def line(title: str, description: str, values: Sequence[int], *, is_stepped: bool = True) -> Markup:
    """Returns a small line of values without labels. `is_stepped`: each value holds until the next.

    Zero is at the bottom, or half as far below the lowest value as the highest is above it: a line shows how values changed.
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
        '<line class="axis" x1="0" y1="{y:.1f}" x2="100%" y2="{y:.1f}"/><text x="0" y="{above:.1f}">{text}</text>'
    ).format(y=y, above=y - 5, text=scale(value))


def _label(label: str, x: float, *, is_minor: bool) -> Markup:
    anchor = Markup(' text-anchor="end"') if x > _NEAR_THE_END else ""
    kind = Markup(' class="minor"') if is_minor else ""
    at = 100 if anchor else x
    return Markup('<text x="{:.1f}%" y="{}"{}{}>{}</text>').format(at, _HEIGHT - 10, anchor, kind, label)


def _place(point: Bar, x: float, step: float, highest: int) -> Markup:
    width = step * 0.8 / len(point.values)
    # The pointer finds the values anywhere above the place.
    parts = [
        Markup(
            '<g class="place"><title>{}</title><rect class="air" x="{:.2f}%" y="0" width="{:.2f}%" height="{}"/>'
        ).format(point.said, x, step, _FLOOR)
    ]
    for at, value in enumerate(point.values):
        height = max(value, 0) / highest * (_FLOOR - _CEILING)
        parts.append(
            Markup('<rect class="series-{}" x="{:.2f}%" y="{:.1f}" width="{:.2f}%" height="{:.1f}"/>').format(
                at, x + step * 0.1 + at * width, _FLOOR - height, width, height
            )
        )
    return Markup("").join([*parts, Markup("</g>")])
