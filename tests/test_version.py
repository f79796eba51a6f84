"""The version grows with every commit, wherever it is built, and each release has its page."""

import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib import util
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import largesse_client
import pytest
from click.testing import CliRunner
from packaging.version import Version
from prometheus_client import REGISTRY
from tools.dist import PROJECTS, ROOT, build

import largesse.base.metrics_server  # noqa: F401 - registers largesse_build_info
from largesse import __version__
from largesse.cli import main

BACKEND = Path("sdk/python/release/largesse_build.py")
# https://semver.org, FAQ
SEMVER = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?"
    r"(\+([0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*))?"
)
SECOND = 1_790_000_000  # when the commits of these tests are made


def load(file: Path) -> ModuleType:
    spec = util.spec_from_file_location("largesse_build_tried", file)
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


OURS = load(ROOT / BACKEND)
RELEASE: str = OURS.RELEASE


def git(folder: Path, *arguments: str, at: int = SECOND) -> str:
    environ = {
        **{f"GIT_{who}_{what}": "t@example" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
        **{f"GIT_{who}_DATE": f"{at} +0900" for who in ("AUTHOR", "COMMITTER")},
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "PATH": "/usr/local/bin:/usr/bin:/bin",
    }
    done = subprocess.run(["git", "-C", folder, *arguments], env=environ, check=True, capture_output=True, text=True)
    return done.stdout


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project as ours are, in a repository with one commit."""
    folder = tmp_path / "project"
    (folder / "src/thing").mkdir(parents=True)
    (folder / "src/thing/__init__.py").write_text('"""A thing."""\n')
    (folder / "pyproject.toml").touch()
    (folder / BACKEND).parent.mkdir(parents=True)
    shutil.copy(ROOT / BACKEND, folder / BACKEND)
    shutil.copy(ROOT / ".gitattributes", folder)
    git(tmp_path, "init", "--quiet", "-b", "main", str(folder))
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "-m", "first")
    return folder


def commit(project: Path, at: int) -> None:
    git(project, "commit", "--quiet", "--allow-empty", "-m", "more", at=at)


def test_each_commit_has_a_higher_version(project: Path) -> None:
    seen = [OURS.version_of(project)]
    for at in (SECOND, SECOND, SECOND + 1, SECOND + 86_400):
        commit(project, at)
        seen.append(OURS.version_of(project))
    versions = [Version(one) for one in seen]
    assert all(earlier < later for earlier, later in pairwise(versions)), seen
    assert all(SEMVER.fullmatch(one) for one in seen)
    assert all(len(earlier) == len(later) and earlier < later for earlier, later in pairwise(seen)), "as SemVer sorts"
    assert seen[0].startswith(f"{RELEASE}-dev2026092114132000+g")  # UTC
    assert Version("0.1.0") < versions[0]
    assert versions[-1] < Version(RELEASE)
    assert seen[-1].endswith(f"+g{git(project, 'rev-parse', 'HEAD')[:10]}")


def test_the_commit_with_the_tag_is_the_release(project: Path) -> None:
    git(project, "tag", "unrelated")
    assert OURS.version_of(project) != RELEASE
    git(project, "tag", f"v{RELEASE}")
    assert OURS.version_of(project) == RELEASE


def test_a_shallow_clone_has_the_same_version(project: Path, tmp_path: Path) -> None:
    commit(project, SECOND + 1)
    git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{project}", "shallow")
    assert git(tmp_path / "shallow", "rev-list", "--count", "HEAD").strip() == "1"
    assert OURS.version_of(tmp_path / "shallow") == OURS.version_of(project)


@pytest.mark.parametrize("tag", ["", f"v{RELEASE}"])
def test_an_archive_of_git_has_the_same_version(project: Path, tmp_path: Path, tag: str) -> None:
    if tag:
        git(project, "tag", tag)
    git(project, "archive", "--output", str(tmp_path / "archive.tar"), "HEAD")
    with tarfile.open(tmp_path / "archive.tar") as archive:
        archive.extractall(tmp_path / "archive", filter="data")
    assert load(tmp_path / "archive" / BACKEND).version_of(tmp_path / "archive") == OURS.version_of(project)


def test_a_copy_without_git_has_the_version_it_was_built_with(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(project, copy, ignore=shutil.ignore_patterns(".git"))
    assert OURS.version_of(copy) == f"{RELEASE}-dev0"
    monkeypatch.chdir(project)
    OURS._write_version()
    shutil.copy(project / "src/thing/_version.py", copy / "src/thing")
    assert OURS.version_of(copy) == OURS.version_of(project)


def test_the_repository_that_a_copy_lies_in_by_chance_says_nothing(project: Path) -> None:
    copy = project / "vendored"
    (copy / "src/thing").mkdir(parents=True)
    (copy / "src/thing/__init__.py").touch()
    (copy / "pyproject.toml").touch()
    assert OURS.version_of(copy) == f"{RELEASE}-dev0"


@pytest.mark.long
@pytest.mark.parametrize("project_", PROJECTS, ids=lambda folder: folder.name)
def test_a_source_archive_keeps_its_version(project_: Path, tmp_path: Path) -> None:
    wheel, source = build(project_, tmp_path, SECOND)
    with tarfile.open(source) as archive:
        archive.extractall(tmp_path, filter="data")
    (unpacked,) = (path for path in tmp_path.iterdir() if path.is_dir())
    git(tmp_path, "init", "--quiet", str(unpacked))
    git(unpacked, "add", "--all", "--force")
    git(unpacked, "commit", "--quiet", "-m", "a repository of somebody else's")
    (tmp_path / "again").mkdir()
    again, _ = build(unpacked, tmp_path / "again", SECOND)
    assert again.name == wheel.name
    assert str(Version(OURS.version_of(project_))) in wheel.name
    with zipfile.ZipFile(again) as built:
        (file,) = (name for name in built.namelist() if name.endswith("/_version.py"))
        assert OURS.version_of(project_) in built.read(file).decode()


def test_an_editable_installation_has_the_version(project: Path) -> None:
    """As the build of one says it, which runs in a process of its own."""
    hooks = "import sys; sys.path[:0] = sys.argv[1:2]; import largesse_build; print(largesse_build.prepare_metadata_for_build_editable(sys.argv[2]))"
    (project / "pyproject.toml").write_text(
        '[project]\nname = "thing"\ndescription = "A thing"\ndynamic = ["version"]\n'
    )
    (project.parent / "metadata").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", hooks, str(project / BACKEND.parent), str(project.parent / "metadata")],
        cwd=project,
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == f"thing-{Version(OURS.version_of(project))}.dist-info"


def test_the_version_is_shown() -> None:
    assert CliRunner().invoke(main, ["--version"]).output == f"largesse, version {__version__}\n"
    assert REGISTRY.get_sample_value("largesse_build_info", {"version": __version__}) == 1
    for version in (__version__, largesse_client.__version__):  # the OpenAPI document and `User-Agent` have them
        assert SEMVER.fullmatch(version)
        assert Version(version) > Version("0.1.0")


def test_nothing_follows_a_release_under_its_own_number() -> None:
    """A build after the tag would come before the release: raise RELEASE with the first commit after it."""
    released = OURS._git(ROOT, "tag", "--merged", "HEAD", "--list", f"v{RELEASE}")
    assert not released or OURS.version_of(ROOT) == RELEASE


def test_the_release_has_its_pages() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text()
    assert re.search(rf"^## \[{re.escape(RELEASE)}\]", changes, re.MULTILINE)
    pages = {page.stem for page in (ROOT / "docs/upgrades").glob("[0-9]*.md")}
    assert pages == set(re.findall(r"^## \[(\d+\.\d+\.\d+)\]", changes, re.MULTILINE)) - {"0.1.0"}
