"""The public key of an order: opaque, and near its neighbours in time.

The first four characters are the hour, so that new references land on the same pages of their index however
many orders there are; the other sixteen are 80 random bits, which is what keeps them from being guessed.
"""

from __future__ import annotations

import os
import re
from datetime import datetime
from functools import lru_cache

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = [
    first + second for first in _ALPHABET for second in _ALPHABET
]  # by ten bits, the text of two characters
_RANDOM_BYTES = 10
_SHIFTS = range(70, -10, -10)
_WELL_FORMED = re.compile(rf"[{_ALPHABET}]{{20}}")


def new_reference(now: datetime) -> str:
    """A new reference of 20 Crockford base32 characters."""
    random = int.from_bytes(os.urandom(_RANDOM_BYTES), "big")
    return _hour_text(int(now.timestamp()) // 3600) + "".join(
        [_PAIRS[random >> shift & 1023] for shift in _SHIFTS]
    )


@lru_cache(maxsize=2)
def _hour_text(hour: int) -> str:
    """The hour as four characters, which come round after some 120 years."""
    return "".join(_ALPHABET[hour >> shift & 31] for shift in (15, 10, 5, 0))


def is_reference(text: str) -> bool:
    """Whether `text` could be a reference at all."""
    return _WELL_FORMED.fullmatch(text) is not None
