"""The pages' own style, script and icon: read once, named by their content, kept by browsers for a year."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent / "assets"
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_HASH_CHARACTERS = 12


@dataclass(frozen=True, slots=True)
class Asset:
    """A file as it is served."""

    body: bytes
    media_type: str


@cache
def assets() -> dict[str, Asset]:
    """All assets by the name they are served under, such as `claim.4f2a90c1d3e5.css`."""
    return {
        _served_as(path): Asset(path.read_bytes(), _TYPES[path.suffix])
        for path in sorted(_FOLDER.iterdir())
        if path.suffix in _TYPES
    }


@cache
def served_name(name: str) -> str:
    """The name `claim.css` is served under."""
    return _served_as(_FOLDER / name)


def _served_as(path: Path) -> str:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:_HASH_CHARACTERS]
    return f"{path.stem}.{digest}{path.suffix}"
