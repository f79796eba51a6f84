"""How many connections a process may hold: as many as its limit of open files allows."""

from __future__ import annotations

import structlog

from largesse.base.errors import OperatorError
from largesse.base.open_files import allow_files

MAX_CONNECTIONS = 4_000
# Files that a serving process opens besides connections: the database, the log, listening sockets, files it reads.
_OTHER_FILES = 100

_log = structlog.get_logger(__name__)


def files_needed(requested: int | None, *, other_files: int = 0) -> int:
    """Returns how many files a process needs to open, for the arguments of `connection_limit`."""
    return (requested or MAX_CONNECTIONS) + _OTHER_FILES + other_files


def connection_limit(requested: int | None, *, other_files: int = 0) -> int:
    """Returns how many connections this process may hold at once. Raises its limit of open files if needed and allowed.

    `requested` is the operator's setting; None means MAX_CONNECTIONS, or fewer if the system allows fewer. `other_files` is
    what a worker in the same process opens. Raises OperatorError if the system does not allow the operator's setting.
    """
    reserve = _OTHER_FILES + other_files
    allowed = allow_files(files_needed(requested, other_files=other_files))
    # Callers get at least half of a small limit, whatever a worker needs.
    most = max(allowed - reserve, allowed // 2)
    if requested is None:
        if most < MAX_CONNECTIONS:
            _log.warning("connections_limited_by_open_files", limit=most, open_files=allowed)
        return min(MAX_CONNECTIONS, most)
    if requested > most:
        raise OperatorError(
            f"LARGESSE_MAX_CONNECTIONS is {requested}, but this process may open {allowed} files, which is enough for "
            f"{most} connections: raise the limit of open files (LimitNOFILE=, ulimit -Hn) or lower the setting"
        )
    return requested
