"""A cluster of its own, by a program that is not part of this project (docs/testing.md, Citus).

`program start FOLDER --nodes 2` starts servers, or those of them again that do not run, and prints JSON with `url`, the
coordinator's address, and `servers`, of which each has a `port` and its folder, `data`, the coordinator first. `program add-node
FOLDER` starts one more, which holds nothing yet, and prints the same; `program stop FOLDER` stops them.
"""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

PROGRAM = os.environ.get("LARGESSE_TEST_CLUSTER", "")
_LIMIT_S = 120


class Cluster:
    """A coordinator and its nodes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.url = ""
        self.servers: list[dict[str, Any]] = []

    def start(self) -> None:
        """Starts what does not run."""
        self._tell(self._run("start", "--nodes", "2"))

    def add_node(self) -> None:
        """Adds a node that holds nothing yet."""
        self._tell(self._run("add-node"))

    def stop(self) -> None:
        """Stops all of them in good order."""
        self._run("stop")

    def url_of(self, server: dict[str, Any], database: str) -> str:
        """The address of a database on one of the servers."""
        url = urlsplit(self.url)
        user = f"{url.username}@" if url.username else ""
        return url._replace(netloc=f"{user}{url.hostname}:{server['port']}", path=f"/{database}").geturl()

    def pid_of(self, server: dict[str, Any]) -> int:
        """The process that all others of a server are children of."""
        return int(Path(server["data"], "postmaster.pid").read_text().splitlines()[0])

    def kill(self, server: dict[str, Any]) -> None:
        """Ends a server as a machine that loses its power does: nothing more is written, answered or given back."""
        pid = self.pid_of(server)
        os.kill(pid, signal.SIGSTOP)  # it has no more children from here on
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for each in (pid, *map(int, children)):
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        for each in (pid, *map(int, children)):
            _wait_for_end(each)
        # Until somebody has asked how it ended, a process counts as one that runs, and by this file the server would too.
        Path(server["data"], "postmaster.pid").unlink()

    def _run(self, command: str, *options: str) -> str:
        done = subprocess.run(
            [PROGRAM, command, str(self._folder), *options],
            capture_output=True,
            text=True,
            check=False,
            timeout=_LIMIT_S,
        )
        if done.returncode:
            raise RuntimeError(f"{PROGRAM} {command}: {done.stderr.strip()}")
        return done.stdout

    def _tell(self, told: str) -> None:
        found = json.loads(told)
        self.url, self.servers = found["url"], found["servers"]


def _wait_for_end(pid: int) -> None:
    for _ in range(1_000):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return
        if state == "Z":
            return
        time.sleep(0.02)


@contextmanager
def running(beneath: Path | None = None) -> Iterator[Cluster]:
    """A coordinator and two nodes, in a folder of their own: beneath that one, or where temporary ones are."""
    folder = Path(tempfile.mkdtemp(prefix="largesse-citus-", dir=beneath))
    folder.chmod(0o755)
    cluster = Cluster(folder)
    try:
        cluster.start()
        yield cluster
    finally:
        with suppress(RuntimeError):
            cluster.stop()
        shutil.rmtree(folder)
