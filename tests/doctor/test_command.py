"""`largesse check` as an operator runs it: what it prints, what it ends with, and that it leaves no trace."""

import asyncio
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
from tests.mail.conftest import PostOffice
from tests.worker.test_metrics import free_port

from largesse.base.settings import load_settings
from largesse.db.migrate import upgrade
from largesse.db.pool import connect_once
from largesse.db.scope import OPERATOR
from largesse.doctor.checks import Level
from largesse.doctor.machine import check_suppliers
from largesse.installation import database_address

GOOD = {
    "LARGESSE_MASTER_KEY": "5e" * 32,
    "LARGESSE_PUBLIC_URL": "https://gifts.example.com",
    "LARGESSE_MAIL_FROM": "Largesse <gifts@example.com>",
}


async def check(folder: Path, *arguments: str, **environ: str) -> tuple[int, str]:
    """The exit code and what is printed."""
    named = {name: value for name, value in os.environ.items() if not name.startswith("LARGESSE_")}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "largesse", "check", *arguments,
        env={**named, **environ}, cwd=folder, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    printed, failed = await asyncio.wait_for(process.communicate(), 60)
    assert failed == b""
    assert process.returncode is not None
    return process.returncode, printed.decode()


def levels(report: Any, level: str) -> set[str]:
    return {finding["setting"] for finding in report["findings"] if finding["level"] == level}


@pytest.mark.long
async def test_a_configuration_that_works(database_url: str, tmp_path: Path) -> None:
    server = PostOffice()
    await server.start()
    environ = {**GOOD, "LARGESSE_DATABASE_URL": database_url, "LARGESSE_SMTP_URL": server.url}
    code, printed = await check(tmp_path, "--json", **environ)
    report = json.loads(printed)
    assert code == 0, printed
    assert report["ok"] is True
    assert levels(report, "error") == set()
    assert levels(report, "warning") <= {"LARGESSE_DATABASE_URL", "RLIMIT_NOFILE"}, "the tests' server need not be safe"
    assert levels(report, "ok") >= {"LARGESSE_…", "LARGESSE_DATABASE_URL", "LARGESSE_MASTER_KEY", "LARGESSE_SMTP_URL"}
    code, printed = await check(tmp_path, **environ)
    await server.close()
    assert code == 0
    assert len(printed.splitlines()) == len(report["findings"]) + 1
    assert printed.splitlines()[-1].startswith("Errors: 0, warnings: ")
    assert server.got == []
    assert server.connections == 2
    assert os.listdir(tmp_path) == []  # noqa: PTH208 - a test's own folder


@pytest.mark.slow
async def test_a_configuration_that_cannot_work(tmp_path: Path) -> None:
    secret = "postgresql://ada:secret@127.0.0.1:1/largesse"
    code, printed = await check(
        tmp_path,
        "--json",
        LARGESSE_DATABASE_URL=secret,
        LARGESSE_SMTP_URL="smtp://ada:secret@127.0.0.1:1",
        LARGESSE_RATE_LIMIT="secret",
        LARGESSE_SMPT_URL="secret",
    )
    report = json.loads(printed)
    assert (code, report["ok"]) == (1, False)
    assert levels(report, "error") == {
        "LARGESSE_DATABASE_URL",
        "LARGESSE_MASTER_KEY",
        "LARGESSE_RATE_LIMIT",
        "LARGESSE_SMTP_URL",
    }
    assert levels(report, "warning") >= {"LARGESSE_SMPT_URL", "LARGESSE_PUBLIC_URL", "LARGESSE_MAIL_FROM"}
    assert "secret" not in printed
    assert os.listdir(tmp_path) == []  # noqa: PTH208 - a test's own folder


@pytest.mark.slow
async def test_what_a_malformed_setting_leads_to_is_not_looked_at(tmp_path: Path) -> None:
    code, printed = await check(
        tmp_path, "--json", LARGESSE_DATABASE_URL="mysql://x", LARGESSE_SMTP_URL="http://x", LARGESSE_DATA_DIR="data"
    )
    assert code == 1
    errors = [f for f in json.loads(printed)["findings"] if f["level"] == "error"]
    assert [f["setting"] for f in errors] == ["LARGESSE_DATABASE_URL", "LARGESSE_SMTP_URL"]
    assert "No mail server is set" not in printed
    assert os.listdir(tmp_path) == []  # noqa: PTH208 - a test's own folder


@pytest.mark.slow
async def test_products_without_a_described_supplier_are_named_with_an_embedded_database_too(tmp_path: Path) -> None:
    settings = load_settings({"LARGESSE_DATA_DIR": str(tmp_path / "data")})
    async with database_address(settings, None) as url:
        await upgrade(url)
        async with connect_once(url, OPERATOR) as connection:
            await connection.execute(
                """
                INSERT INTO products (key, name, is_digital, currency, countries, denominations_minor, suppliers)
                VALUES ('coffee', 'Coffee', true, 'GBP', '{GB}', '{500}', '{nobody}')
                """
            )
        [found] = await check_suppliers(settings)
    assert (found.level, found.setting) == (Level.WARNING, "LARGESSE_SUPPLIERS")
    assert "nobody" in found.text


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
