"""The checks: how they are declared, chosen and run."""

from __future__ import annotations

import fnmatch
import inspect
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from largesse_conformance.context import Context
from largesse_conformance.outcome import Failed, LimitReached, Result, Skipped, Verdict
from largesse_conformance.shapes import Member

Run = Callable[[Context], None]


@dataclass(frozen=True)
class Check:
    """One rule of the contract, and the function that checks it.

    `codes` is how many codes it orders at most. `uses` names the orders that it shares with other checks.
    """

    name: str
    rule: str
    run: Run
    codes: int = 0
    uses: tuple[str, ...] = ()


CHECKS: list[Check] = []


def check(*, codes: int = 0, uses: Sequence[str] = ()) -> Callable[[Run], Run]:
    """Declares a function as a check. Its docstring is the rule, its module the area."""

    def declare(function: Run) -> Run:
        rule = inspect.getdoc(function)
        assert rule, function
        area = function.__module__.rpartition(".")[2]
        CHECKS.append(Check(f"{area}.{function.__name__}", rule, function, codes, tuple(uses)))
        return function

    return declare


def add(name: str, rule: str, run: Run, *, codes: int = 0, uses: Sequence[str] = ()) -> None:
    """Adds one of several checks that differ only in their values."""
    CHECKS.append(Check(name, rule, run, codes, tuple(uses)))


def add_members(
    area: str, what: str, members: Iterable[Member], items: Callable[[Context], list[Any]], uses: Sequence[str] = ()
) -> None:
    """Adds a check for each member: each of the items has it, with its type."""
    for member in members:

        def run(context: Context, member: Member = member) -> None:
            found = items(context)
            if not found:
                raise Skipped(f"The service lists no {what}.")
            for item in found:
                fault = member.fault(item) if isinstance(item, dict) else "it is not an object"
                if fault:
                    raise Failed(f"In one {what} of {len(found)}, {fault}.")

        add(f"{area}.member_{member.name}", f"`{member.name}` of a {what} is {member.described}.", run, uses=uses)


def choose(checks: Sequence[Check], patterns: Sequence[str]) -> list[Check]:
    """Returns the checks whose names match one of the patterns; all checks if there are no patterns."""
    if not patterns:
        return list(checks)
    return [one for one in checks if any(fnmatch.fnmatchcase(one.name, pattern) for pattern in patterns)]


def run_checks(checks: Iterable[Check], context: Context) -> Iterator[Result]:
    """Runs the checks one after another. After a limit is reached, the others are unfinished."""
    exhausted = ""
    for one in checks:
        started_s = time.monotonic()
        verdict, reason = Verdict.PASSED, ""
        if exhausted:
            yield Result(one.name, one.rule, Verdict.UNFINISHED, f"Not run: {exhausted}.")
            continue
        try:
            one.run(context)
        except Skipped as skipped:
            verdict, reason = Verdict.SKIPPED, str(skipped)
        except Failed as failed:
            verdict, reason = Verdict.FAILED, str(failed)
        except LimitReached as reached:
            exhausted = str(reached)
            verdict, reason = Verdict.UNFINISHED, f"Not finished: {exhausted}."
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            # The answer has a wrong shape, which another check reports exactly.
            verdict, reason = Verdict.FAILED, f"The answer cannot be read: {type(error).__name__}: {error}"
        yield Result(one.name, one.rule, verdict, reason, time.monotonic() - started_s)
