"""Generators of clients, each with what it takes to run what it makes.

Those that come from npm are installed with `npm ci --ignore-scripts --prefix tests/generators`; openapi-generator, which takes its time, is
used when OPENAPI_GENERATOR names it. docs/testing.md has both.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from tests.web.api.conftest import Service, service, start_service

__all__ = ["service", "start_service"]

HERE = Path(__file__).parent
TOOLS = HERE / "node_modules/.bin"
# No tool is to ask anybody whether there is a newer one, or to tell how it is used.
QUIET = {"REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true", "NO_COLOR": "1"}


def run(command: Sequence[str | Path], folder: Path, environ: Mapping[str, str] | None = None) -> str:
    """What a command prints, run in `folder`; it must end well."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env={**os.environ, **QUIET, **(environ or {})},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def from_npm() -> Path:
    """The folder of the programs that npm installs."""
    if not TOOLS.exists():
        reason = "no programs from npm: npm ci --ignore-scripts --prefix tests/generators"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return TOOLS


@pytest.fixture(scope="session")
def openapi_generator() -> Path:
    """openapi-generator, in an environment with what its Python clients need."""
    named = os.environ.get("OPENAPI_GENERATOR")
    if not named:
        pytest.skip("OPENAPI_GENERATOR names no openapi-generator-cli")
    return Path(named).absolute()


@pytest.fixture
def document(service: Service, tmp_path: Path) -> Path:
    """The document as it is served, in a file."""
    return fetched(service, tmp_path / "openapi.json")


@pytest.fixture
def events_document(service: Service, tmp_path: Path) -> Path:
    return fetched(service, tmp_path / "openapi-events.json")


def fetched(service: Service, path: Path) -> Path:
    path.write_bytes(service.client().get(f"/{path.name}").content)
    return path


@pytest.fixture
def environ(service: Service, tmp_path: Path) -> dict[str, str]:
    """What the programs that order are told."""
    newest = service.client("hr").get("/orders?limit=1").json()
    return {
        "LARGESSE": service.url,
        "LARGESSE_API_KEY": service.keys["hr"],
        "PRODUCT_ID": str(service.ids["products"]["coffee"]),
        "ACCOUNT_ID": str(service.ids["funding_accounts"]["gbp"]),
        "REFERENCE": tmp_path.name,
        "AFTER": str(newest[0]["id"] if newest else 0),
    }


def run_python(program: str, folder: Path, environ: Mapping[str, str], python: str = sys.executable) -> str:
    """What a program prints that imports its client from `folder`."""
    return run([python, "-W", "error", HERE / program], folder, {**environ, "PYTHONPATH": str(folder)})


def run_typescript(program: str, folder: Path, environ: Mapping[str, str]) -> str:
    """What a program prints that imports its client from `folder`/client, both compiled under the strictest rules."""
    (folder / program).write_text((HERE / program).read_text())
    options = {
        "strict": True,
        "target": "es2022",
        "module": "nodenext",
        "lib": ["es2022", "dom", "dom.iterable"],
        "types": [],
        "outDir": "compiled",
        "rootDir": ".",
    }
    config = {"compilerOptions": options, "include": [program, "client/**/*.ts"]}
    (folder / "tsconfig.json").write_text(json.dumps(config))
    (folder / "package.json").write_text('{"type": "commonjs"}')
    run([TOOLS / "tsc", "--project", "."], folder)
    return run(["node", f"compiled/{Path(program).stem}.js"], folder, environ)
