"""The JSON of the API: the types that bodies are decoded into and answers are encoded from."""

from __future__ import annotations

from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode


def in_shape(value: Any, shape: Any) -> bytes:
    """Returns a value, or a list of values, as the JSON of a shape with members of the same names."""
    return _encode(msgspec.convert(value, shape, from_attributes=True))
