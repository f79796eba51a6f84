"""What a cookie or a link carries: 256 random bits, of which only a hash is stored."""

from __future__ import annotations

import hashlib
import re
import secrets

_SHAPE = re.compile(r"[A-Za-z0-9_-]{43}")


def new_secret() -> str:
    """A fresh one: 43 characters fit for a URL and a cookie."""
    return secrets.token_urlsafe(32)


def secret_hash(secret: str) -> bytes | None:
    """The SHA-256 by which the database knows it; None for what cannot be one."""
    return hashlib.sha256(secret.encode()).digest() if _SHAPE.fullmatch(secret) else None
