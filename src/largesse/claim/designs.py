"""Wrappings: how a gift looks before it is opened. A key nobody knows looks like the default one."""

from __future__ import annotations

from dataclasses import dataclass


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
# Other names that senders use.
_ALIASES = {
    "balloons": "birthday",
    "celebration": "confetti",
    "congratulations": "confetti",
    "christmas": "winter",
    "flowers": "garden",
    "plain": "elegant",
    "spring": "garden",
    "thanks": "thank-you",
    "thankyou": "thank-you",
    "thank_you": "thank-you",
}


def design(key: str) -> Design:
    """The wrapping of that key, whatever its letter case."""
    folded = key.strip().casefold()
    return DESIGNS.get(_ALIASES.get(folded, folded), DESIGNS["default"])
