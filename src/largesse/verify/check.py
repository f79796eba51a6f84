"""Checks, their results and the report. Also the progress of a long audit, which is shown as one line on a terminal."""

from collections.abc import Sequence
from typing import Any, TextIO

import msgspec

from largesse.base import clock
from largesse.db.fragments import Fragment, compose, declared

_EVERY_S = 0.5


class Progress:
    """Shows the current step, and how many of its rows are checked."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._on = stream.isatty()
        self._step = ""
        self._done = self._total = 0
        self._shown_at = 0.0

    def begin(self, step: str, total: int = 0) -> None:
        """Begins a step, of `total` rows if their number is known."""
        self._step, self._done, self._total = step, 0, total
        self._show()

    def add(self, rows: int) -> None:
        """Counts checked rows, and updates the line now and then."""
        self._done += rows
        if clock.passed_s() - self._shown_at >= _EVERY_S:
            self._show()

    def end(self) -> None:
        """Clears the line."""
        if self._on:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def _show(self) -> None:
        if self._on:
            far = f" {self._done:,} of {self._total:,}" if self._total else ""
            self._stream.write(f"\r\x1b[K{self._step}{far}")
            self._stream.flush()
            self._shown_at = clock.passed_s()


SHOWN_IDS = 20


class Check(msgspec.Struct, frozen=True):
    """A rule that must hold. `sql` returns the id of each row that breaks it, in one column, and has no parameters."""

    name: str
    rule: str  # a sentence
    sql: str
    of: str = ""  # the kind of object that an id names, if the id does not say so

    @property
    def statement(self) -> Fragment:
        """The statement that counts the rows that break the rule, and returns the ids of the first ones."""
        return compose(
            "SELECT id::text, count(*) OVER () AS total FROM ({sql}) AS broken (id) LIMIT {most}",
            sql=declared(self.sql),
            most=SHOWN_IDS,
        )


class Finding(msgspec.Struct, frozen=True):
    """A failed check: how many rows break the rule, and the ids of the first ones. It never contains a code or PIN."""

    check: str
    rule: str
    count: int
    ids: tuple[str, ...]
    of: str = ""

    def __str__(self) -> str:
        named = ", ".join(f"{self.of} {one}" if self.of else one for one in self.ids)
        more = ", …" if self.count > len(self.ids) else ""
        times = "once" if self.count == 1 else f"{self.count:,} times"
        return f"{self.check}: {self.rule} Not so {times}: {named}{more}"


class Tally:
    """Counts the rows that break a rule, and stores the first ones."""

    def __init__(self, check: str, rule: str, of: str = "") -> None:
        self._check, self._rule, self._of = check, rule, of
        self.count = 0
        self._ids: list[str] = []

    def add(self, id_: str) -> None:
        """Counts a row that breaks the rule, and stores its id if it is one of the first."""
        self.count += 1
        if self.count <= SHOWN_IDS:
            self._ids.append(id_)

    def finding(self) -> Finding:
        """Returns the finding. Call it only if `count` is above 0."""
        return Finding(self._check, self._rule, self.count, tuple(self._ids), self._of)


class Report(msgspec.Struct, frozen=True):
    """The checks of an audit, and their findings."""

    checks: tuple[str, ...]
    counted: dict[str, int]  # the number of rows by table
    findings: Sequence[Finding]

    def to_json(self) -> dict[str, Any]:
        """Returns the report as JSON; `ok` is true if no check failed."""
        return {
            "ok": not self.findings,
            "checks": list(self.checks),
            "counted": self.counted,
            "findings": [
                {"check": f.check, "rule": f.rule, "count": f.count, "ids": list(f.ids)} for f in self.findings
            ],
        }

    def __str__(self) -> str:
        counted = ", ".join(f"{count:,} {table}" for table, count in self.counted.items())
        if not self.findings:
            return f"All {len(self.checks)} checks hold over {counted}."
        failed = f"{len(self.findings)} of {len(self.checks)} checks failed over {counted}:"
        return "\n".join([failed, *(f"  {finding}" for finding in self.findings)])
