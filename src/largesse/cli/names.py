"""Names as operators type them."""

from __future__ import annotations

from largesse.base.errors import StartError
from largesse.base.text import unfit


def read_name(text: str, most: int, *, argument: str = "NAME") -> str:
    """A name of at most so many characters, without blanks around it. Raises StartError, naming the argument."""
    name = text.strip()
    if not 0 < len(name) <= most:
        raise StartError(f"{argument} must have 1 to {most} characters")
    if (held := unfit(name)) is not None:
        raise StartError(f"{argument} must hold no {held}")
    return name
