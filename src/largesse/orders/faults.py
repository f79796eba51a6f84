"""All that is wrong with a request, where whoever asked had better hear of everything at once."""

from __future__ import annotations

import re
from types import TracebackType

from largesse.base.errors import (
    DailyLimit,
    FieldError,
    InsufficientBalance,
    InvalidRequest,
    OrderLimit,
    Problem,
    ReferenceUsed,
)
from largesse.orders.recipients import count_more

_NAMED = re.compile(r"`([A-Za-z_]+)")
_CAPITAL = re.compile(r"[A-Z]")
# In the order in which a send would be refused for them, and the field that each is about where it names none.
_KEPT: dict[type[Problem], str | None] = {
    ReferenceUsed: "external_reference",
    InvalidRequest: None,
    OrderLimit: "value",
    DailyLimit: "value",
    InsufficientBalance: "account_id",
}


class RequestFaults:
    """Keeps the problems that blocks under `with findings:` raise, the first of each field, and lets what follows go on."""

    def __init__(self) -> None:
        self._found: dict[str, Problem] = {}  # by the field it is about

    def __enter__(self) -> None:
        return

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if not isinstance(error, Problem) or not isinstance(error, tuple(_KEPT)):
            return False
        self.keep(error)
        return True

    def __contains__(self, field: str) -> bool:
        return field in self._found

    def keep(self, problem: Problem) -> str:
        """Keeps a problem; returns the field it is about. Raises one that is about none."""
        field = next(about for kind, about in _KEPT.items() if isinstance(problem, kind)) or _field(problem)
        if field is None:
            raise problem
        self._found.setdefault(field, problem)
        return field

    def raise_all(self) -> None:
        """Raises what a send would have been refused for first, its `errors` naming all there is; nothing when all is well."""
        ranked = [
            (field, problem) for kind in _KEPT for field, problem in self._found.items() if isinstance(problem, kind)
        ]
        if not ranked:
            return
        errors = [
            error
            for field, problem in ranked
            for error in problem.errors or (FieldError(f"#/{field}", problem.detail),)
        ]
        first = ranked[0][1]
        first.detail, first.errors = errors[0].detail + count_more(errors), tuple(errors)
        raise first


def _field(problem: Problem) -> str | None:
    """The field that a problem is about, which is the first that it names; a body's members are spelled otherwise."""
    if problem.errors:
        name = problem.errors[0].pointer.split("/")[1]
    elif named := _NAMED.search(problem.detail):
        name = named[1]
    else:
        return None
    return _CAPITAL.sub(lambda capital: f"_{capital[0].lower()}", name)
