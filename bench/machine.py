"""What the numbers were measured on."""

import os
import platform
import subprocess
import time
from importlib.metadata import version
from pathlib import Path

import asyncpg

_PACKAGES = ("asyncpg", "msgspec", "starlette", "uvicorn", "uvloop", "httptools", "cryptography")

# The settings of PostgreSQL that durability and speed hang on.
_SETTINGS = (
    "fsync",
    "synchronous_commit",
    "full_page_writes",
    "wal_sync_method",
    "wal_level",
    "wal_compression",
    "commit_delay",
    "shared_buffers",
    "max_wal_size",
    "checkpoint_timeout",
    "max_connections",
    "random_page_cost",
    "server_version",
)


def describe_machine() -> dict[str, str]:
    """Processor, memory, kernel and versions, by name."""
    return {
        "processor": f"{os.cpu_count()} cores of {_processor()}",
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "system": f"{_distribution()}, {platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "packages": ", ".join(f"{name} {version(name)}" for name in _PACKAGES),
        "busy before": f"{_busy_share():.0%} of the cores' time",
        "commit": _commit(),
    }


async def postgres_settings(url: str) -> dict[str, str]:
    """The settings of the server as a session sees them. Raises SystemExit where a commit would not be durable."""
    connection = await asyncpg.connect(url)
    try:
        settings = {name: await connection.fetchval(f"SHOW {name}") for name in _SETTINGS}
    finally:
        await connection.close()
    for name in ("fsync", "synchronous_commit", "full_page_writes"):
        if settings[name] != "on":
            raise SystemExit(f"bench: {name} is {settings[name]}: nothing measured here would be durable")
    return settings


def _busy_share(over_s: float = 3.0) -> float:
    """How much of the cores' time went into something, just now."""
    before = _idle_s()
    time.sleep(over_s)
    return max(0.0, 1 - (_idle_s() - before) / (over_s * (os.cpu_count() or 1)))


def _idle_s() -> float:
    """Seconds that the cores have been idle, all together."""
    return float(Path("/proc/uptime").read_text().split()[1])


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "?")


def _distribution() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.system()


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
