"""A folder in memory, where small files take a third of the time that a disk takes, and no two servers wait for one disk."""

import os
import shutil
from pathlib import Path

FOLDER = Path("/dev/shm")  # noqa: S108 - who makes a folder there keeps others from entering it
_LEAST_BYTES = 2 * 1024**3


def has_room() -> bool:
    """Whether programs may be run from there, too, and there is space for what tests write."""
    return (
        os.access(FOLDER, os.W_OK)
        and not os.statvfs(FOLDER).f_flag & os.ST_NOEXEC
        and shutil.disk_usage(FOLDER).free > _LEAST_BYTES
    )
