"""Brands, and their colours, which are adjusted to stay readable (WCAG 2.2, contrast of 4.5 to 1)."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from largesse.base.errors import InvalidRequest

MOST_SENDER_NAME = 60  # characters
MOST_SUBJECT = 100
MOST_FOOTER = 600
MOST_WRAPPINGS = 10
MOST_WRAPPING_NAME = 40
SENDER = "{sender}"  # a placeholder of subjects
PATTERNS = ("dots", "confetti", "balloons", "hearts", "snow", "pinstripes", "stars", "diamonds", "leaves")
_CONTRAST = 4.5
_WHITE, _BLACK = "#ffffff", "#000000"
_LIGHT_GROUNDS, _DARK_GROUND = ("#f1f1f1", _WHITE), "#1a2122"
_HEX = re.compile(r"#?([0-9a-f]{3}|[0-9a-f]{6})")
_PLACEHOLDER = re.compile(r"\{[^{}]*\}?|\}")


class BrandFault(InvalidRequest):
    """The faults of a brand by its parts, such as `colour`."""

    def __init__(self, **parts: str) -> None:
        super().__init__(". ".join(f"`{part}` {detail}" for part, detail in parts.items()))
        self.parts = parts


def read_colour(typed: str) -> str | None:
    """Returns a colour such as `#17605b`; None for anything but three or six hexadecimal digits."""
    found = _HEX.fullmatch(typed.strip().lower())
    if found is None:
        return None
    digits = found[1]
    return f"#{digits if len(digits) == 6 else ''.join(digit * 2 for digit in digits)}"


def contrast(one: str, other: str) -> float:
    """Returns the contrast of two colours, from 1 to 21 (WCAG 2.2, relative luminance)."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def ink_on(ground: str) -> str:
    """Returns white or black, whichever has more contrast on a background. One of them always reaches 4.5 to 1."""
    return max((_WHITE, _BLACK), key=lambda ink: contrast(ink, ground))


def mixed(one: str, other: str, share: float) -> str:
    """Returns the mix of two colours: `share`, from 0 to 1, is the part of `other`."""
    pairs = zip(_parts(one), _parts(other), strict=True)
    return "#" + "".join(f"{round(mine + (theirs - mine) * share):02x}" for mine, theirs in pairs)


class Colours(NamedTuple):
    """A chosen colour, the colour of text on it, and the nearest colours for text on light and on dark pages."""

    fill: str
    ink: str
    link: str
    dark_link: str


def colours_of(fill: str) -> Colours:
    """Returns the colours that follow from a chosen colour."""
    return Colours(
        fill, ink_on(fill), _readable(fill, _LIGHT_GROUNDS, _BLACK), _readable(fill, (_DARK_GROUND,), _WHITE)
    )


class OwnWrapping(msgspec.Struct, frozen=True):
    """A wrapping of a customer's own: a pattern or a picture on its paper, and a ribbon."""

    key: str  # the value of `wrappingKey` in orders
    name: str
    pattern: str
    paper: str  # a colour
    ribbon: str
    picture: str | None = None  # the name of a picture, which replaces the pattern

    @property
    def ribbon_dark(self) -> str:
        """The shaded parts of the ribbon."""
        return mixed(self.ribbon, _BLACK, 0.25)

    @property
    def print(self) -> str:
        """The colour of the pattern, which contrasts with the paper."""
        return mixed(self.paper, ink_on(self.paper), 0.35)


class Brand(msgspec.Struct, frozen=True):
    """A customer's brand. Every part is optional."""

    colour: str | None = None
    logo: str | None = None  # the name of a picture
    sender_name: str | None = None
    reply_to: str | None = None
    subject: str | None = None
    footer: str | None = None
    wrappings: Sequence[OwnWrapping] = ()
    company: str = ""  # the customer's name, shown if the logo is not

    @property
    def colours(self) -> Colours | None:
        """The colours that follow from the chosen colour; None if none is chosen."""
        return colours_of(self.colour) if self.colour else None

    def wrapping(self, key: str | None) -> OwnWrapping | None:
        """Returns the own wrapping with that key; None if there is none."""
        return next((one for one in self.wrappings if one.key == key), None)

    def subject_from(self, sender: str) -> str | None:
        """Returns the subject of a gift's mail. None if the brand has none, or if its subject needs a sender and the order has none."""
        if self.subject is None or (SENDER in self.subject and not sender):
            return None
        return self.subject.replace(SENDER, sender)


NO_BRAND = Brand()


def check_subject(subject: str) -> None:
    """Raises BrandFault for a placeholder other than `{sender}`."""
    for placeholder in _PLACEHOLDER.findall(subject):
        if placeholder != SENDER:
            raise BrandFault(subject=f"must not contain placeholders other than {SENDER}; it contains {placeholder}")


def _readable(colour: str, grounds: Sequence[str], towards: str) -> str:
    """Returns the colour, mixed with as little of `towards` as makes it readable on all backgrounds."""
    steps = (mixed(colour, towards, step / 50) for step in range(51))
    return next(one for one in steps if all(contrast(one, ground) >= _CONTRAST for ground in grounds))


def _parts(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _luminance(colour: str) -> float:
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in (value / 255 for value in _parts(colour))
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
