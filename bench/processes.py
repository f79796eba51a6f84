"""CPU time and memory of processes, from /proc."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class _Stat:
    pid: int
    parent: int
    own_s: float
    reaped_s: float  # of children that have ended and were waited for


def cpu_s(root: int) -> float:
    """Seconds of CPU that a process and everything below it have used, children that ended included."""
    stats = _all()
    return sum(stats[pid].own_s + stats[pid].reaped_s for pid in _tree(root, stats))


def peak_mib(root: int) -> float:
    """The most memory any one process of a tree has had resident, in MiB."""
    return max((_peak_mib(pid) for pid in _tree(root, _all())), default=0.0)


def tree(root: int) -> list[int]:
    """A process and everything below it."""
    return list(_tree(root, _all()))


def _tree(root: int, stats: dict[int, _Stat]) -> Iterable[int]:
    if root in stats:
        yield root
    for stat in stats.values():
        if stat.parent == root:
            yield from _tree(stat.pid, stats)


def _all() -> dict[int, _Stat]:
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = path.read_text()
        except OSError:
            continue  # it has ended
        fields = text.rpartition(")")[2].split()
        utime, stime, cutime, cstime = (int(ticks) / _TICKS_PER_S for ticks in fields[11:15])
        pid = int(path.parent.name)
        found[pid] = _Stat(pid, int(fields[1]), utime + stime, cutime + cstime)
    return found


def _peak_mib(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:")), 0.0)
