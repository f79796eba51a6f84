"""All that is wrong with a request, where whoever asked had better hear of everything at once."""

from __future__ import annotations

import re
from types import TracebackType

from largesse.base.errors import FieldError, InsufficientBalance, InvalidRequest, Problem, ReferenceUsed
from largesse.orders.recipients import count_more

_MEMBER = re.compile(r"`([A-Za-z_]+)")
# In the order in which a send would be refused for them, and the member that each is about where it names none.
_KEPT: dict[type[Problem], str | None] = {
    ReferenceUsed: "externalReference",
    InvalidRequest: None,
    InsufficientBalance: "accountId",
}


class Findings:
    """Keeps the problems that blocks under `with findings:` raise, the first of each member, and lets what follows go on."""

    def __init__(self) -> None:
        self._found: dict[str, Problem] = {}  # by the member it is about

    def __enter__(self) -> None:
        return

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if not isinstance(error, Problem) or not isinstance(error, tuple(_KEPT)):
            return False
        self.keep(error)
        return True

    def __contains__(self, member: str) -> bool:
        return member in self._found

    def keep(self, problem: Problem) -> str:
        """Keeps a problem; returns the member it is about. Raises one that is about no member."""
        member = next(about for kind, about in _KEPT.items() if isinstance(problem, kind)) or _member(problem)
        if member is None:
            raise problem
        self._found.setdefault(member, problem)
        return member

    def raise_all(self) -> None:
        """Raises what a send would have been refused for first, its `errors` naming all there is; nothing when all is well."""
        ranked = [
            (member, problem)
            for kind in _KEPT
            for member, problem in self._found.items()
            if isinstance(problem, kind)
        ]
        if not ranked:
            return
        errors = [
            error
            for member, problem in ranked
            for error in problem.errors or (FieldError(f"#/{member}", problem.detail),)
        ]
        first = ranked[0][1]
        first.detail, first.errors = errors[0].detail + count_more(errors), tuple(errors)
        raise first


def _member(problem: Problem) -> str | None:
    """The member of the body that a problem is about, which is the first that its detail names."""
    if problem.errors:
        return problem.errors[0].pointer.split("/")[1]
    named = _MEMBER.search(problem.detail)
    return named[1] if named else None
