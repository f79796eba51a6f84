"""The JSON of the API: what bodies are read into, and what answers are made of.

A file for each room below that it speaks for: `catalogue`, `orders`, `deliveries`, and of what callers ask `sending` and `quoting`. The rooms know nothing of it: they get and give plain values, and name what is
wrong by the names of their own.
"""

from __future__ import annotations

from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode


def in_shape(value: Any, shape: Any) -> bytes:
    """A value of a room below, or a list of them, as the JSON of a shape that has members of the same names."""
    return _encode(msgspec.convert(value, shape, from_attributes=True))
