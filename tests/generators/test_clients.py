"""Clients that generators make of the document: they compile, place orders on the running service, and read its errors."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.generators.conftest import run, run_python, run_typescript


def hold(printed: str) -> None:
    """Holds what a program was answered against what it did."""
    heard = json.loads(printed)
    reference, *emailed = heard["emailed"]
    assert emailed == [1, 5.0]
    assert len(set(heard["batch"])) == 3
    assert heard["found"] == heard["batch"]
    assert heard["used"] == [409, "/problems/reference-used", f"/orders/{reference}"]
    assert heard["wrong"] == [400, "/problems/invalid-request", "#/recipients/0/email", "#/recipients/2/email"]
    assert heard["listed"] == [reference, heard["batch"][0]]


@pytest.mark.slow
def test_openapi_python_client(document: Path, environ: Mapping[str, str], tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"post_hooks": []}')  # it needs no formatting
    package = tmp_path / "largesse_client"
    options = ["--meta", "none", "--config", "config.json", "--fail-on-warning"]
    generator = Path(sys.executable).with_name("openapi-python-client")
    run([generator, "generate", "--path", document, "--output-path", package, *options], tmp_path)
    hold(run_python("order_openapi_python_client.py", tmp_path, environ))


@pytest.mark.long
@pytest.mark.usefixtures("from_npm")
def test_hey_api(document: Path, environ: Mapping[str, str], tmp_path: Path, from_npm: Path) -> None:
    run([from_npm / "openapi-ts", "--input", document, "--output", "client", "--no-log-file"], tmp_path)
    hold(run_typescript("order_hey_api.ts", tmp_path, environ))


def test_openapi_generator_for_python(
    document: Path, environ: Mapping[str, str], tmp_path: Path, openapi_generator: Path
) -> None:
    options = ["-g", "python", "--package-name", "largesse_client"]
    run([openapi_generator, "generate", "-i", document, "-o", "made", *options], tmp_path)
    python = str(openapi_generator.with_name("python"))
    hold(run_python("order_openapi_generator.py", tmp_path / "made", environ, python))


@pytest.mark.usefixtures("from_npm")
def test_openapi_generator_for_typescript(
    document: Path, environ: Mapping[str, str], tmp_path: Path, openapi_generator: Path
) -> None:
    run([openapi_generator, "generate", "-i", document, "-o", "client", "-g", "typescript-fetch"], tmp_path)
    hold(run_typescript("order_typescript_fetch.ts", tmp_path, environ))


@pytest.mark.slow
def test_redoclys_rules(document: Path, events_document: Path, tmp_path: Path, from_npm: Path) -> None:
    options = ["--extends", "recommended", "--format", "json"]
    printed = run([from_npm / "redocly", "lint", document, events_document, *options], tmp_path)
    found = json.JSONDecoder().raw_decode(printed[printed.index("{") :])[0]
    assert found["problems"] == []


@pytest.mark.long
def test_spectrals_rules(document: Path, events_document: Path, tmp_path: Path, from_npm: Path) -> None:
    ruleset = tmp_path / "rules.yaml"
    ruleset.write_text('extends: ["spectral:oas"]')
    run(
        [from_npm / "spectral", "lint", "--ruleset", ruleset, "--fail-severity", "hint", document, events_document],
        tmp_path,
    )
