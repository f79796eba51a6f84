"""The packages: the same each time they are built, whole, and enough to run what they are for.

They are installed beside the dependencies of this environment. With DIST_INDEX=1 they are installed as somebody else does, whatever
they need coming from the package index, for every Python there is on this machine.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path

import pytest
from tests.demo.test_demo import demo, paste
from tools.dist import PROJECTS, ROOT, build, digest

FROM_INDEX = bool(os.environ.get("DIST_INDEX"))
HERE = f"python3.{sys.version_info.minor}"


def runs(python: str) -> bool:
    """Whether there is such a Python: what answers to its name may only be there to choose among several."""
    return (
        shutil.which(python) is not None
        and subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0
    )


PYTHONS = [name for name in (f"python3.{minor}" for minor in range(11, 15)) if FROM_INDEX and runs(name)]

_ASK = """
import sys, largesse_client
with largesse_client.Largesse(*sys.argv[1:]) as largesse:
    print(largesse.me().customer_name)
print(largesse_client.__file__)
"""

project = pytest.mark.parametrize("project", PROJECTS, ids=lambda folder: folder.name)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("dist")
    built = [path for project in PROJECTS for path in build(project, folder, 1_700_000_000)]
    return [path for path in built if path.suffix == ".whl"]


@pytest.fixture
def strange_surroundings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Another time zone, another language, and files for oneself alone."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    monkeypatch.setenv("LC_ALL", "C")
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.mark.long
@project
def test_a_package_is_the_same_whenever_and_wherever_it_is_built(
    project: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    elsewhere = tmp_path / "a folder elsewhere"
    for folder in (here, there, elsewhere):
        folder.mkdir()
    first = build(project, here, 1_700_000_000)
    request.getfixturevalue("strange_surroundings")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(project / name, elsewhere)
    backend = tomllib.loads((project / "pyproject.toml").read_text())["build-system"]["backend-path"][0]
    shutil.copytree(project / backend, elsewhere / backend)
    if (project / "deploy").is_dir():
        shutil.copytree(project / "deploy", elsewhere / "deploy")
    shutil.copytree(project / "src", elsewhere / "src", copy_function=shutil.copy)  # with times of their own
    second = build(elsewhere, there, 1_700_000_000)
    assert [digest(path) for path in first] == [digest(path) for path in second]
    later = build(elsewhere, there, 1_700_000_002)
    assert [digest(path) for path in first] != [digest(path) for path in later]


def test_the_wheels_are_whole(wheels: list[Path]) -> None:
    for folder, wheel in zip(PROJECTS, wheels, strict=True):
        assert wheel.stat().st_mode & 0o777 == 0o644, "another user can install it"
        (module,) = (path for path in (folder / "src").iterdir() if (path / "__init__.py").is_file())
        ours = {
            str(path.relative_to(folder / "src"))
            for path in module.rglob("*")
            if path.is_file() and path.suffix != ".pyc"
        }
        with zipfile.ZipFile(wheel) as archive:
            names = set(archive.namelist())
            (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
            told = Parser().parsestr(archive.read(metadata).decode())
        info = metadata.removesuffix("METADATA")
        shared = metadata.removesuffix(".dist-info/METADATA") + ".data/data/share/largesse/"
        deploy = (path.relative_to(folder) for path in (folder / "deploy").rglob("*") if path.is_file())
        assert names - ours == {
            *(info + name for name in ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")),
            *(f"{shared}{path}" for path in deploy),
        }
        assert (folder != ROOT) or f"{shared}deploy/systemd/largesse-serve.service" in names
        assert ours <= names
        assert f"{module.name}/py.typed" in ours
        assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+(\+g[0-9a-f]{10})?)?", told["Version"])
        assert told["License-Expression"] == "Apache-2.0"
        assert told["Requires-Python"] == ">=3.11"
        assert told["Summary"]
        assert told["Description-Content-Type"] == "text/markdown"


def test_the_wheels_hold_nothing_of_others(wheels: list[Path]) -> None:
    """What is not ours comes as a dependency, with a licence of its own: nothing is copied in."""
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                assert not re.search(r"vendor|third_party|node_modules|\.min\.|\.(so|dll|jar|woff2?)$", name)
                if "/licenses/" not in name:
                    assert b"copyright (c)" not in archive.read(name).lower(), name


@pytest.mark.long
@pytest.mark.embedded
@pytest.mark.parametrize("python", PYTHONS or [HERE])
def test_the_wheels_alone_run_the_demo(wheels: list[Path], tmp_path: Path, python: str) -> None:
    fresh = tmp_path / "fresh"
    executable = sys.executable if python == HERE else python
    subprocess.run([executable, "-m", "venv", "--without-pip", fresh], check=True)
    own_python = fresh / "bin/python"
    options = [] if FROM_INDEX else ["--no-deps", "--no-index"]
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "--disable-pip-version-check",
            "--python",
            own_python,
            "install",
            "--quiet",
            *options,
            *wheels,
        ],
        check=True,
    )
    if not FROM_INDEX:
        # The folder of our dependencies, without the links that lead from there to this checkout.
        site = fresh / "lib" / HERE / "site-packages"
        (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    asked = subprocess.run(
        [own_python, "-c", "import largesse; print(largesse.__file__)"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    assert Path(asked.stdout.strip()).is_relative_to(fresh)
    assert not Path(asked.stdout.strip()).is_relative_to(ROOT / "src")
    with demo(tmp_path, signal.SIGINT, program=[str(fresh / "bin/largesse")]) as welcome:
        commands = re.findall(r"^curl .*?\n(?=\n)", welcome, re.DOTALL | re.MULTILINE)
        sent, batch = (paste(command) for command in commands)
        found = re.search(r"API +(http\S+)\n", welcome), re.search(r"API key +(\S+)", welcome)
        asked = subprocess.run(
            [own_python, "-c", _ASK, *(one[1] for one in found if one)],
            cwd=tmp_path,
            check=True,
            capture_output=True,
            text=True,
        )
    customer, file = asked.stdout.splitlines()
    assert customer == "Acme Ltd"
    assert Path(file).is_relative_to(fresh)
    assert sent["deliveryMode"] == "send"
    assert len(batch["codes"]) == 3
