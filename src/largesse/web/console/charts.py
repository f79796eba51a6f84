"""Bars, drawn as SVG: what each shows is said in words too, and the numbers stand in a table beside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

_WIDTH, _HEIGHT, _LEFT = 720, 220, 8
_FLOOR, _CEILING = 190, 12


@dataclass(frozen=True, slots=True)
class Bar:
    """One place on the axis: its label, and the height of each of its bars."""

    label: str
    values: tuple[int, ...]
    said: str  # all of it in words


def bars(title: str, description: str, points: Sequence[Bar]) -> Markup:
    """A bar chart, its bars of the same place beside each other. Every so many labels are written, as there is room."""
    highest = max((value for point in points for value in point.values), default=0) or 1
    step = (_WIDTH - 2 * _LEFT) / max(len(points), 1)
    label_every = -(-len(points) // 8) or 1
    drawn = [
        _place(point, _LEFT + at * step, step, highest, is_labelled=at % label_every == 0)
        for at, point in enumerate(points)
    ]
    return Markup(
        '<svg class="chart" viewBox="0 0 {} {}" role="img"><title>{}</title><desc>{}</desc>'
        '<line class="axis" x1="{}" y1="{}" x2="{}" y2="{}"/>{}</svg>'
    ).format(
        _WIDTH, _HEIGHT, title, description, _LEFT, _FLOOR, _WIDTH - _LEFT, _FLOOR, Markup("").join(drawn)
    )


def _place(point: Bar, x: float, step: float, highest: int, *, is_labelled: bool) -> Markup:
    width = step * 0.8 / len(point.values)
    parts = [Markup("<g><title>{}</title>").format(point.said)]
    for at, value in enumerate(point.values):
        height = max(value, 0) / highest * (_FLOOR - _CEILING)
        parts.append(
            Markup('<rect class="series-{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>').format(
                at, x + step * 0.1 + at * width, _FLOOR - height, width, height
            )
        )
    if is_labelled:
        parts.append(
            Markup('<text x="{:.1f}" y="{}">{}</text>').format(x + step * 0.1, _HEIGHT - 10, point.label)
        )
    return Markup("").join([*parts, Markup("</g>")])
