"""The public key of an order: opaque, and near its neighbours in time.

The first four characters are the hour, so that new references land on the same pages of their index however
many orders there are; the other sixteen are 80 random bits, which is what keeps them from being guessed.
"""

from __future__ import annotations

import base64
import os
import re
from datetime import datetime
from functools import lru_cache

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_TO_CROCKFORD = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", _ALPHABET.encode())
_RANDOM_BYTES = 10
_WELL_FORMED = re.compile(rf"[{_ALPHABET}]{{20}}")


def new_reference(now: datetime) -> str:
    """A new reference of 20 Crockford base32 characters."""
    random = base64.b32encode(os.urandom(_RANDOM_BYTES)).translate(_TO_CROCKFORD).decode("ascii")
    return _hour_text(int(now.timestamp()) // 3600) + random


@lru_cache(maxsize=2)
def _hour_text(hour: int) -> str:
    """The hour as four characters, which come round after some 120 years."""
    return "".join(_ALPHABET[hour >> shift & 31] for shift in (15, 10, 5, 0))


def is_reference(text: str) -> bool:
    """Whether `text` could be a reference at all."""
    return _WELL_FORMED.fullmatch(text) is not None
