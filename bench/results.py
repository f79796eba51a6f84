"""What the benchmarks measured: as values, as JSON, and as the table that is printed."""

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import msgspec


class Sample(msgspec.Struct):
    """One run of one side: the value that counts, and what else was seen (units at the end of the names)."""

    value: float
    seen: dict[str, float] = {}


class Pair(msgspec.Struct):
    """The product and its reference, one right after the other."""

    product: Sample
    reference: Sample

    @property
    def ratio(self) -> float:
        return self.product.value / self.reference.value


class Goal(msgspec.Struct):
    """A bound on the ratio, or on the product's value where there is no reference."""

    bound: float
    at_least: bool

    def met_by(self, value: float) -> bool:
        return value >= self.bound if self.at_least else value <= self.bound

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.bound:g}"


class Row(msgspec.Struct):
    """One line of the table."""

    name: str
    unit: str
    product: str  # what was run
    reference: str  # what it is divided by; empty: the product's value alone counts
    goal: Goal | None
    pairs: list[Pair]

    @property
    def ratios(self) -> list[float]:
        return [pair.ratio if self.reference else pair.product.value for pair in self.pairs]

    @property
    def met(self) -> bool | None:
        return None if self.goal is None else self.goal.met_by(median(self.ratios))

    def values(self, side: str) -> list[float]:
        return [getattr(pair, side).value for pair in self.pairs]

    def seen(self, side: str) -> dict[str, float]:
        """The median of everything else that was seen on one side."""
        names = dict.fromkeys(name for pair in self.pairs for name in getattr(pair, side).seen)
        seen = {
            name: [getattr(p, side).seen[name] for p in self.pairs if name in getattr(p, side).seen] for name in names
        }
        return {name: median(values) for name, values in seen.items()}


class Results(msgspec.Struct):
    """One run of the suite."""

    machine: dict[str, str]
    postgres: dict[str, str]
    seconds_a_run: float
    rows: list[Row] = []
    took_s: dict[str, float] = {}
    notes: dict[str, Any] = {}

    def row(self, name: str) -> Row:
        """The row called `name`. Raises KeyError."""
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(name)


def write(results: Results, path: Path) -> None:
    """Writes the JSON file."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1) + b"\n")


def read(path: Path) -> Results:
    """Reads a file that `write` wrote."""
    return msgspec.json.decode(path.read_bytes(), type=Results)


def table(rows: Sequence[Row]) -> str:
    """The rows as a Markdown table."""
    lines = ["| benchmark | product | reference | ratio | (min to max) | goal | met |", "|---|--:|--:|--:|---|---|---|"]
    lines += [_line(row) for row in rows]
    return "\n".join(_aligned(lines))


def figure(value: float) -> str:
    """A number with three digits that count."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _line(row: Row) -> str:
    ratios = row.ratios
    reference = f"{figure(median(row.values('reference')))} {row.unit}" if row.reference else ""
    spread = f"{figure(min(ratios))} to {figure(max(ratios))}"
    met = {None: "", True: "yes", False: "**no**"}[row.met]
    cells = [
        row.name,
        f"{figure(median(row.values('product')))} {row.unit}",
        reference,
        figure(median(ratios)) if row.reference else "",
        spread,
        str(row.goal or ""),
        met,
    ]
    return f"| {' | '.join(cells)} |"


def _aligned(lines: Sequence[str]) -> list[str]:
    """The same table with its columns made equally wide."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    aligned = []
    for row in rows:
        cells = []
        for cell, width in zip(row, widths, strict=True):
            filled = "-" * (width - 1) + cell[-1] if cell.startswith("--") else cell.ljust(width)
            cells.append(filled)
        aligned.append(f"| {' | '.join(cells)} |")
    return aligned
