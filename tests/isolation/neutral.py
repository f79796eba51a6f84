"""A switch that takes the application's own predicates for customers out of its statements, so that the database alone keeps them apart.

As long as it is on, `customer_id = $1`, `customer_id = ANY ($1)` and the like are true in every statement that a serving process sends, whatever
else the statement is. What is compared between tables (`l.customer_id = o.customer_id`) stays: that is how rows belong together, and says
of whom for none of them. A statement that names a customer in a way not known here is kept as one that could not be rewritten, which
fails the test: a new way of saying it is to be added here.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from largesse.db.roles import Role
from largesse.db.session import Session

_COLUMN = r"\b(?:\w+\.)?customer_id\b(?:::\w+|\s*\+\s*0)?"
_PARAMETER = r"\$\d+(?:::\w+(?:\[\])?)?"
_VALUE = rf"(?:{_PARAMETER}|ANY\s*\(\s*{_PARAMETER}\s*\))"
# Rows of a customer before one of its own, in the order of an index.
_BEFORE = rf"{_COLUMN}\s*>=\s*{_PARAMETER}\s+AND\s+\(customer_id, id\)\s*<\s*\({_PARAMETER}, {_PARAMETER}\)"
# But for what is written.
_SAID = re.compile(rf"(?:(?<!\bSET ){_COLUMN}\s*=\s*{_VALUE}|{_PARAMETER}\s*=\s*{_COLUMN}|{_BEFORE})")
# Rows of parameters, to which tables are joined.
_ROWS = re.compile(
    r"\b(?:unnest|json_to_recordset|json_populate_recordset)\s*\((?:[^()]|\([^()]*\))*\)\s*(?:WITH ORDINALITY\s+)?(?:AS\s+)?(\w+)"
)
# What names a customer in some other way. A column of another table on the other side is how rows belong together.
_COMPARED = re.compile(
    rf"(?<!\bSET ){_COLUMN}\s*(?:=(?!\s*[a-z]\w*\.(?:customer_id|id)\b)|<|>|!|IN\b|NOT\b|BETWEEN\b|IS\s+NOT\s+DISTINCT)|\([^()]*\bcustomer_id\b[^()]*\)\s*(?:=|<|>|IN\b)"
)


class NotRewritten(Exception):
    """A statement that names a customer in a way that is not known here."""


def neutralise(query: str) -> tuple[str, int]:
    """The statement with every predicate that names a customer made true, and how many those were. Raises NotRewritten."""
    said = [_SAID]
    for alias in set(_ROWS.findall(query)):
        other = _COLUMN
        said.append(re.compile(rf"(?:{other}\s*=\s*{alias}\.customer_id\b|\b{alias}\.customer_id\s*=\s*{other}\b)"))
    count = 0
    left = query
    for one in said:
        left = one.sub("true", left)
        query, found = one.subn(r"(\g<0> OR true)", query)
        count += found
    if _COMPARED.search(left):
        raise NotRewritten(query)
    return query, count


@dataclass
class Switch:
    """What went through it: statements by their text with how many predicates were made true, and those it could not rewrite."""

    rewritten: dict[str, int] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)

    def pass_on(self, session: Session, query: str) -> str:
        """The statement as it is sent instead, where a serving process sends it."""
        if session.acts_as is not Role.APP or "customer_id" not in query:
            return query
        try:
            rewritten, count = neutralise(query)
        except NotRewritten:
            self.failed.add(query)
            raise
        if count:
            self.rewritten[query] = count
        return rewritten


@contextmanager
def neutralised() -> Iterator[Switch]:
    """The switch, on for as long as the block lasts, in all services of this process."""
    switch = Switch()
    prepare, execute = Session._get_statement, Session.execute

    async def get_statement(self: Session, query: str, *arguments: Any, **options: Any) -> Any:
        return await prepare(self, switch.pass_on(self, query), *arguments, **options)

    async def run(self: Session, query: str, *arguments: Any, **options: Any) -> str:
        # With arguments it comes by the other way.
        return await execute(self, query if arguments else switch.pass_on(self, query), *arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Session, "_get_statement", get_statement)
        patch.setattr(Session, "execute", run)
        yield switch
