"""What the commands say at start: one line of the log for each doubt, naming the setting."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.faults.installation import Installation
from tests.worker.test_metrics import free_port

STARTED = {
    "serve": "Uvicorn running",
    "serve --processes 2": "Application startup complete.",
    "worker": "worker.started",
}
QUIET = {"LARGESSE_PUBLIC_URL": "https://gifts.example.com", "LARGESSE_MAIL_FROM": "gifts@example.com"}


@pytest.fixture(scope="module")
def installation(module_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    return Installation.external(tmp_path_factory.mktemp("start"), module_database_url)


def doubts(installation: Installation, folder: Path, arguments: list[str], **environ: str) -> dict[str, str]:
    """What a command doubts until it runs; it is stopped then."""
    log = folder / "log"
    started = next(said for command, said in reversed(STARTED.items()) if " ".join(arguments).startswith(command))
    named = {name: value for name, value in os.environ.items() if not name.startswith("LARGESSE_")}
    with log.open("w") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "largesse", *arguments],
            env={**named, **installation.environ, **environ},
            cwd=folder,
            stderr=stream,
        )
    try:
        while not any(line["event"].startswith(started) for line in _lines(log)):
            assert process.poll() is None, log.read_text()
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
    said = [line for line in _lines(log) if line["event"] == "setting_doubtful"]
    assert all(line["level"] == "warning" for line in said)
    assert len({(line["setting"], line["doubt"]) for line in said}) == len(said), "each is said once"
    return {line["setting"]: line["doubt"] for line in said}


def _lines(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines(keepends=True) if line.endswith("\n")]


@pytest.mark.long
@pytest.mark.parametrize("command", ["serve", "serve --processes 2 --with-worker", "worker"])
def test_production_with_nothing_set_is_doubted(installation: Installation, tmp_path: Path, command: str) -> None:
    arguments = command.split()
    if arguments[0] == "serve":
        arguments += ["--port", str(free_port())]
    said = doubts(installation, tmp_path, arguments, LARGESSE_SMPT_URL="smtp://secret.example")
    assert said.keys() == {"LARGESSE_PUBLIC_URL", "LARGESSE_MAIL_FROM", "LARGESSE_SMTP_URL", "LARGESSE_SMPT_URL"}
    assert "Did you mean LARGESSE_SMTP_URL?" in said["LARGESSE_SMPT_URL"]
    assert "held" in said["LARGESSE_SMTP_URL"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "environ", "doubted"),
    [
        (["serve"], {**QUIET, "LARGESSE_SMTP_URL": "smtp://127.0.0.1:2525"}, set()),
        (["serve", "--environment", "staging"], {}, set()),
        (["serve", "--environment", "staging", "--with-worker"], {}, {"LARGESSE_SMTP_URL"}),
    ],
)
def test_what_is_as_it_should_be_is_not_doubted(
    installation: Installation, tmp_path: Path, arguments: list[str], environ: dict[str, str], doubted: set[str]
) -> None:
    said = doubts(installation, tmp_path, [*arguments, "--port", str(free_port())], **environ)
    assert said.keys() == doubted
