"""The embedded server, with real processes: sharing, dying, starting again."""

import asyncio
import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import asyncpg
import pytest
from tests.closing import closing

from largesse.base.errors import OperatorError
from largesse.db import cluster, postmaster
from largesse.db.embedded import EmbeddedServer

pytestmark = pytest.mark.embedded

HOLDER = Path(__file__).with_name("holder.py")


class Holder:
    """A process of `holder.py`."""

    def __init__(self, data_dir: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(HOLDER), str(data_dir)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def answer(self) -> str:
        """The address of the server, when the process has done what it was told."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def tell(self, command: str) -> str:
        self.send(command)
        return self.answer()

    def send(self, command: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{command}\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    """A data directory, whose server is gone after the test."""
    path = tmp_path / "data"
    yield path
    if (path / "postgres").exists():
        cluster.Cluster(path, {}).stop()


@pytest.fixture
def hold(data_dir: Path) -> Iterator[Callable[[], Holder]]:
    """Starts processes that hold the server; those left at the end are killed."""
    holders: list[Holder] = []

    def start() -> Holder:
        holders.append(Holder(data_dir))
        return holders[-1]

    yield start
    for holder in holders:
        holder.kill()


def server_pid(data_dir: Path) -> int | None:
    """The process id of the live server."""
    server = postmaster.read(data_dir / "postgres")
    return server.pid if server and postmaster.is_alive(server, data_dir / "postgres") else None


def query(url: str, sql: str) -> object:
    """The first value a statement returns."""

    async def run() -> object:
        async with closing(asyncpg.connect(url)) as connection:
            return await connection.fetchval(sql)

    return asyncio.run(run())


@pytest.mark.slow
def test_processes_share_one_server_and_the_last_stops_it(data_dir: Path, hold: Callable[[], Holder]) -> None:
    holders = [hold() for _ in range(3)]  # all at once, on a folder that does not exist yet
    assert len({holder.answer() for holder in holders}) == 1
    pid = server_pid(data_dir)

    for holder in holders[:2]:
        url = holder.tell("release")
        assert server_pid(data_dir) == pid
        assert query(url, "SELECT 1") == 1
    holders[2].tell("release")

    assert server_pid(data_dir) is None
    assert postmaster.read(data_dir / "postgres") is None  # a clean stop


@pytest.mark.slow
def test_a_server_left_by_a_killed_process_is_used_and_stopped(data_dir: Path, hold: Callable[[], Holder]) -> None:
    first = hold()
    query(first.answer(), "CREATE TABLE kept ()")
    pid = server_pid(data_dir)
    first.kill()
    assert server_pid(data_dir) == pid

    with EmbeddedServer(data_dir) as server:
        assert server_pid(data_dir) == pid
        assert query(server.url(), "SELECT count(*) FROM kept") == 0

    assert server_pid(data_dir) is None


@pytest.mark.slow
def test_a_killed_server_is_started_again_once_for_all_who_ask(data_dir: Path, hold: Callable[[], Holder]) -> None:
    holders = [hold(), hold()]
    url, _ = [holder.answer() for holder in holders]
    query(url, "CREATE TABLE kept ()")
    pid = server_pid(data_dir)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)

    for holder in holders:
        holder.send("ensure")

    assert [holder.answer() for holder in holders] == [url, url]
    assert server_pid(data_dir) not in {None, pid}
    assert query(url, "SELECT count(*) FROM kept") == 0
    assert len(list((data_dir / "socket").glob("*.lock"))) == 1


@pytest.mark.long
def test_a_start_may_be_killed_at_any_moment(data_dir: Path, hold: Callable[[], Holder]) -> None:
    for moment_s in (0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.3, 0.35, 0.4):
        holder = hold()
        time.sleep(moment_s)
        holder.kill()
        pid = server_pid(data_dir)
        if pid and moment_s < 0.5:  # the next one meets a dead server
            os.kill(pid, signal.SIGKILL)

    with EmbeddedServer(data_dir) as server:
        assert query(server.url(), "SELECT current_database()") == "largesse"
    assert server_pid(data_dir) is None


@pytest.mark.slow
def test_a_dead_server_whose_process_id_is_taken_is_replaced(data_dir: Path) -> None:
    with EmbeddedServer(data_dir):
        pid = server_pid(data_dir)
        assert pid is not None
        record = data_dir / "postgres" / "postmaster.pid"
        lines = record.read_text()
    user = "nobody" if os.geteuid() == 0 else None
    with subprocess.Popen(["/bin/sleep", "60"], user=user, cwd="/") as other:
        record.write_text(lines.replace(str(pid), str(other.pid), 1))
        shutil.chown(record, (data_dir / "postgres").stat().st_uid, (data_dir / "postgres").stat().st_gid)

        with EmbeddedServer(data_dir) as server:
            assert query(server.url(), "SELECT 1") == 1
        assert other.poll() is None
        other.kill()


@pytest.mark.slow
def test_a_forked_copy_does_not_stop_its_parents_server(data_dir: Path, hold: Callable[[], Holder]) -> None:
    holder = hold()
    holder.answer()
    assert query(holder.tell("fork"), "SELECT 1") == 1
    holder.tell("release")
    assert server_pid(data_dir) is None


@pytest.mark.long
@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["with blanks, 100 % and a comma", "long" * 30])
def test_any_path_will_do(tmp_path: Path, name: str) -> None:
    data_dir = tmp_path / name
    with EmbeddedServer(data_dir) as server:
        url = server.url()
        socket_dir = Path(server._socket_dir)
        assert query(url, "SELECT 1") == 1
    assert not socket_dir.exists()
    with EmbeddedServer(data_dir) as server:
        assert server.url() == url


@pytest.mark.long
def test_the_server_is_durable_private_and_survives_a_terminal(data_dir: Path) -> None:
    with EmbeddedServer(data_dir) as server:
        shown = {
            name: query(server.url(), f"SHOW {name}") for name in ("fsync", "synchronous_commit", "listen_addresses")
        }
        assert shown == {"fsync": "on", "synchronous_commit": "on", "listen_addresses": ""}
        assert query(server.url(), "SELECT upper('é') = 'É' AND 'Z' < 'a'")
        assert (data_dir / "socket").stat().st_mode & 0o777 == 0o700
        assert os.getsid(server_pid(data_dir) or 0) != os.getsid(0)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 'SECRET-CODE'::integer",
        "SELECT 'SECRET-CODE' FROM nowhere",
        "INSERT INTO codes VALUES ('SECRET-CODE'), ('SECRET-CODE')",
        "DO $$ BEGIN RAISE WARNING 'SECRET-CODE'; RAISE EXCEPTION 'SECRET-CODE'; END $$",
        "SECRET-CODE",
    ],
)
async def test_no_value_reaches_the_log(logging_server: EmbeddedServer, statement: str) -> None:
    connection = await asyncpg.connect(logging_server.url())
    with pytest.raises(asyncpg.PostgresError):
        await connection.execute(statement)
    with pytest.raises(asyncpg.PostgresError):
        await connection.fetch("SELECT 1 / length($1::text) - 1 / (length($1) - 11)", "SECRET-CODE")
    await connection.close()
    assert "SECRET-CODE" not in (logging_server._data_dir / "postgres.log").read_text()


def test_looking_whether_the_server_runs_leaves_no_line_in_its_log(logging_server: EmbeddedServer) -> None:
    """Each process looks every second: the log grew by 30 MB a day."""
    for _ in range(20):
        logging_server.ensure_running()
    query(logging_server.url(), "SELECT 1")
    log = (logging_server._data_dir / "postgres.log").read_text()
    assert "could not receive data from client" not in log


@pytest.fixture(scope="module")
def logging_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    """A server with a table of unique codes."""
    with EmbeddedServer(tmp_path_factory.mktemp("logging") / "data") as server:
        query(server.url(), "CREATE TABLE codes (code text UNIQUE)")
        yield server


def test_faults_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for data_dir in (tmp_path / "file", tmp_path / "file" / "data"):
        with pytest.raises(OperatorError, match=rf"^LARGESSE_DATA_DIR: {tmp_path}/file is not a directory$"):
            EmbeddedServer(data_dir).acquire()

    with pytest.raises(OperatorError, match=r"^LARGESSE_DATA_DIR has a line break"):
        EmbeddedServer(tmp_path / "two\nlines").acquire()

    data_dir = tmp_path / "data"
    with pytest.raises(OperatorError, match="no_such_setting") as caught:
        EmbeddedServer(data_dir, extra_settings={"no_such_setting": "1"}).acquire()
    assert "\n" not in str(caught.value)

    for after in ("initdb: removing contents", "PANIC:  cannot abort transaction 1, it was already committed"):
        full = f"echo 'PANIC:  could not write: No space left on device\n{after}' >&2; exit 1"
        with pytest.raises(OperatorError, match=r"No space left on device$"):
            cluster._output(["/bin/sh", "-c", full])

    (data_dir / "postgres" / "PG_VERSION").write_text("17\n")
    with pytest.raises(OperatorError, match="PostgreSQL 17"):
        EmbeddedServer(data_dir).acquire()


@pytest.mark.slow
@pytest.mark.sampled(2)
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can drop to another user")
@pytest.mark.parametrize("closed", [False, True])
def test_root_runs_the_server_as_nobody_with_no_more_than_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, closed: bool
) -> None:
    home = Path("/var/tmp") / f"largesse-test-{os.getpid()}"  # noqa: S108 - open to all, unlike tmp_path
    home.mkdir(mode=0o700 if closed else 0o755)
    try:
        installed = cluster.programs().parent
        site = installed.parent.parent
        for folder in (installed, *site.glob("*pgserver.libs")):
            shutil.copytree(folder, home / folder.relative_to(site), symlinks=True)
        programs = home / installed.relative_to(site) / "bin"
        monkeypatch.setattr(cluster, "programs", lambda: programs)
        with EmbeddedServer(home / "data") as server:
            assert query(server.url(), "SELECT 1") == 1
            status = dict(
                line.split(":\t", 1)
                for line in Path(f"/proc/{server_pid(home / 'data')}/status").read_text().splitlines()
            )
        assert status["Uid"].split() == [str(pwd.getpwnam("nobody").pw_uid)] * 4
        for kind in ("CapEff", "CapPrm", "CapAmb"):
            assert int(status[kind], 16) == (0b100 if closed else 0)  # CAP_DAC_READ_SEARCH
        assert home.stat().st_mode & 0o777 == (0o700 if closed else 0o755)
    finally:
        shutil.rmtree(home)
