"""The optional texts of an order, each declared once, and the keys of wrappings.

Each field of `Options` is a column of `orders`. Its declaration also makes the member of the send bodies with its limit and checks, the
member of `GET /orders/{reference}/request`, and a line on the order's page. A text is personal unless its declaration says otherwise: then it
is erased, exported and searched. Events list the options in structs of their own. CONTRIBUTING.md says how to add one.
"""

from __future__ import annotations

from itertools import compress
from operator import attrgetter
from typing import Annotated, Any, get_args

import msgspec
from msgspec import Meta

from largesse.base.decoding import refused
from largesse.base.text import unfit, unfit_key


def read_text(member: str, text: str | None, *, line_breaks: bool = False) -> str | None:
    """Returns `text`, or None if it is blank. Raises InvalidRequest, naming `member`, for characters that no text may contain."""
    if text is None or not text.strip():
        return None
    if text.isprintable():  # stricter than the rule, but ten times as fast
        return text
    if found := unfit(text, line_breaks=line_breaks):
        raise refused(member, f"must not contain {found}")
    return text


def read_key(member: str, text: str | None) -> str | None:
    """Returns a caller's own key without surrounding blanks, or None if it is blank. Raises InvalidRequest as `read_text` does."""
    key = text.strip() if text else ""
    if key.isprintable():  # a quick check, as in `read_text`
        return key or None
    if found := unfit_key(key):
        raise refused(member, f"must not contain {found}")
    return key


DEFAULT_WRAPPING = "default"
WRAPPINGS = (DEFAULT_WRAPPING, "confetti", "birthday", "thank-you", "winter", "elegant", "stars", "gold", "garden")
# Other names for wrappings that callers may use.
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
    """Returns the wrapping that `key` names, in any letter case. For an unknown key, returns the default wrapping."""
    folded = key.strip().casefold()
    named = ALIASES.get(folded, folded)
    return named if named in WRAPPINGS else DEFAULT_WRAPPING


_KNOWN_WRAPPINGS = ", ".join(f"`{key}`" for key in WRAPPINGS)
MAX_FROM_NAME = 32  # characters, as for the next two
MAX_MESSAGE = 256
MAX_WRAPPING_KEY = 64
# Keys of `extra` in a declaration. By default a text takes no line breaks and is personal, as it may name a person.
_LINE_BREAKS = "line_breaks"
_PERSONAL = "personal"


class Options(msgspec.Struct, frozen=True):
    """The optional texts of an order; None for one that was left out or blank."""

    wrapping_key: (
        Annotated[
            str,
            Meta(
                max_length=MAX_WRAPPING_KEY,
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
        """Returns these options, with the texts of `others` for those left out."""
        pairs = zip(_values(self), _values(others), strict=True)
        return Options(*(own or other for own, other in pairs))


OPTIONS = Options.__struct_fields__
_NONE_SAID = Options()
_values = attrgetter(*OPTIONS)


def _declared(said: str, *, default: bool) -> tuple[bool, ...]:
    """Returns the value of `said` in each option's declaration, or the default."""
    found = []
    for field in msgspec.structs.fields(Options):
        kinds = msgspec.inspect.type_info(field.type)
        assert isinstance(kinds, msgspec.inspect.UnionType), "an option may be left out"
        extras = [kind.extra or {} for kind in kinds.types if isinstance(kind, msgspec.inspect.Metadata)]
        found.append(next((extra[said] for extra in extras if said in extra), default))
    return tuple(found)


_LINE_BREAKS_ALLOWED = _declared(_LINE_BREAKS, default=False)
# The options that may contain personal data; they are also the names of columns of `orders`.
PERSONAL = tuple(compress(OPTIONS, _declared(_PERSONAL, default=True)))
# The description of each option in its declaration, `Annotated[str, Meta(…)] | None`.
MEANINGS: dict[str, str] = {
    field.name: get_args(get_args(field.type)[0])[1].description for field in msgspec.structs.fields(Options)
}


def options_of(given: Any) -> Options:
    """Returns the options of an object that has an attribute for each."""
    texts = _values(given)
    return Options(*texts) if any(texts) else _NONE_SAID


def check_options(options: Options) -> Options:
    """Returns the options without blank ones. Raises InvalidRequest for characters that no text may contain."""
    if options is _NONE_SAID:
        return options
    return Options(
        *[
            None if text is None else read_text(name, text, line_breaks=line_breaks)
            for name, text, line_breaks in zip(OPTIONS, _values(options), _LINE_BREAKS_ALLOWED, strict=True)
        ]
    )
