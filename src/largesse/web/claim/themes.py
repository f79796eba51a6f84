"""How a wrapped gift looks on the recipient's pages before it is opened."""

from __future__ import annotations

from dataclasses import dataclass

from largesse.orders.wrappings import known_wrapping


@dataclass(frozen=True, slots=True)
class Theme:
    """A wrapping: its colours are in the style sheet under its key, `pattern` is what is printed on the paper."""

    key: str
    pattern: str


_THEMES = (
    Theme("default", "dots"),
    Theme("confetti", "confetti"),
    Theme("birthday", "balloons"),
    Theme("thank-you", "hearts"),
    Theme("winter", "snow"),
    Theme("elegant", "pinstripes"),
    Theme("stars", "stars"),
    Theme("gold", "diamonds"),
    Theme("garden", "leaves"),
)
THEMES = {theme.key: theme for theme in _THEMES}


def theme(key: str) -> Theme:
    """The theme of the wrapping that `key` names."""
    return THEMES[known_wrapping(key)]
