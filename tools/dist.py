"""Builds the wheels, source archives and npm packages, with nothing in them that depends on when and where.

    python -m tools.dist [FOLDER]     into FOLDER, by default dist/; each is built twice, and must be the same both times

Times within are SOURCE_DATE_EPOCH's, by default those of the last commit. The build tools are flit_core, which the lock pins, and npm.
sdk/python/release/largesse_build.py says what version they have.
"""

import hashlib
import os
import runpy
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECTS = tuple(
    folder for folder in (ROOT, ROOT / "sdk/python", ROOT / "sdk/conformance") if (folder / "pyproject.toml").is_file()
)
NPM_PACKAGES = (ROOT / "sdk/typescript", ROOT / "sdk/n8n")
VERSIONS = runpy.run_path(str(ROOT / "sdk/python/release/largesse_build.py"))

_BUILD = """
import sys, tomllib
with open("pyproject.toml", "rb") as file:
    system = tomllib.load(file)["build-system"]
sys.path[:0] = system["backend-path"]
backend = __import__(system["build-backend"])
for build in (backend.build_wheel, backend.build_sdist):
    print(build(sys.argv[1]))
"""


def build(project: Path, folder: Path, epoch: int) -> list[Path]:
    """The wheel and the source archive of a project, built into a folder. Raises CalledProcessError."""
    built = subprocess.run(
        [sys.executable, "-c", _BUILD, str(folder)],
        cwd=project,
        env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch)},
        check=True,
        capture_output=True,
        text=True,
    )
    files = [folder / name for name in built.stdout.split()]
    for file in files:
        file.chmod(0o644)  # flit_core leaves them readable for their owner alone
    return files


def pack(package: Path, folder: Path) -> Path:
    """The npm package, packed into a folder with the version of the commit. Its `node_modules` are there. Raises CalledProcessError."""
    with tempfile.TemporaryDirectory() as temporary:
        copy = Path(temporary, package.name)
        shutil.copytree(package, copy, ignore=shutil.ignore_patterns("node_modules", "build", "dist"))
        (copy / "node_modules").symlink_to(package / "node_modules")
        for path in (copy / "package.json", *copy.glob("src/version.ts")):
            path.write_text(path.read_text().replace(VERSIONS["UNKNOWN"], VERSIONS["version_of"](ROOT)))
        command = ["npm", "pack", "--loglevel=error", "--pack-destination", str(folder)]
        packed = subprocess.run(command, cwd=copy, check=True, capture_output=True, text=True)
    return folder / packed.stdout.split()[-1]


def epoch_of(repository: Path) -> int:
    """The time that everything in the packages has, in seconds since 1970."""
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(given)
    asked = subprocess.run(
        ["git", "log", "-1", "--format=%ct"], cwd=repository, check=True, capture_output=True, text=True
    )
    return int(asked.stdout)


def digest(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main() -> None:
    """Builds every package twice and prints the digest and name of each file; ends with a line where two differ."""
    folder = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT / "dist"
    folder.mkdir(parents=True, exist_ok=True)
    epoch = epoch_of(ROOT)
    for project in PROJECTS:
        with tempfile.TemporaryDirectory() as again:
            for first, second in zip(build(project, folder, epoch), build(project, Path(again), epoch), strict=True):
                _compare(first, second)
    for package in NPM_PACKAGES:
        if not (package / "node_modules").is_dir():
            print(f"no npm package: npm ci --ignore-scripts --prefix {package.relative_to(ROOT)}", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory() as again:
            _compare(pack(package, folder), pack(package, Path(again)))


def _compare(first: Path, second: Path) -> None:
    if digest(first) != digest(second):
        sys.exit(f"{first.name} is another one each time it is built")
    print(digest(first), first.name)


if __name__ == "__main__":
    main()
