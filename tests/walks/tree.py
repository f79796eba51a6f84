"""Walks: changes as somebody may make them one day, kept beside the tests and tried on a copy of the tree. None is merged.

A walk shows what such a change takes: which files it touches, and that nothing else is needed for it to work. A migration in a
patch is called NEXT and follows LAST: both become numbers as it is applied, whatever migrations there are by then.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
_COPIED = ("src", "tests", "docs", "sdk/python")
_NOT_COPIED = shutil.ignore_patterns("node_modules", "*.egg-info")
_LONGEST_S = 110


def copy_tree(to: Path) -> Path:
    """Copies what the tests need of the repository to a new folder, and returns it."""
    for folder in _COPIED:
        shutil.copytree(ROOT / folder, to / folder, ignore=_NOT_COPIED)
    for file in [*ROOT.glob("*.md"), ROOT / "pyproject.toml"]:
        shutil.copy(file, to)
    return to


def apply(patch: Path, tree: Path) -> list[str]:
    """Applies a patch to a copy; returns the files it touches beside tests and docs.

    Fails where it does not apply to the letter: then the code has moved on, and the patch is to be made anew.
    """
    text = _numbered(patch.read_text(), tree)
    listed = _git(tree, "apply", "--numstat", "-", text=text)
    _git(tree, "apply", "-", text=text)
    touched = [line.split("\t")[2] for line in listed.splitlines()]
    return [name for name in touched if not name.startswith(("tests/", "docs/", "sdk/python/tests/"))]


def run(tree: Path, server_url: str, *tests: str) -> None:
    """Runs tests of a copy, against the code of the copy."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests],
        cwd=tree,
        env={
            # As a run of its own, not as a worker of the one that this is: it would share that one's databases.
            **{name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
            "PYTHONPATH": os.pathsep.join(str(tree / sources) for sources in ("src", "sdk/python/src")),
            "LARGESSE_TEST_DATABASE_URL": server_url,
        },
        capture_output=True,
        text=True,
        timeout=_LONGEST_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _numbered(text: str, tree: Path) -> str:
    versions = (tree / "src/largesse/db/migrations").glob("[0-9]*.sql")
    last = max(version.name[:4] for version in versions)
    return text.replace("NEXT", f"{int(last) + 1:04}").replace("LAST", last)


def _git(tree: Path, *words: str, text: str) -> str:
    done = subprocess.run(
        ["git", *words],
        cwd=tree,
        env={**os.environ, "GIT_CEILING_DIRECTORIES": str(tree.parent)},
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
