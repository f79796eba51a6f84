"""How a wrapped gift looks on the recipient's pages before it is opened."""

from __future__ import annotations

from dataclasses import dataclass

from largesse.orders.wrappings import known_wrapping


@dataclass(frozen=True, slots=True)
class Design:
    """A wrapping: its colours are in the style sheet under its key, `pattern` is what is printed on the paper."""

    key: str
    pattern: str


_DESIGNS = (
    Design("default", "dots"),
    Design("confetti", "confetti"),
    Design("birthday", "balloons"),
    Design("thank-you", "hearts"),
    Design("winter", "snow"),
    Design("elegant", "pinstripes"),
    Design("stars", "stars"),
    Design("gold", "diamonds"),
    Design("garden", "leaves"),
)
DESIGNS = {design.key: design for design in _DESIGNS}


def design(key: str) -> Design:
    """The design of the wrapping that `key` names."""
    return DESIGNS[known_wrapping(key)]
