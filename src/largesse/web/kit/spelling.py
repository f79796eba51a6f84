"""How callers spell what rules name.

A rule names what it is about by the name it has in the code, in backticks: `code_quantity`. Members of requests are spelled
in camelCase, so that callers read `codeQuantity`.
"""

from __future__ import annotations

import re

_NAMED = re.compile(r"`[a-z]+(?:_[a-z0-9]+)+(?=[`.\[])")
_POINTED = re.compile(r"/[a-z]+(?:_[a-z0-9]+)+(?=/|$)")
_JOINT = re.compile(r"_([a-z0-9])")


def spell_name(name: str) -> str:
    """A name of the code as callers spell it."""
    return _JOINT.sub(lambda joint: joint[1].upper(), name)


def spell_detail(detail: str) -> str:
    """A sentence with the names in it as callers spell them."""
    return _NAMED.sub(_in_camel_case, detail)


def spell_pointer(pointer: str) -> str:
    """A JSON pointer with its members as callers spell them."""
    return _POINTED.sub(_in_camel_case, pointer)


def _in_camel_case(name: re.Match[str]) -> str:
    return spell_name(name[0])
