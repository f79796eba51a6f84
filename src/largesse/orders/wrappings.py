"""The keys of wrappings: what `wrapping_key` may name. Mail and pages each give them their looks."""

from __future__ import annotations

DEFAULT_WRAPPING = "default"
WRAPPINGS = (
    DEFAULT_WRAPPING,
    "confetti",
    "birthday",
    "thank-you",
    "winter",
    "elegant",
    "stars",
    "gold",
    "garden",
)
# Other names that senders use.
ALIASES = {
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


def known_wrapping(key: str) -> str:
    """The wrapping that `key` names, whatever its letter case; the default one for a key nobody knows."""
    folded = key.strip().casefold()
    named = ALIASES.get(folded, folded)
    return named if named in WRAPPINGS else DEFAULT_WRAPPING
