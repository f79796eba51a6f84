"""Builds the service and the client with flit_core, each with a version that grows with every commit (PEP 517, PEP 440, SemVer).

RELEASE is the only place that names the release. A build of its tag, `v0.2.0`, is `0.2.0`; a build of any other commit comes before it,
as `0.2.0-dev2026112319140500+g1a2b3c4d5e`: the time of the commit in UTC, its number among the commits of that second, and the commit.
SemVer needs the hyphen. PEP 440 takes it for a dot, which the packages have: `pip` says `0.2.0.dev2026112319140500+g1a2b3c4d5e`.

    python largesse_build.py DISTRIBUTION FOLDER     exits with 1 if the installed distribution is not of the commit in FOLDER
"""

from __future__ import annotations

import filecmp
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from flit_core import buildapi

RELEASE = "0.2.0"
_ARCHIVED = "$Format:%ct %H %D$"  # `git archive` fills it in (.gitattributes)
UNKNOWN = f"{RELEASE}-dev0"


def version_of(project: Path) -> str:
    """Returns the version of a project: from its commit, else from the archive it came in, else the version it was last built with."""
    is_source_archive = (project / "PKG-INFO").is_file()  # a source archive keeps the version it was built with
    if not is_source_archive and (commit := _of_git(project) or _of_archive(_ARCHIVED)):
        return commit
    built = re.search(r'^__version__ = "(.+)"$', _read(_version_file(project)), re.MULTILINE)
    return built[1] if built else UNKNOWN


def _of_git(project: Path) -> str | None:
    """Returns the version of the commit that is checked out; None if the project is not in a git repository."""
    if _git(project, "ls-files", "--error-unmatch", "pyproject.toml") is None:
        return None
    tags = _git(project, "tag", "--points-at", "HEAD")
    log = _git(project, "log", "-100", "--format=%ct %H")
    return _version([line.split() for line in log.splitlines()], (tags or "").split()) if log else None


def _of_archive(said: str) -> str | None:
    if said.startswith("$"):
        return None
    time, commit, *names = re.sub(r"HEAD -> |tag: |,", "", said).split()
    return _version([[time, commit]], names)


def _version(commits: list[list[str]], tags: list[str]) -> str:
    """Returns the version of the first of these commits, which are newest first, each with its time and its hash."""
    if f"v{RELEASE}" in tags:
        return RELEASE
    time, commit = commits[0]
    same = next((at for at, (other, _) in enumerate(commits) if other != time), len(commits)) - 1
    return f"{RELEASE}-dev{datetime.fromtimestamp(int(time), UTC):%Y%m%d%H%M%S}{same:02}+g{commit[:10]}"


def _git(project: Path, *arguments: str) -> str | None:
    """Returns the output of git; None if there is no git, or it fails."""
    # Other users may build a folder that belongs to root. This is safe, as git only reads the commit and runs nothing of the folder.
    command = ["git", "-c", "safe.directory=*", "-C", str(project), *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603 - constants and a folder
    except (OSError, subprocess.CalledProcessError):
        return None


def _version_file(project: Path) -> Path:
    (package,) = (project / "src").glob("*/__init__.py")
    return package.with_name("_version.py")


def _read(path: Path) -> str:
    return path.read_text() if path.is_file() else ""


def _write_version() -> None:
    """Writes the version into the package, where flit_core and the running program read it."""
    file = _version_file(Path.cwd())
    text = f'"""The version of this build, written when it was built."""\n\n__version__ = "{version_of(Path.cwd())}"\n'
    if _read(file) != text:
        beside = file.with_name(f".{file.name}.{os.getpid()}")
        beside.write_text(text)
        beside.replace(file)  # in one step: a process that starts meanwhile reads the old or the new file


def _stage_deploy() -> None:
    """Copies `deploy/`, if a project has it, to the folder of files that flit_core installs under `share`."""
    staged = Path("build/data/share/largesse/deploy")
    if not Path("deploy").is_dir() or _is_same(filecmp.dircmp("deploy", staged) if staged.is_dir() else None):
        return  # a source archive has only the copy
    beside = staged.with_name(f".deploy.{os.getpid()}")
    shutil.copytree("deploy", beside)
    shutil.rmtree(staged, ignore_errors=True)
    beside.rename(staged)


def _is_same(compared: filecmp.dircmp[str] | None) -> bool:
    if compared is None or compared.left_only or compared.right_only or compared.diff_files or compared.funny_files:
        return False
    return all(_is_same(below) for below in compared.subdirs.values())


def _versioned(hook: str) -> Any:
    def run(*arguments: Any, **options: Any) -> Any:
        _write_version()
        _stage_deploy()
        return getattr(buildapi, hook)(*arguments, **options)

    return run


get_requires_for_build_wheel = _versioned("get_requires_for_build_wheel")
get_requires_for_build_sdist = _versioned("get_requires_for_build_sdist")
get_requires_for_build_editable = _versioned("get_requires_for_build_editable")
prepare_metadata_for_build_wheel = _versioned("prepare_metadata_for_build_wheel")
prepare_metadata_for_build_editable = _versioned("prepare_metadata_for_build_editable")
build_wheel = _versioned("build_wheel")
build_sdist = _versioned("build_sdist")
build_editable = _versioned("build_editable")


if __name__ == "__main__":
    sys.exit(importlib.metadata.version(sys.argv[1]) != version_of(Path(sys.argv[2])).replace("-dev", ".dev"))
