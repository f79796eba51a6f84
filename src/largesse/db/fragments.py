"""Composes SQL from constants of the code.

A statement is one text. A part that several statements share is a `Fragment`, and `compose` inserts it:

    _COLUMNS = Fragment("id, event, state")
    _ONE = compose("SELECT {columns} FROM deliveries WHERE id = $1", columns=_COLUMNS)

No value becomes part of a statement: mypy accepts only fragments and numbers, and `tests/test_house.py` fails for a fragment that is not a
literal. Only names and placeholders may be computed. `identifier` and `placeholder` check them.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import date
from typing import NamedTuple, NewType

Fragment = NewType("Fragment", str)
NOTHING = Fragment("")

_PLACE = re.compile(r"\{([a-z_]+)\}")
_IDENTIFIER = re.compile(r"[a-z_][a-z0-9_]*(?:\.[a-z_][a-z0-9_]*)?")
_PLACEHOLDER = re.compile(r"\$[1-9][0-9]{0,4}")


def compose(text: str, **parts: Fragment | float) -> Fragment:
    """Returns the text with each `{name}` replaced by the part with that name. Raises ValueError if a part is missing or not used."""
    if (places := set(_PLACE.findall(text))) != parts.keys():
        raise ValueError(f"the statement has places for {sorted(places)}, but the parts are {sorted(parts)}")
    return Fragment(_PLACE.sub(lambda place: str(parts[place[1]]), text))


def join(separator: Fragment, parts: Iterable[Fragment]) -> Fragment:
    """Returns the parts joined by the separator."""
    return Fragment(separator.join(parts))


def identifier(name: str) -> Fragment:
    """Returns the name of a table, column or role, or of a table's column, as a fragment. Raises ValueError for anything else."""
    if not _IDENTIFIER.fullmatch(name):
        raise ValueError(f"not the name of a table or column: {name!r}")
    return Fragment(name)


def each(text: str, texts: Iterable[str], separator: str = ", ") -> Fragment:
    """Returns the text once for each name of a table or column, which replaces `{name}` in it. Raises ValueError as `identifier` does."""
    return Fragment(separator.join(compose(text, name=identifier(name)) for name in texts))


def names(texts: Iterable[str]) -> Fragment:
    """Returns names of tables or columns as a fragment, separated by commas. Raises ValueError as `identifier` does."""
    return each("{name}", texts)


def placeholder(text: str) -> Fragment:
    """Returns a placeholder, such as `$1`, as a fragment. Raises ValueError for anything else."""
    if not _PLACEHOLDER.fullmatch(text):
        raise ValueError(f"not a placeholder: {text!r}")
    return Fragment(text)


def holds_address(searched: Fragment) -> Fragment:
    """Returns SQL for whether a text in lower case contains the address $1 as a whole, as `address_pattern` finds it.

    The text may be JSON, where a line break before the address is a backslash and a letter.
    """
    return compose(
        r"""
        (position($1 IN {searched}) > 0 AND {searched} ~ ('(^|[^a-z0-9]|\\[nrt])'
            || regexp_replace($1::text, '([][$*+?^{|}.()\\])', '\\\1', 'g') || '($|[^a-z0-9])'))
        """,
        searched=searched,
    )


def declared(text: str) -> Fragment:
    """Returns a text of a declaration, such as a `Table`, as a fragment. `tests/test_house.py` fails if the declaration is not a literal."""
    return Fragment(text)


def day(value: date) -> Fragment:
    """Returns a day that is a constant of the code as a fragment."""
    return Fragment(f"DATE '{value.isoformat()}'")


class Grouped(NamedTuple):
    """A statement in two forms: for all customers, and for those of a shard group."""

    of_all: Fragment
    of_group: Fragment

    def of(self, customers: Sequence[int] | None) -> Fragment:
        """Returns the form for the customers of a shard group, which are an additional argument, or the form for all."""
        return self.of_all if customers is None else self.of_group


def grouped(text: str, customers: str, **parts: Fragment | float) -> Grouped:
    """Returns both forms of a statement with parts such as `{within o.customer_id}`, which limit it to the customers in the placeholder `customers`.

    If each distributed table is limited like this, the statement runs on the node of the group, and may lock rows.
    """
    condition = f"AND \\1 = ANY({placeholder(customers)}::int[])"
    of_all, of_group = _WITHIN.sub("", text), _WITHIN.sub(condition, text)
    return Grouped(compose(of_all, **parts), compose(of_group, **parts))


_WITHIN = re.compile(r"\{within ([a-z_.]+)\}")
