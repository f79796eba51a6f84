"""The outcomes of checks, and the exceptions for them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Failed(Exception):
    """The service breaks the rule. The text says how."""


class Skipped(Exception):
    """The check cannot run here. The text says what it needs."""


class LimitReached(Exception):
    """The run has used up its time, its requests or its money."""


class Verdict(Enum):
    """The verdict on a check."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    UNFINISHED = "unfinished"  # a limit of the run was reached during the check or before it


@dataclass(frozen=True)
class Result:
    """The result of a check: its verdict, the reason if it did not pass, and how long it took."""

    name: str
    rule: str
    verdict: Verdict
    reason: str = ""
    seconds: float = 0.0

    @property
    def area(self) -> str:
        """The part of the contract that the check belongs to."""
        return self.name.partition(".")[0]
