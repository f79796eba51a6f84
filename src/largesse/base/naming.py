"""Keys made of names: what people call a thing, as commands and world files can name it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection

_LONGEST = 60
_NOT_IN_A_KEY = re.compile(r"[^a-z0-9]+")


def free_key(name: str, taken: Collection[str], nameless: str) -> str:
    """The name in small letters, digits and hyphens, numbered where that is taken; `nameless` for one that has none of them."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    wanted = _NOT_IN_A_KEY.sub("-", plain).strip("-")[:_LONGEST] or nameless
    key, number = wanted, 1
    while key in taken:
        number += 1
        key = f"{wanted}-{number}"
    return key
