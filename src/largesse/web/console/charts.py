"""Bar and line charts as SVG. Each describes itself in words, and pages show the numbers beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

# Leaves room for labels of twice the size, which phones use (console.css).
_WIDTH, _HEIGHT, _LEFT = 720, 232, 8
_FLOOR, _CEILING = 196, 32
_LABELS = 8
_NEAR_THE_END = 0.85  # of the width: labels beyond it are aligned to the right, so that they fit
_LINE_WIDTH, _LINE_HEIGHT = 240, 40


@dataclass(frozen=True, slots=True)
class Bar:
    """One place on the axis: its label, and the value of each of its bars."""

    label: str
    values: tuple[int, ...]
    said: str  # the values in words


def bars(title: str, description: str, points: Sequence[Bar], scale: Callable[[int], str]) -> Markup:
    """Returns a bar chart. Bars of a place stand side by side; `scale` writes the highest value.

    Shows as many labels as fit. Every other one is `minor`, and hidden on narrow windows.
    """
    top = max((value for point in points for value in (0, *point.values)), default=0)
    highest = top or 1
    step = (_WIDTH - 2 * _LEFT) / max(len(points), 1)
    label_every = -(-len(points) // _LABELS) or 1
    drawn = []
    for at, point in enumerate(points):
        x = _LEFT + at * step
        drawn.append(_place(point, x, step, highest))
        if at % label_every == 0:
            drawn.append(_label(point.label, x + step * 0.1, is_minor=at // label_every % 2 == 1))
    return Markup(
        '<svg class="chart" viewBox="0 0 {} {}" role="img"><title>{}</title><desc>{}</desc>'
        '<text x="{left}" y="{}">{}</text>'
        '<line class="axis" x1="{left}" y1="{ceiling}" x2="{right}" y2="{ceiling}"/>'
        '<line class="axis" x1="{left}" y1="{floor}" x2="{right}" y2="{floor}"/>{}</svg>'
    ).format(
        _WIDTH,
        _HEIGHT,
        title,
        description,
        _CEILING - 8,
        scale(top),
        Markup("").join(drawn),
        left=_LEFT,
        right=_WIDTH - _LEFT,
        floor=_FLOOR,
        ceiling=_CEILING,
    )


def line(title: str, description: str, values: Sequence[int]) -> Markup:
    """Returns a small line of values without labels. Each value holds until the next; zero is at the bottom."""
    highest = max(values, default=0) or 1
    step = _LINE_WIDTH / max(len(values) - 1, 1)
    heights = [_LINE_HEIGHT - 2 - max(value, 0) / highest * (_LINE_HEIGHT - 4) for value in values]
    drawn = " ".join(
        f"H{at * step:.1f}V{height:.1f}" if at else f"M0 {height:.1f}" for at, height in enumerate(heights)
    )
    return Markup(
        '<svg class="line" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img"><title>{}</title><desc>{}</desc><path d="{}"/></svg>'
    ).format(_LINE_WIDTH, _LINE_HEIGHT, title, description, drawn)


def _label(label: str, x: float, *, is_minor: bool) -> Markup:
    anchor = Markup(' text-anchor="end"') if x > _WIDTH * _NEAR_THE_END else ""
    kind = Markup(' class="minor"') if is_minor else ""
    at = _WIDTH - _LEFT if anchor else x
    return Markup('<text x="{:.1f}" y="{}"{}{}>{}</text>').format(at, _HEIGHT - 10, anchor, kind, label)


def _place(point: Bar, x: float, step: float, highest: int) -> Markup:
    width = step * 0.8 / len(point.values)
    parts = [Markup("<g><title>{}</title>").format(point.said)]
    for at, value in enumerate(point.values):
        height = max(value, 0) / highest * (_FLOOR - _CEILING)
        parts.append(
            Markup('<rect class="series-{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>').format(
                at, x + step * 0.1 + at * width, _FLOOR - height, width, height
            )
        )
    return Markup("").join([*parts, Markup("</g>")])
