"""The image, from nothing: built by the documented command, run by crun as the other one says, ordered from, stopped under load.

Needs root, buildah, mmdebstrap and crun, and Debian's mirror as apt has it. Takes minutes, most of them for Debian's packages.
"""

import asyncio
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.demo.test_demo import paste
from tests.faults.installation import WORLD
from tests.worker.test_metrics import free_port

from largesse import __version__

ROOT = Path(__file__).parents[2]
IMAGE = f"largesse-test-{os.getpid()}"
USER = 10001
MOST_BYTES = 250_000_000
STARTS_S = 120.0
BUILDAH = ("buildah", "--storage-driver", "vfs")
# crun does not start where cgroups of both versions are mounted, as on older systems: here it sees those of the second alone.
_CRUN = (
    *("unshare", "--mount", "sh", "-c"),
    'umount -R /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup && exec crun --cgroup-manager=disabled "$@"',
    "sh",
)
PROGRAMS = ("buildah", "mmdebstrap", "crun")

pytestmark = [pytest.mark.slow, pytest.mark.embedded, pytest.mark.timeout(900), pytest.mark.xdist_group("image")]


def run(*command: str | Path, **options: Any) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def documented() -> tuple[str, list[str]]:
    """The two commands of docs/containers.md: the one that builds, and the words of the one that runs."""
    said = (ROOT / "docs/containers.md").read_text()
    found = re.search(r"^## Try it\n.*?```sh\n(.+?)\n(podman run .+?)\n```", said, re.DOTALL | re.MULTILINE)
    assert found, "docs/containers.md begins with two commands"
    return found[1], shlex.split(found[2].replace("\\\n", " "))


class Image:
    """The image that was built, with a container's files of it."""

    def __init__(self, files: Path, config: dict[str, Any]) -> None:
        self.files = files
        self.config = config

    def run(self, folder: Path, *arguments: str) -> str:
        """What a command writes to standard output; it must end with 0."""
        with self.container(folder, list(arguments)) as process:
            said, _ = process.communicate(timeout=STARTS_S)
            assert process.returncode == 0, said
        return said

    @contextmanager
    def container(self, folder: Path, arguments: list[str]) -> Iterator[subprocess.Popen[str]]:
        """A container as `podman run --read-only --tmpfs /tmp --network host` has it, with `folder` as its data."""
        folder.mkdir(exist_ok=True)
        os.chown(folder, USER, USER)
        bundle = Path(tempfile.mkdtemp(dir=folder.parent))
        run("crun", "spec", cwd=bundle)
        spec = json.loads((bundle / "config.json").read_text())
        given = dict(line.split("=", 1) for line in self.config["Env"])
        spec["root"] = {"path": str(self.files), "readonly": True}
        spec["process"] |= {
            "terminal": False,
            "user": dict.fromkeys(("uid", "gid"), USER),
            "cwd": self.config["WorkingDir"],
            "args": [*self.config["Entrypoint"], *arguments],
            "env": [f"{name}={value}" for name, value in given.items()],
            "noNewPrivileges": True,
            "capabilities": {},
        }
        spec["linux"]["namespaces"] = [one for one in spec["linux"]["namespaces"] if one["type"] != "network"]
        del spec["linux"]["resources"]
        spec["mounts"] = [one for one in spec["mounts"] if one["type"] != "cgroup"] + [
            {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "nodev", "mode=1777"]},  # noqa: S108
            {"destination": "/var/lib/largesse", "type": "bind", "source": str(folder), "options": ["rbind", "rw"]},
        ]
        (bundle / "config.json").write_text(json.dumps(spec))
        with (bundle / "log").open("w") as log:
            process = subprocess.Popen(
                [*_CRUN, "run", "--bundle", bundle, f"{IMAGE}-{bundle.name}"],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        try:
            yield process
        except BaseException:
            print((bundle / "log").read_text())  # noqa: T201 - pytest shows it
            raise
        finally:
            if process.poll() is None:
                subprocess.run([*_CRUN, "kill", f"{IMAGE}-{bundle.name}", "KILL"], check=False)
            process.communicate()


@pytest.fixture(scope="module")
def image() -> Iterator[Image]:
    if missing := [name for name in PROGRAMS if shutil.which(name) is None]:
        if not os.environ.get("CI"):
            pytest.skip(f"not installed here: apt install {' '.join(missing)}")
        raise AssertionError(missing)
    if os.geteuid() != 0:
        pytest.skip("only root can run a container without a registry's tools")
    built = os.environ.get("TEST_IMAGE", IMAGE)
    if built == IMAGE:
        build, _ = documented()
        environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        run(*shlex.split(build), cwd=ROOT, env={**environ, "IMAGE": IMAGE})
    container = run(*BUILDAH, "from", built).strip()
    try:
        files = Path(run(*BUILDAH, "mount", container).strip())
        config = json.loads(run(*BUILDAH, "inspect", "--type", "image", built))["Docker"]["config"]
        yield Image(files, config)
    finally:
        run(*BUILDAH, "rm", container)
        if built == IMAGE:
            run(*BUILDAH, "rmi", IMAGE, f"{IMAGE}-base")


@pytest.mark.long
def test_the_image_is_small_and_not_root(image: Image) -> None:
    sizes = {}
    for folder, _, names in os.walk(image.files):
        for name in names:
            found = (Path(folder) / name).lstat()
            sizes[found.st_ino] = found.st_size
    assert 50_000_000 < sum(sizes.values()) <= MOST_BYTES
    assert image.config["User"] == f"{USER}:{USER}"
    assert image.config["Healthcheck"]["Test"][0] == "CMD"
    assert image.config["Entrypoint"] == ["largesse"]
    assert image.config["StopSignal"] in {"SIGTERM", ""}


@pytest.mark.long
def test_two_commands_lead_to_an_order(image: Image, tmp_path: Path) -> None:
    _, words = documented()
    assert {"--read-only", "--rm"} <= set(words)
    arguments = words[words.index("largesse") + 1 :]
    with image.container(tmp_path / "demo", [*arguments, "--no-history", "--port", str(free_port())]) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if "Ctrl-C" in line:
                break
        welcome = "".join(lines)
        commands = re.findall(r"^curl .*?\n(?=\n)", welcome, re.DOTALL | re.MULTILINE)
        assert commands, welcome
        sent = paste(commands[0])
        assert sent["deliveryMode"] == "send"
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


@pytest.mark.long
def test_it_says_which_build_it_is(image: Image, tmp_path: Path) -> None:
    assert image.run(tmp_path / "version", "--version").split()[-1] == __version__
    assert image.config["Labels"]["org.opencontainers.image.version"] == __version__
    assert next(image.files.glob("opt/largesse/share/largesse/deploy/kubernetes")).is_dir()


@pytest.mark.long
async def test_sigterm_answers_what_is_under_way(image: Image, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "seed.yaml").write_text(WORLD)
    image.run(data, "migrate")
    world = json.loads(image.run(data, "load", "seed.yaml", "--json"))
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with image.container(data, ["serve", "--host", "127.0.0.1", "--port", str(port)]) as process:
        await asyncio.to_thread(wait_until_serving, process, url)
        healthcheck(image, port)
        load = Load(url, world)
        clients = [asyncio.create_task(load.ask_on(number)) for number in range(8)]
        await load.has_placed(200)
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, 60) == 0
        await asyncio.gather(*clients)
    assert load.broken == []
    report = json.loads(image.run(data, "verify", "--json"))
    assert report["findings"] == []
    assert report["counted"]["orders"] == load.placed


