"""What a cookie or a link carries: 256 random bits, of which only a hash is stored."""

from __future__ import annotations

import hashlib
import re
import secrets

_SHAPE = re.compile(r"[A-Za-z0-9_-]{43}")


def new_secret() -> str:
    """Returns a fresh secret: 43 characters that a URL and a cookie can hold."""
    return secrets.token_urlsafe(32)


def secret_hash(secret: str) -> bytes | None:
    """Returns the SHA-256 of the secret, which the database stores; None for a text that cannot be one."""
    return hashlib.sha256(secret.encode()).digest() if _SHAPE.fullmatch(secret) else None
