"""A database whose disk is full: orders are refused whole, `/health` says why, and all goes on when there is room.

The tables are moved to a small file system in memory, and that is filled. Mounting one takes root: elsewhere this is skipped, but for CI.
"""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from prometheus_client import REGISTRY
from tests.conftest import Template
from tests.distributed import IS_DISTRIBUTED
from tests.waiting import wait_until
from tests.web.api.conftest import RICH_WORLD, Service, ServiceFactory, on_database
from tests.web.api.loading import Loaded, loaded_on

from largesse.db import metrics

_ROOM_BYTES = 12 * 1024 * 1024
# The tests' server clones files, which goes no further than one file system.
_COPY = "SELECT set_config(name, 'copy', false) FROM pg_settings WHERE name = 'file_copy_method'"

pytestmark = [
    pytest.mark.skipif(IS_DISTRIBUTED, reason="moves a database that is one server's"),
    pytest.mark.skipif(
        bool(os.environ.get("LARGESSE_TEST_DATABASE_URL")), reason="fills a disk of the tests' own server alone"
    ),
]


class SmallDisk:
    """A file system that holds the database and little more."""

    def __init__(self, folder: Path, loaded: Loaded) -> None:
        self.loaded = loaded
        self._filler = folder / "filler"

    def fill(self) -> None:
        """Takes all room that is left."""
        with self._filler.open("ab", buffering=0) as filler:
            for size in (1024 * 1024, 4096):
                try:
                    while True:
                        filler.write(bytes(size))
                except OSError:
                    pass

    def free(self) -> None:
        """Gives that room back."""
        self._filler.unlink(missing_ok=True)


@pytest.fixture(scope="module")
def loaded(template: Template) -> Iterator[Loaded]:
    with loaded_on(template, RICH_WORLD) as loaded:
        yield loaded


@pytest.fixture(scope="module")
def small_disk(loaded: Loaded, server_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallDisk]:
    folder = tmp_path_factory.mktemp("disk")
    name = loaded.database_url.partition("?")[0].rpartition("/")[2]

    async def prepare(connection: asyncpg.Connection) -> tuple[str, int]:
        query = "SELECT current_setting('data_directory'), pg_database_size($1)"
        return tuple(await connection.fetchrow(query, name))

    async def move(connection: asyncpg.Connection) -> None:
        await connection.execute(_COPY)
        await connection.execute(f"CREATE TABLESPACE {name} LOCATION '{folder / 'tables'}'")
        await connection.execute(f"ALTER DATABASE {name} SET TABLESPACE {name}")

    async def move_back(connection: asyncpg.Connection) -> None:
        await connection.execute(_COPY)
        await connection.execute(f"ALTER DATABASE {name} SET TABLESPACE pg_default")
        await connection.execute(f"DROP TABLESPACE {name}")

    try:
        data, size = on_database(server_url, prepare)
        owner = Path(data).stat().st_uid
    except FileNotFoundError:
        pytest.skip("the database server is on another machine")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size + _ROOM_BYTES}", "tmpfs", str(folder)],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    if mounted.returncode and not os.environ.get("CI"):
        pytest.skip(f"nobody may mount here: {mounted.stderr}")
    assert mounted.returncode == 0, mounted.stderr
    try:
        (folder / "tables").mkdir()
        os.chown(folder / "tables", owner, -1)
        on_database(server_url, move)
        small = SmallDisk(folder, loaded)
        yield small
        small.free()
        on_database(server_url, move_back)
    finally:
        subprocess.run(["umount", "-l", str(folder)], timeout=30, check=False)


@pytest.fixture(scope="module")
def service(small_disk: SmallDisk, start_service: ServiceFactory) -> Iterator[Service]:
    """A service on the small disk, which looks at it again and again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metrics, "LOOK_EVERY_S", 0.1)
        yield start_service(like=small_disk.loaded)


@pytest.fixture(autouse=True)
def room(small_disk: SmallDisk) -> Iterator[None]:
    yield
    small_disk.free()


def health(service: Service) -> tuple[int, dict[str, Any]]:
    answer = service.client().get("/health")
    return answer.status_code, answer.json()


def until_full(service: Service, small_disk: SmallDisk) -> None:
    """Fills the disk until the service knows it. Once may not do: a look that is under way gives the room of its file back."""

    def is_full() -> bool:
        small_disk.fill()
        return health(service)[0] == 503

    wait_until(is_full)


def test_health_says_that_the_disk_is_full_before_anybody_writes(service: Service, small_disk: SmallDisk) -> None:
    assert health(service)[0] == 200
    until_full(service, small_disk)
    status, told = health(service)
    assert (status, told["status"]) == (503, "fail")
    assert told["notes"] == ["The disk of the database is full: nothing can be written."]
    assert service.client().get("/health").headers["Retry-After"] == "10"
    assert REGISTRY.get_sample_value("largesse_database_full") == 1
    small_disk.free()
    wait_until(lambda: health(service)[0] == 200)
    assert REGISTRY.get_sample_value("largesse_database_full") == 0


@pytest.mark.parametrize("codes", [100, 5000])
def test_an_order_is_placed_whole_or_not_at_all(
    service: Service, small_disk: SmallDisk, problem: Callable[..., str], codes: int
) -> None:
    def send(at: int = 0) -> Any:
        return service.send("gift", "shop", value=0.01, codeQuantity=codes, externalReference=f"full-{codes}-{at}")

    service.state()  # opens a connection, which may need to write: PostgreSQL's file of its catalogue may have to be made again
    small_disk.fill()
    placed = 0
    while (refused := send(placed)).status_code == 200:  # as long as there is room in the tables
        placed += 1
        assert placed < 100
    before = service.state()
    assert "no room" in problem(refused, 503, "unavailable")
    assert refused.headers["Retry-After"] == "10"
    assert problem(send(placed), 503, "unavailable")
    assert service.state() == before
    until_full(service, small_disk)
    assert service.client("hr").get("/orders").status_code == 200

    small_disk.free()
    assert send(placed).status_code == 200
    assert problem(send(placed), 409, "reference-used")
    wait_until(lambda: health(service)[0] == 200)
    assert (
        service.sql("SELECT count(*) FROM orders WHERE external_reference LIKE $1", f"full-{codes}-%")[0][0]
        == placed + 1
    )
