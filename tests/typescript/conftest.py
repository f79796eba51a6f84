"""Builds the client with what npm installed, and runs programs with it against a real Largesse (`largesse_server`, of the Python client)."""

import fcntl
import hashlib
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

PACKAGE = Path(__file__).parents[2] / "sdk/typescript"
TSC = PACKAGE / "node_modules/.bin/tsc"
Run = Callable[..., str]


def run_in(folder: Path, command: list[str | Path], environ: Mapping[str, str], timeout_s: float = 110) -> str:
    """What a command prints, which must end well."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env={**os.environ, "NO_COLOR": "1", **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}"
    return done.stdout


@pytest.fixture(scope="session")
def built() -> Path:
    """The package, compiled under the strictest rules; its tests, too. Processes that test at the same time build it once."""
    if not TSC.exists():
        reason = "no compiler: npm ci --ignore-scripts --prefix sdk/typescript"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    build = PACKAGE / "build"
    build.mkdir(exist_ok=True)
    sources = [
        *PACKAGE.glob("*.json"),
        *PACKAGE.glob("src/**/*.ts"),
        *PACKAGE.glob("tests/*.ts"),
        *PACKAGE.glob("tests/*.json"),
    ]
    digest = hashlib.sha256(b"".join(str(path).encode() + path.read_bytes() for path in sorted(sources))).hexdigest()
    stamp = build / "digest"
    with (build / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text() != digest or not (PACKAGE / "dist/index.js").exists():
            for project in (".", "tests"):
                assert run_in(PACKAGE, [TSC, "--project", project], {}) == ""
            stamp.write_text(digest)
    return PACKAGE


@pytest.fixture
def node(built: Path, largesse_server: Any) -> Run:
    """Runs node in the package, with the address and the key of a running Largesse."""
    environ = {"LARGESSE": largesse_server.base_url, "LARGESSE_API_KEY": largesse_server.api_key}

    def run(*arguments: str | Path, folder: Path = built, timeout_s: float = 110, **more: str) -> str:
        return run_in(folder, ["node", *arguments], {**environ, **more}, timeout_s)

    return run
