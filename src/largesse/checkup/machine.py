"""Checks of the machine: the data directory, and how many files may be open."""

from __future__ import annotations

import os
import resource
import stat

from largesse.base.settings import Settings
from largesse.checkup.finding import Finding, error, ok, warning
from largesse.connections.limit import files_wanted
from largesse.worker import OPEN_FILES

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def check_data_dir(settings: Settings) -> list[Finding]:
    """Whether the data directory can be used, and by nobody else; it is not used with an external database."""
    name, folder = "LARGESSE_DATA_DIR", settings.data_dir
    if settings.database_url is not None:
        return []
    if not folder.exists():
        return [ok(name, f"{folder} is made at the first start.")]
    if not folder.is_dir():
        return [error(name, f"{folder} is no directory.")]
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return [error(name, f"{folder} cannot be written to by this user: give it to the service's.")]
    if folder.stat().st_mode & _OTHERS_WRITE:
        return [warning(name, f"Others on this machine may change {folder}: chmod go-w it.")]
    return [ok(name, f"Nobody else may change {folder}.")]


def check_open_files(settings: Settings) -> list[Finding]:
    """Whether this process, and so one that is started alike, may open as many files as the busiest one wants."""
    name = "RLIMIT_NOFILE"
    wanted = files_wanted(settings.max_connections, other_files=OPEN_FILES)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard == resource.RLIM_INFINITY or hard >= wanted:
        return [ok(name, f"A process may open the {wanted:,} files that serving and working take at most.")]
    said = (
        f"A process may open {hard:,} files; one that serves and works wants {wanted:,} when it is busiest."
    )
    return [warning(name, f"{said} Raise the limit (LimitNOFILE=, ulimit -Hn).")]
