"""The results of checks, and their report."""

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from functools import partial
from typing import Any

import msgspec


class Level(StrEnum):
    """The severity of a result."""

    OK = "ok"
    """As it should be."""
    WARNING = "warning"
    """It works, and is probably not what is wanted."""
    ERROR = "error"
    """It cannot work."""


class CheckResult(msgspec.Struct, frozen=True):
    """The result for a setting: a sentence, and what to do. It contains no secret, as it is logged and shown."""

    level: Level
    setting: str  # the variable to check, or a part of the machine
    text: str

    def __str__(self) -> str:
        return f"{self.level:8} {self.setting}: {self.text}"


# Functions that make a result of each level from the setting and the text.
ok = partial(CheckResult, Level.OK)
warning = partial(CheckResult, Level.WARNING)
error = partial(CheckResult, Level.ERROR)


class Report(msgspec.Struct, frozen=True):
    """All results of a check, in the order in which they were made."""

    findings: Sequence[CheckResult]

    @property
    def can_work(self) -> bool:
        """Whether no result is an error. Warnings do not count."""
        return all(finding.level is not Level.ERROR for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        """Returns the report as JSON; `ok` is true if there is no error."""
        return {
            "ok": self.can_work,
            "findings": [{"level": f.level, "setting": f.setting, "text": f.text} for f in self.findings],
        }

    def __str__(self) -> str:
        counted = Counter(finding.level for finding in self.findings)
        summary = f"Errors: {counted[Level.ERROR]}, warnings: {counted[Level.WARNING]}."
        return "\n".join([*map(str, self.findings), summary])
