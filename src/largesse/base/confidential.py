"""Records whose values must not appear in a log."""

from typing import Any

import msgspec


class Confidential(msgspec.Struct, frozen=True):
    """A record with secrets or personal data: its repr, which could end in a log, shows only its name."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:  # the library rich shows local variables in tracebacks
        return []
