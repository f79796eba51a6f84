"""The Zapier app and the n8n nodes: their definitions by the rules of those services, and what they do against a real Largesse."""

import json
import os
import re
from pathlib import Path

import pytest
from tests.typescript.conftest import PACKAGE, run_in

pytestmark = pytest.mark.embedded  # the server has its own database
SDK = PACKAGE.parent


def installed(name: str) -> Path:
    """The folder of a package whose dependencies npm has installed."""
    folder = SDK / name
    if not (folder / "node_modules").exists():
        reason = f"no dependencies: npm ci --ignore-scripts --prefix sdk/{name}"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return folder


@pytest.mark.slow
def test_the_zapier_app(node) -> None:
    printed = node("--test", "--test-reporter=tap", "test/", folder=installed("zapier"))
    assert re.search(r"^# pass [1-9]", printed, re.MULTILINE)


@pytest.mark.long
def test_the_n8n_nodes_keep_to_the_rules_of_n8n() -> None:
    assert run_in(installed("n8n"), ["node_modules/.bin/eslint", "--max-warnings", "0", "."], {}) == ""


@pytest.mark.slow
def test_the_n8n_nodes(node) -> None:
    folder = installed("n8n")
    run_in(folder, ["npm", "run", "--silent", "build"], {})
    for file in json.loads((folder / "package.json").read_text())["n8n"]["nodes"]:
        assert (folder / file).exists()
    printed = node("--test", "--test-reporter=tap", "test/", folder=folder)
    assert re.search(r"^# pass [1-9]", printed, re.MULTILINE)
