"""How far a long audit is: one line on a terminal, rewritten in place; nothing anywhere else."""

from __future__ import annotations

from typing import TextIO

from largesse.base import clock

_EVERY_S = 0.5


class Progress:
    """Shows the step under way and, within it, how many of its rows are done."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._on = stream.isatty()
        self._step = ""
        self._done = self._total = 0
        self._shown_at = 0.0

    def begin(self, step: str, total: int = 0) -> None:
        """A step begins, of `total` rows where their number is known."""
        self._step, self._done, self._total = step, 0, total
        self._show()

    def add(self, rows: int) -> None:
        """So many rows more are looked at; shown once in a while."""
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
