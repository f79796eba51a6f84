"""Texts that callers give: blank ones are as if left out, and which characters none may hold."""

from __future__ import annotations

from largesse.base.decoding import refused
from largesse.base.text import unfit, unfit_key


def read_text(member: str, text: str | None, *, line_breaks: bool = False) -> str | None:
    """`text` as it is; None when it is blank. Raises InvalidRequest, naming `member`, for what no text may hold."""
    if text is None or not text.strip():
        return None
    if text.isprintable():  # which is less than may be, and takes a tenth of the time to tell
        return text
    if found := unfit(text, line_breaks=line_breaks):
        raise refused(member, f"must hold no {found}")
    return text


def read_key(member: str, text: str | None) -> str | None:
    """The same for what a caller names something of its own by: without surrounding blanks, and as it likes otherwise."""
    key = text.strip() if text else ""
    if key.isprintable():  # as in `read_text`
        return key or None
    if found := unfit_key(key):
        raise refused(member, f"must hold no {found}")
    return key
