"""How a wrapped gift looks in the recipient's mail."""

from __future__ import annotations

from dataclasses import dataclass

from largesse.orders.wrappings import known_wrapping


@dataclass(frozen=True, slots=True)
class Wrapping:
    """Colours that mail clients show without any picture being loaded."""

    paper: str  # around the card
    ribbon: str  # the band on top, the button
    ink: str  # text on the ribbon
    motif: str  # a line of symbols in the ribbon, in fonts every client has


LOOKS = {
    "default": Wrapping("#f3f0ea", "#1f4d4a", "#ffffff", ""),
    "confetti": Wrapping("#fff0d9", "#b93c22", "#ffffff", "● ◆ ● ◆ ●"),
    "birthday": Wrapping("#f6f1fe", "#6437bd", "#ffffff", "✦ ● ✦ ● ✦"),
    "thank-you": Wrapping("#fbe1e8", "#b01e52", "#ffffff", "♥ ♥ ♥"),
    "winter": Wrapping("#edf4fb", "#234a78", "#ffffff", "✻ ✼ ✻ ✼ ✻"),
    "elegant": Wrapping("#f5f3ef", "#25282e", "#cdb07a", "· · ·"),
    "stars": Wrapping("#eff1fb", "#1b2d6e", "#ffffff", "★ ☆ ★ ☆ ★"),
    "gold": Wrapping("#fbf6e8", "#6f5110", "#ffffff", "◆ ◇ ◆"),
    "garden": Wrapping("#e3f1d8", "#34662a", "#ffffff", "✿ ❀ ✿"),
}


def wrapping(key: str) -> Wrapping:
    """How the wrapping that `key` names looks."""
    return LOOKS[known_wrapping(key)]
