"""Runs the API's tests with every service behind PgBouncer in transaction mode: `make test-pgbouncer`.

A throw-away PostgreSQL and a PgBouncer in front of it are started for the run, both on loopback and sockets alone. What a
test itself reads or changes it does directly; what the service does goes through PgBouncer, whose few sessions
all clients share.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from largesse.db.cluster import programs
from largesse.db.embedded import EmbeddedServer

START_LIMIT_S = 10.0

# Every database of the server by its own name. Five sessions for all of a database's clients: fewer than the ten
# connections of one service, so that transactions do change their sessions.
CONFIGURATION = """
[databases]
* = host={socket_dir} port=5432 user={login} password={login}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
stats_users = largesse
pool_mode = transaction
default_pool_size = 5
max_client_conn = 1000
max_db_connections = 5
server_idle_timeout = 5
logfile = {log}
pidfile = {pid}
"""

# Who may do what a serving process does and nothing else, as docs/scaling.md has it.
LOGIN = "largesse_serves"

SERVER_SETTINGS = {"fsync": "off", "synchronous_commit": "off", "max_connections": "300"}


def main() -> None:
    """Ends with the exit code of pytest."""
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if program is None:
        sys.exit("pgbouncer is not on this machine; on Debian and Ubuntu: apt install pgbouncer")
    folder = Path(tempfile.mkdtemp(prefix="largesse-pgbouncer-"))
    folder.chmod(0o711)
    try:
        with (
            EmbeddedServer(folder / "data", extra_settings=SERVER_SETTINGS) as server,
            login(server.url()),
            running(program, folder, server.url()) as port,
        ):
            environment = {
                **os.environ,
                "LARGESSE_TEST_DATABASE_URL": server.url("postgres"),
                "LARGESSE_TEST_PGBOUNCER": f"127.0.0.1:{port}",
            }
            command = [sys.executable, "-m", "pytest", "tests/web/api", *sys.argv[1:]]
            done = subprocess.run(command, env=environment, check=False)
            sys.stdout.write(f"PgBouncer passed on {transactions(port):,} transactions.\n")
    finally:
        shutil.rmtree(folder)
    sys.exit(done.returncode)


@contextmanager
def login(url: str) -> Iterator[None]:
    """Makes the login; it goes with the server."""
    sql = f"CREATE ROLE {LOGIN} LOGIN PASSWORD '{LOGIN}' IN ROLE largesse_app"
    subprocess.run([str(programs() / "psql"), "-XAtq", url, "-c", sql], check=True)
    yield


def transactions(port: int) -> int:
    """How many transactions PgBouncer has passed on, by its own count; none would mean that nothing was tested."""
    command = [str(programs() / "psql"), "-XAt", "-h", "127.0.0.1", "-p", str(port), "-U", "largesse"]
    command += ["-d", "pgbouncer", "-c", "SHOW STATS_TOTALS"]
    rows = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    count = sum(int(row.split("|")[1]) for row in rows if not row.startswith("pgbouncer|"))
    if count == 0:
        raise SystemExit("pgbouncer passed on nothing")
    return count


@contextmanager
def running(program: str, folder: Path, database_url: str) -> Iterator[int]:
    """PgBouncer in front of the server of `database_url`, as the user who owns its socket; gives its port."""
    socket_dir = Path(parse_qs(urlsplit(database_url).query)["host"][0])
    owner = socket_dir.stat()
    own = folder / "pgbouncer"
    own.mkdir()
    os.chown(own, owner.st_uid, owner.st_gid)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    settings = own / "pgbouncer.ini"
    settings.write_text(
        CONFIGURATION.format(socket_dir=socket_dir, login=LOGIN, port=port, log=own / "log", pid=own / "pid")
    )
    drop = {"user": owner.st_uid, "group": owner.st_gid, "extra_groups": []} if os.geteuid() == 0 else {}
    process = subprocess.Popen([program, "--quiet", str(settings)], cwd="/", stdin=subprocess.DEVNULL, **drop)
    try:
        wait_for(port, process)
        yield port
    finally:
        process.terminate()
        process.wait()


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    """Waits until somebody listens. Raises SystemExit when PgBouncer ends or takes too long."""
    deadline = time.monotonic() + START_LIMIT_S
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.01)
    raise SystemExit("pgbouncer did not start")


if __name__ == "__main__":
    main()
