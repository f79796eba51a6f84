"""Runs a PostgreSQL program as another user: `python -I -S launch.py UID GID CLUSTER PROGRAM ARGUMENT...`.

PostgreSQL refuses to run as root. But its programs and data may be below folders that only root can enter. If the user cannot reach them,
the program keeps one capability, to read past folder permissions; otherwise none. The parent folders stay as they are. Linux and
standard library only. It is a separate script, as it must run between fork and exec, where code of a threaded process must not run.
"""

import ctypes
import os
import sys
from pathlib import Path

DAC_OVERRIDE = 1  # <linux/capability.h>
DAC_READ_SEARCH = 2
PR_SET_KEEPCAPS = 8  # <linux/prctl.h>
PR_SET_SECUREBITS = 28
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_RAISE = 2
SECBIT_NO_SETUID_FIXUP = 1 << 2  # <linux/securebits.h>
CAPABILITY_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Switches to the user and runs the program. Never returns."""
    uid, gid = int(sys.argv[1]), int(sys.argv[2])
    cluster, command = Path(sys.argv[3]), sys.argv[4:]
    _become(uid, gid)
    # A container's root often lacks DAC_READ_SEARCH but has DAC_OVERRIDE: it comes last because it grants writing too.
    for capabilities in ([], [DAC_READ_SEARCH], [DAC_OVERRIDE]):
        if _keep(capabilities) and _reachable(cluster, Path(command[0])):
            os.execv(command[0], command)  # noqa: S606 - running this program is the purpose
    _keep([])
    blocked = _blocked_folder(cluster) or _blocked_folder(Path(command[0])) or cluster
    sys.exit(f"FATAL:  {blocked} is closed to user id {uid}, as whom PostgreSQL must run here")


def _become(uid: int, gid: int) -> None:
    _libc.prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0)
    # PostgreSQL looks for its programs with access(2), which otherwise ignores a user's capabilities.
    _libc.prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0)
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    os.umask(0o077)
    os.chdir("/")


def _keep(capabilities: list[int]) -> bool:
    """Sets the capabilities that survive exec. Returns False if the process does not have them.

    The permitted set is unchanged until exec, so that the next attempt can set others.
    """
    mask = sum(1 << capability for capability in capabilities)
    permitted = _permitted()
    if mask & ~permitted:
        return False
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    low, high = 0xFFFFFFFF, 32
    # Per 32 bits: effective, permitted, inheritable.
    data = (ctypes.c_uint32 * 6)(mask, permitted & low, mask, 0, permitted >> high, 0)
    if _libc.capset(header, data) != 0:
        return False
    return all(_libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, c, 0, 0) == 0 for c in capabilities)


def _permitted() -> int:
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    data = (ctypes.c_uint32 * 6)()
    if _libc.capget(header, data) != 0:
        return 0
    return int(data[1]) | int(data[4]) << 32


def _reachable(cluster: Path, program: Path) -> bool:
    """Returns whether the program can be run and finds its libraries, its shared files and the cluster."""
    installation = program.parent.parent
    folders = [cluster, program.parent, installation / "lib", installation / "share"]
    try:
        folders += installation.parent.parent.glob("*pgserver.libs")  # the folder of the wheel's shared libraries
        for folder in folders:
            os.listdir(folder)  # noqa: PTH208 - names suffice
        with program.open("rb"):
            return os.access(program, os.X_OK)
    except PermissionError:
        return False


def _blocked_folder(path: Path) -> Path | None:
    """Returns the first folder on the way to `path` that cannot be entered."""
    for parent in reversed(path.parents):
        if not os.access(parent, os.X_OK):
            return parent
    return None


if __name__ == "__main__":
    main()
