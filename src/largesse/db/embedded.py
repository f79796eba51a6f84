"""The embedded PostgreSQL: one server per data directory, shared by every process that uses it.

Each process holds a shared lock on `postgres.users`. A process that ends tries to get the exclusive lock. If it gets it, it is the last
one and stops the server. The kernel frees the lock of a killed process. Its server keeps running for other processes, and the last one
stops it. Starting and stopping need an exclusive lock on `postgres.starting`.
See docs/decisions/0003-embedded-postgresql.md.
"""

import fcntl
import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Self
from urllib.parse import quote

from largesse.base import clock
from largesse.base.errors import OperatorError
from largesse.db import postmaster
from largesse.db.cluster import ADMIN, START_LIMIT_S, STOP_LIMIT_S, Cluster
from largesse.db.roles import Role

LOCK_LIMIT_S = START_LIMIT_S + STOP_LIMIT_S
LOCK_POLL_S = 0.02


def has_cluster(data_dir: Path) -> bool:
    """Returns whether a data directory has a database already."""
    return (data_dir / "postgres" / "PG_VERSION").exists()


class EmbeddedServer:
    """This process's use of the server of a data directory. Calls block, and may come from several threads."""

    def __init__(self, data_dir: Path, *, extra_settings: Mapping[str, str] | None = None) -> None:
        """Takes `extra_settings` of PostgreSQL, which apply only if this process starts the server."""
        self._data_dir = Path(os.path.realpath(data_dir))
        self._cluster = Cluster(self._data_dir, extra_settings or {})
        self._mutex = threading.Lock()
        self._hold: int | None = None  # descriptor of the shared lock
        self._holder_pid = 0
        self._socket_dir = ""

    def acquire(self) -> None:
        """Begins to use the server. Makes the cluster and starts the server if needed. Raises OperatorError."""
        if not str(self._data_dir).isprintable():  # PostgreSQL's file postmaster.pid has one line for it
            raise OperatorError("LARGESSE_DATA_DIR has a line break or another character that cannot be printed")
        with self._mutex:
            if self._hold is not None:
                return
            try:
                self._make_data_dir()
                with self._starting():
                    self._hold = self._lock_file("postgres.users")
                    self._holder_pid = os.getpid()
                    fcntl.flock(self._hold, fcntl.LOCK_SH)  # does not wait: exclusive locks need the start lock too
                    try:
                        self._cluster.initialise()
                        self._socket_dir = self._cluster.start().socket_dir
                    except BaseException:
                        self._leave()
                        raise
            except (FileExistsError, NotADirectoryError) as error:
                raise OperatorError(f"LARGESSE_DATA_DIR: {error.filename} is not a directory") from error
            except OSError as error:
                raise OperatorError(
                    f"LARGESSE_DATA_DIR: {error.strerror}: {error.filename or self._data_dir}"
                ) from error

    def url(self, database: str = "largesse", *, role: Role | None = None) -> str:
        """Returns the address of one of the server's databases for a role, or for the superuser if None. asyncpg and libpq read it."""
        if not self._socket_dir:
            raise RuntimeError("the embedded server has not been acquired")
        login = role or ADMIN
        who = f"{login}:{self._cluster.passwords[login]}"
        return f"postgresql://{who}@/{quote(database)}?host={quote(self._socket_dir)}&port={postmaster.PORT}"

    def ensure_running(self) -> None:
        """Starts the server again if it died. Costs little if it runs. Raises OperatorError."""
        if self._cluster.running():
            return
        with self._mutex:
            if self._hold is None:
                raise RuntimeError("the embedded server has not been acquired")
            with self._starting():
                self._socket_dir = self._cluster.start().socket_dir

    def release(self) -> None:
        """Ends the use of the server, and stops it if no other process uses it. May be called twice."""
        with self._mutex:
            if self._hold is None:
                return
            if self._holder_pid != os.getpid():  # this is a forked process, and its parent uses the server
                os.close(self._hold)
                self._hold = None
                return
            with self._starting():
                self._leave()

    def _leave(self) -> None:
        """Ends the use of the server. The caller holds the start lock."""
        assert self._hold is not None
        try:
            fcntl.flock(self._hold, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._cluster.stop()
        except BlockingIOError:
            pass
        finally:
            os.close(self._hold)
            self._hold = None

    def _make_data_dir(self) -> None:
        """Makes the data directory. For root, the server's user may pass through it to its own folder. All secrets inside have mode 0600."""
        self._data_dir.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._data_dir.mkdir(mode=0o711 if os.geteuid() == 0 else 0o700)
        except FileExistsError:
            if not self._data_dir.is_dir():
                raise

    @contextmanager
    def _starting(self) -> Iterator[None]:
        """Holds the start lock: one process at a time starts or stops the server."""
        descriptor = self._lock_file("postgres.starting")
        try:
            deadline = clock.passed_s() + LOCK_LIMIT_S
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if clock.passed_s() > deadline:
                        raise OperatorError(f"Another process keeps starting PostgreSQL in {self._data_dir}") from None
                    time.sleep(LOCK_POLL_S)
            yield
        finally:
            os.close(descriptor)

    def _lock_file(self, name: str) -> int:
        return os.open(self._data_dir / name, os.O_RDWR | os.O_CREAT, 0o600)

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
