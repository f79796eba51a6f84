"""How many connections a process may hold, which is a matter of how many files it may open."""

from __future__ import annotations

import structlog

from largesse.base.errors import OperatorError
from largesse.base.open_files import allow_files

MAX_CONNECTIONS = 4_000
# For everything else that a serving process opens: the database, the log, listening sockets, what it reads.
_OTHER_FILES = 100

_log = structlog.get_logger(__name__)


def files_wanted(wanted: int | None, *, other_files: int = 0) -> int:
    """How many files a process may have open at most; the arguments are those of `connection_limit`."""
    return (wanted or MAX_CONNECTIONS) + _OTHER_FILES + other_files


def connection_limit(wanted: int | None, *, other_files: int = 0) -> int:
    """How many connections this process may hold at once; raises its limit of open files as far as that needs and may be.

    `wanted` is what the operator set; None: MAX_CONNECTIONS, or fewer where the system allows fewer. `other_files` is
    what a worker in the same process opens. Raises OperatorError when the system does not allow what the operator wants.
    """
    reserve = _OTHER_FILES + other_files
    allowed = allow_files(files_wanted(wanted, other_files=other_files))
    # Half of a small allowance is for the callers, whatever a worker may want of it.
    most = max(allowed - reserve, allowed // 2)
    if wanted is None:
        if most < MAX_CONNECTIONS:
            _log.warning("connections_limited_by_open_files", limit=most, open_files=allowed)
        return min(MAX_CONNECTIONS, most)
    if wanted > most:
        raise OperatorError(
            f"LARGESSE_MAX_CONNECTIONS is {wanted}, but this process may open {allowed} files, which is enough for "
            f"{most} connections: raise the limit of open files (LimitNOFILE=, ulimit -Hn) or lower the setting"
        )
    return wanted