def wait_until_serving(process: subprocess.Popen[str], url: str) -> None:
    deadline = time.monotonic() + STARTS_S
    while time.monotonic() < deadline:
        assert process.poll() is None
        try:
            if httpx.get(f"{url}/health", timeout=5).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    raise AssertionError("the container does not serve")


def healthcheck(image: Image, port: int) -> None:
    """What the image says to ask, asked by its own Python."""
    _, python, *words = image.config["Healthcheck"]["Test"]
    asked = [word.replace("8000", str(port)) for word in words]
    run("chroot", f"--userspec={USER}:{USER}", image.files, f"/opt/largesse/bin/{python}", *asked)


class Load:
    """Clients that send gifts until the service is gone."""

    def __init__(self, url: str, world: dict[str, Any]) -> None:
        self._client = httpx.AsyncClient(base_url=url, timeout=60)
        self._headers = {"Authorization": f"Bearer {world['api_keys']['globex-prod']}"}
        self._product = world["ids"]["products"]["coffee"]
        self.placed = 0
        self.broken: list[str] = []

    async def ask_on(self, client: int) -> None:
        number = 0
        while True:
            number += 1
            body = {
                "productId": self._product,
                "value": 5,
                "codeQuantity": 1,
                "externalReference": f"{client}-{number}",
            }
            try:
                answer = await self._client.post("/send/gift", json=body, headers=self._headers)
            except httpx.ConnectError:
                return  # it listens no longer
            except httpx.TransportError as error:
                self.broken.append(repr(error))
                return
            if answer.status_code != 200:
                self.broken.append(answer.text)
                return
            self.placed += 1

    async def has_placed(self, count: int) -> None:
        while self.placed < count:
            assert not self.broken
            await asyncio.sleep(0.01)
