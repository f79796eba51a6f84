"""Type checkers find no mistakes in a program that uses the client. mypy runs in `make check`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1]
PYRIGHT = Path(__file__).parent / "node_modules/.bin/pyright"


@pytest.mark.long
def test_pyright_finds_nothing() -> None:
    if not PYRIGHT.exists():
        assert "CI" not in os.environ, "npm ci has not been run in sdk/python/tests"
        pytest.skip("needs `npm ci --ignore-scripts --prefix sdk/python/tests`")
    run = subprocess.run(
        [PYRIGHT, "--outputjson", "--pythonpath", sys.executable],
        cwd=PACKAGE,
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )
    found = json.loads(run.stdout)
    assert found["summary"]["filesAnalyzed"] > 20
    assert [f"{one['file']}: {one['message']}" for one in found["generalDiagnostics"]] == []
