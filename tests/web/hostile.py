"""What nobody types into an address: values that stand for a parameter of the query or of the path, as they are written there."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

import pytest

First = TypeVar("First")
Second = TypeVar("Second")

VALUES = {
    "nothing": "",
    "NUL": "%00",
    "control characters": "a%01%0d%0aX-Bad:%201%7f%c2%85",
    "no UTF-8": "%ff%fe",
    "a surrogate": "%ed%a0%80",
    "the direction reversed": "%e2%80%ae",
    "very long": "x" * 5_000,
    "a large number": "9223372036854775807",
    "a larger number": "9223372036854775808",
    "far too large": "9" * 400,
    "no number": "NaN",
    "infinity": "-Infinity",
    "negative": "-1",
    "negative zero": "-0",
    "zero": "0",
    "an exponent": "1e400",
    "digits of another script": "%d9%a3%d9%a3",
    "superscript": "%c2%b2",
    "wildcards": "%25%5f%5c%27%22%3b--",
    "a percent sign alone": "%",
    "a wrong escape": "%zz",
    "markup": "%3Cscript%3E",
    "the first day": "0001-01-01",
    "a day too late": "10000-01-01",
    "no day": "2026-02-30",
    "the last month": "9999-12",
    "the first month": "0001-01",
    "brackets": "%5b%5d%7b%7d",
    "null": "null",
    "a template": "%7b%7b7*7%7d%7d%24%7b7%7d",
    "a path": "..%2f..%2fetc%2fpasswd",
}

# A thirteenth of all pairs, others for each of the first, and the slow tests try all of them.
IN_STEPS = pytest.mark.parametrize("step", [13, pytest.param(1, marks=pytest.mark.long)], ids=["some", "all"])


def pairs(first: Iterable[First], second: Iterable[Second], step: int) -> Iterator[tuple[First, Second]]:
    """Every `step`th pair along the diagonals, so that each of both is among them."""
    seconds = list(second)
    for row, one in enumerate(first):
        yield from ((one, other) for column, other in enumerate(seconds) if (row + column) % step == 0)
