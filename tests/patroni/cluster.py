"""Three PostgreSQL kept by Patroni, with one etcd, all of them on loopback alone: what docs/scaling.md describes, on one machine."""

import json
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

NAMES = ("one", "two", "three")
LEASE_S = 20  # the shortest that Patroni takes
PATIENCE_S = 120.0


class Node:
    """One PostgreSQL and the Patroni that keeps it."""

    def __init__(self, name: str, folder: Path, port: int, api_port: int) -> None:
        self.name = name
        self.port = port
        self.folder = folder
        self.data = folder / "data"
        self._api = f"http://127.0.0.1:{api_port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts Patroni, which makes or brings back its PostgreSQL."""
        with (self.folder / "patroni.log").open("ab") as log:
            command = [_program("patroni"), str(self.folder / "patroni.yml")]
            self._process = _start(command, log)

    def lose_power(self) -> None:
        """Kills all there is of the node at once: nothing more is written, answered or given back."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)  # so that it starts nothing while its children go
        for pid in self._servers():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait(PATIENCE_S)

    def stop(self) -> None:
        """Ends the node in good order, where it runs."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(PATIENCE_S)
                return
            self.lose_power()

    def members(self) -> list[dict[str, Any]]:
        """What the node knows of all three; nothing while it does not answer."""
        try:
            with urllib.request.urlopen(f"{self._api}/cluster", timeout=2) as answer:  # noqa: S310 - loopback
                members: list[dict[str, Any]] = json.load(answer)["members"]
                return members
        except (OSError, ValueError, KeyError):
            return []

    def _servers(self) -> list[int]:
        """The postmaster and its children."""
        try:
            pid = int((self.data / "postmaster.pid").read_text().splitlines()[0])
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        except (OSError, ValueError, IndexError):
            return []
        return [pid, *map(int, children)]


class Cluster:
    """The three nodes."""

    def __init__(self, nodes: list[Node], password: str) -> None:
        self.nodes = nodes
        self._password = password

    def url(self, database: str) -> str:
        """The address that finds whichever node takes writes."""
        hosts = ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)
        return f"postgresql://postgres:{self._password}@{hosts}/{database}?target_session_attrs=read-write"

    def leader(self) -> Node | None:
        """The node that leads, as all that answer say; None while they do not agree on a running one."""
        leaders = {
            member["name"]
            for node in self.nodes
            for member in node.members()
            if member["role"] == "leader" and member["state"] == "running"
        }
        if len(leaders) != 1:
            return None
        return next(node for node in self.nodes if node.name in leaders)

    def is_whole(self) -> bool:
        """Whether one leads, the two others follow it, and one of those has every commit."""
        leader = self.leader()
        members = leader.members() if leader else []
        roles = sorted(member["role"] for member in members if member["state"] in {"running", "streaming"})
        return roles == ["leader", "replica", "sync_standby"]

    def wait(self, condition: Callable[[], bool]) -> None:
        """Waits until something holds."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            if time.monotonic() > deadline:
                raise AssertionError("\n".join(str(node.members()) for node in self.nodes))
            time.sleep(0.1)


@contextmanager
def running(folder: Path) -> Iterator[Cluster]:
    """The cluster, made anew below `folder`, with one leader and two that follow it."""
    password = secrets.token_hex(16)
    ports = _free_ports(2 + 2 * len(NAMES))
    with ExitStack() as stack:
        etcd = _folder(folder / "etcd")
        with (etcd / "log").open("wb") as log:
            keeper = _start(_etcd(etcd, ports[0], ports[1]), log)
        stack.callback(keeper.wait)
        stack.callback(keeper.terminate)
        nodes = []
        for number, name in enumerate(NAMES):
            node = Node(name, _folder(folder / name), *ports[2 + 2 * number : 4 + 2 * number])
            settings = node.folder / "patroni.yml"
            settings.write_text(json.dumps(_settings(node, ports[3 + 2 * number], ports[0], password)))
            settings.chmod(0o644)
            stack.callback(node.stop)
            node.start()
            nodes.append(node)
        cluster = Cluster(nodes, password)
        cluster.wait(cluster.is_whole)
        yield cluster


def _settings(node: Node, api_port: int, etcd_port: int, password: str) -> dict[str, Any]:
    """A node's settings: JSON, which is YAML too."""
    here = f"127.0.0.1:{node.port}"
    return {
        "scope": "largesse",
        "name": node.name,
        "restapi": {"listen": f"127.0.0.1:{api_port}", "connect_address": f"127.0.0.1:{api_port}"},
        "etcd3": {"hosts": [f"127.0.0.1:{etcd_port}"]},
        "bootstrap": {
            "dcs": {
                "ttl": LEASE_S,
                "loop_wait": 5,
                "retry_timeout": 5,
                "synchronous_mode": True,
                "synchronous_mode_strict": True,
                "postgresql": {"use_pg_rewind": True, "parameters": {"max_connections": 100, "wal_keep_size": "512MB"}},
            },
            "initdb": [{"encoding": "UTF8"}, {"locale": "C.UTF-8"}, "data-checksums"],
        },
        "postgresql": {
            "listen": here,
            "connect_address": here,
            "data_dir": str(node.data),
            "bin_dir": str(_postgresql()),
            "pgpass": str(node.folder / "pgpass"),
            "parameters": {"unix_socket_directories": ""},
            "pg_hba": ["host all all 127.0.0.1/32 scram-sha-256", "host replication all 127.0.0.1/32 scram-sha-256"],
            "authentication": {
                "superuser": {"username": "postgres", "password": password},
                "replication": {"username": "replicator", "password": password},
                "rewind": {"username": "rewinder", "password": password},
            },
        },
    }


def _etcd(folder: Path, port: int, peer_port: int) -> list[str]:
    here, peers = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer_port}"
    return [
        _program("etcd"),
        f"--data-dir={folder / 'data'}",
        f"--listen-client-urls={here}",
        f"--advertise-client-urls={here}",
        f"--listen-peer-urls={peers}",
        f"--initial-advertise-peer-urls={peers}",
        f"--initial-cluster=default={peers}",
    ]


def _start(command: list[str], log: Any) -> subprocess.Popen[bytes]:
    """Runs a program, as root as the user `postgres`: PostgreSQL refuses to be root's."""
    drop: dict[str, Any] = {}
    if os.geteuid() == 0:
        user = pwd.getpwnam("postgres")
        drop = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    environ = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
    return subprocess.Popen(command, cwd="/", env=environ, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **drop)


def _folder(path: Path) -> Path:
    path.mkdir(mode=0o700)
    if os.geteuid() == 0:
        user = pwd.getpwnam("postgres")
        os.chown(path, user.pw_uid, user.pw_gid)
    return path


def _program(name: str) -> str:
    found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/bin:/usr/sbin")
    if found is None:
        raise SystemExit(
            f"{name} is not on this machine; on Debian and Ubuntu: apt install patroni etcd-server postgresql"
        )
    return found


def _postgresql() -> Path:
    """The programs of the newest PostgreSQL that the system has."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    if not found:
        raise SystemExit("PostgreSQL is not on this machine; on Debian and Ubuntu: apt install postgresql")
    return found[-1]


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [probe.getsockname()[1] for probe in probes]
