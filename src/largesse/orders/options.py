"""Texts that callers give: blank ones are as if left out, and which characters none may hold.

The keys of wrappings: what `wrapping_key` may name. Mail and pages each give them their looks.

What a caller may say of an order and need not: each declared here, once.

A field of `Options` is a column of `orders`. From its declaration follow the member of the send bodies with its limit, how it is
read, written and read back, the member of `GET /orders/{reference}/request`, and a line of the order's page. A text is personal
unless its declaration says otherwise: what erases, exports and searches personal texts goes by that. What events say of it
is a member of the same name in their shape. CONTRIBUTING.md says how one is added.
"""

from __future__ import annotations

from itertools import compress
from operator import attrgetter
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from largesse.base.decoding import refused
from largesse.base.text import unfit, unfit_key


def read_text(member: str, text: str | None, *, line_breaks: bool = False) -> str | None:
    """`text` as it is; None when it is blank. Raises InvalidRequest, naming `member`, for what no text may hold."""
    if text is None or not text.strip():
        return None
    if text.isprintable():  # which is less than may be, and takes a tenth of the time to tell
        return text
    if found := unfit(text, line_breaks=line_breaks):
        raise refused(member, f"must hold no {found}")
    return text


def read_key(member: str, text: str | None) -> str | None:
    """The same for what a caller names something of its own by: without surrounding blanks, and as it likes otherwise."""
    key = text.strip() if text else ""
    if key.isprintable():  # as in `read_text`
        return key or None
    if found := unfit_key(key):
        raise refused(member, f"must hold no {found}")
    return key


DEFAULT_WRAPPING = "default"
WRAPPINGS = (DEFAULT_WRAPPING, "confetti", "birthday", "thank-you", "winter", "elegant", "stars", "gold", "garden")
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


_KNOWN_WRAPPINGS = ", ".join(f"`{key}`" for key in WRAPPINGS)
MAX_FROM_NAME = 32  # characters
MAX_MESSAGE = 256
# What a declaration says in `extra`. Left out, a text takes no line breaks, and is personal: somebody may be named in it.
_LINE_BREAKS = "line_breaks"
_PERSONAL = "personal"


class Options(msgspec.Struct, frozen=True):
    """The optional texts of an order; None for what was not said, or only in blanks."""

    wrapping_key: (
        Annotated[
            str,
            Meta(
                max_length=64,
                description=f"Wrapping of the gift, by default the template's, or `default`. Known are {_KNOWN_WRAPPINGS}; "
                "any other is kept, and looks like `default`.",
                examples=["confetti"],
                extra={_PERSONAL: False},
            ),
        ]
        | None
    ) = None
    from_name: (
        Annotated[str, Meta(max_length=MAX_FROM_NAME, description="Sender name", examples=["The People team"])] | None
    ) = None
    message: (
        Annotated[
            str,
            Meta(
                max_length=MAX_MESSAGE,
                description="Message to the recipient",
                examples=["Thank you!"],
                extra={_LINE_BREAKS: True},
            ),
        ]
        | None
    ) = None

    def or_else(self, others: Options) -> Options:
        """The same, with what was not said as in `others`."""
        pairs = zip(_values(self), _values(others), strict=True)
        return Options(*(own or other for own, other in pairs))


OPTIONS = Options.__struct_fields__
_NONE_SAID = Options()
_values = attrgetter(*OPTIONS)


def _declared(said: str, *, default: bool) -> tuple[bool, ...]:
    """Returns for each option what its declaration says, or the default where it says nothing."""
    found = []
    for field in msgspec.structs.fields(Options):
        kinds = msgspec.inspect.type_info(field.type)
        assert isinstance(kinds, msgspec.inspect.UnionType), "an option may be left out"
        extras = [kind.extra or {} for kind in kinds.types if isinstance(kind, msgspec.inspect.Metadata)]
        found.append(next((extra[said] for extra in extras if said in extra), default))
    return tuple(found)


_LINE_BREAKS_ALLOWED = _declared(_LINE_BREAKS, default=False)
# The options that a privacy request is about: columns of `orders`, too.
PERSONAL = tuple(compress(OPTIONS, _declared(_PERSONAL, default=True)))


def options_of(given: Any) -> Options:
    """The options in what has an attribute for each, as they are."""
    texts = _values(given)
    return Options(*texts) if any(texts) else _NONE_SAID


def check_options(options: Options) -> Options:
    """The options with blank ones left out. Raises InvalidRequest for what no text may hold."""
    if options is _NONE_SAID:
        return options
    return Options(
        *[
            None if text is None else read_text(name, text, line_breaks=line_breaks)
            for name, text, line_breaks in zip(OPTIONS, _values(options), _LINE_BREAKS_ALLOWED, strict=True)
        ]
    )
