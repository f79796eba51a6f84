"""Themes: how a wrapped gift looks in the recipient's mail."""

from __future__ import annotations

from dataclasses import dataclass

from largesse.orders.wrappings import known_wrapping


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours that mail clients show without any picture being loaded."""

    paper: str  # around the card
    ribbon: str  # the band on top, the button
    ink: str  # text on the ribbon
    motif: str  # a line of symbols in the ribbon, in fonts every client has


THEMES = {
    "default": Theme("#f3f0ea", "#1f4d4a", "#ffffff", ""),
    "confetti": Theme("#fff0d9", "#b93c22", "#ffffff", "● ◆ ● ◆ ●"),
    "birthday": Theme("#f6f1fe", "#6437bd", "#ffffff", "✦ ● ✦ ● ✦"),
    "thank-you": Theme("#fbe1e8", "#b01e52", "#ffffff", "♥ ♥ ♥"),
    "winter": Theme("#edf4fb", "#234a78", "#ffffff", "✻ ✼ ✻ ✼ ✻"),
    "elegant": Theme("#f5f3ef", "#25282e", "#cdb07a", "· · ·"),
    "stars": Theme("#eff1fb", "#1b2d6e", "#ffffff", "★ ☆ ★ ☆ ★"),
    "gold": Theme("#fbf6e8", "#6f5110", "#ffffff", "◆ ◇ ◆"),
    "garden": Theme("#e3f1d8", "#34662a", "#ffffff", "✿ ❀ ✿"),
}


def theme(key: str) -> Theme:
    """The theme of the wrapping that `key` names."""
    return THEMES[known_wrapping(key)]
