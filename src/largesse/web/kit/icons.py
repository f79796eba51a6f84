"""Icons of the Lucide set, drawn into pages as inline SVG ([decision 58](docs/decisions/0058-icons.md))."""

from __future__ import annotations

import re
from functools import cache

from lucide import jinja
from markupsafe import Markup

_HEAD = re.compile(r"<svg\b[^>]*>\s*")


@cache
def icon(name: str) -> Markup:
    """Returns the Lucide icon of that name, such as `gift`. Screen readers skip it, because a word or a label always says the same.

    Size, stroke and colour come from the class `icon` of the style sheet. Raises `lucide.IconDoesNotExist`.
    """
    drawn = _HEAD.sub(
        '<svg class="icon" viewBox="0 0 24 24" aria-hidden="true">', jinja.lucide(name, size=None), count=1
    )
    return Markup(re.sub(r"\s*(/?>)\s*", r"\1", drawn))  # noqa: S704 - the package's own drawing
