"""Spells names for callers.

Rules name a member as the code does, in backticks: `code_quantity`. Requests spell members in camelCase, so callers read `codeQuantity`.
"""

from __future__ import annotations

import re

_NAMED = re.compile(r"`[a-z]+(?:_[a-z0-9]+)+(?=[`.\[])")
_POINTED = re.compile(r"/[a-z]+(?:_[a-z0-9]+)+(?=/|$)")
_JOINT = re.compile(r"_([a-z0-9])")


def spell_name(name: str) -> str:
    """Returns a name of the code as callers spell it."""
    return _JOINT.sub(lambda joint: joint[1].upper(), name)


def spell_detail(detail: str) -> str:
    """Returns a sentence with its names as callers spell them."""
    return _NAMED.sub(_in_camel_case, detail)


def spell_pointer(pointer: str) -> str:
    """Returns a JSON pointer with its members as callers spell them."""
    return _POINTED.sub(_in_camel_case, pointer)


def _in_camel_case(name: re.Match[str]) -> str:
    return spell_name(name[0])
