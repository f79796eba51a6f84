"""Texts that callers give: blank ones are as if left out, and which characters none may hold."""

from __future__ import annotations

import re

from largesse.decoding import refused

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_CONTROL_BUT_LINE_BREAKS = re.compile(r"[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


def read_text(member: str, text: str | None, *, line_breaks: bool = False) -> str | None:
    """`text` as it is; None when it is blank. Raises InvalidRequest, naming `member`, for control characters."""
    if text is None or not text.strip():
        return None
    if (_CONTROL_BUT_LINE_BREAKS if line_breaks else _CONTROL).search(text):
        raise refused(member, "must hold no control characters")
    return text
