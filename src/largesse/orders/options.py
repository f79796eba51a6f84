"""What a caller may say of an order and need not: each declared here, once.

A field of `Options` is a column of `orders`. From its declaration follow the member of the send bodies with its limit, how it is
read, written with an order and read back; what answers and events tell of it is a member of the same name in their shapes.
CONTRIBUTING.md says how one is added.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from largesse.orders.texts import read_text
from largesse.orders.wrappings import WRAPPINGS

_KNOWN_WRAPPINGS = ", ".join(f"`{key}`" for key in WRAPPINGS)
MAX_FROM_NAME = 32  # characters
MAX_MESSAGE = 256
_LINE_BREAKS = {"line_breaks": True}  # what a text may hold that others may not


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
            ),
        ]
        | None
    ) = None
    from_name: (
        Annotated[
            str, Meta(max_length=MAX_FROM_NAME, description="Sender name", examples=["The People team"])
        ]
        | None
    ) = None
    message: (
        Annotated[
            str,
            Meta(
                max_length=MAX_MESSAGE,
                description="Message to the recipient",
                examples=["Thank you!"],
                extra=_LINE_BREAKS,
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


def told_options(shape: type[msgspec.Struct]) -> tuple[str, ...]:
    """The options that a shape has a member for."""
    return tuple(name for name in OPTIONS if name in shape.__struct_fields__)


def _may_break_lines(annotation: Any) -> bool:
    """Whether a field of `Options` is declared to take line breaks."""
    kinds = msgspec.inspect.type_info(annotation)
    assert isinstance(kinds, msgspec.inspect.UnionType), "an option may be left out"
    return any(
        isinstance(kind, msgspec.inspect.Metadata) and kind.extra == _LINE_BREAKS for kind in kinds.types
    )


_LINE_BREAKS_ALLOWED = tuple(_may_break_lines(field.type) for field in msgspec.structs.fields(Options))


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
