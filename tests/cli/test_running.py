"""How commands are found, where they print to, and how a mistake is told: in one line that says what to do."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

import click
import pytest
from tests.cli.conftest import Run, assert_refused

import largesse.cli
from largesse.cli import main
from largesse.cli.running import progress
from largesse.serving import COULD_NOT_START


def test_a_file_of_its_name_is_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gift_cards.py").write_text("import click\n\n\n@click.command()\ndef gift_cards() -> None:\n    ...\n")
    monkeypatch.setattr(largesse.cli, "__path__", [*largesse.cli.__path__, str(tmp_path)])
    commands = type(main)("largesse")

    assert "gift-cards" in commands.list_commands(click.Context(commands))
    assert isinstance(commands.get_command(click.Context(commands), "gift-cards"), click.Command)


@pytest.mark.parametrize("name", ["running", "tables", "service", "fulfilment", "key-rotation", "nothing"])
def test_other_files_are_none(name: str) -> None:
    assert main.get_command(click.Context(main), name) is None  # type: ignore[attr-defined]


def test_ctrl_c_while_the_code_is_loaded_prints_nothing(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text("import os, signal\n\nos.kill(os.getpid(), signal.SIGINT)\n")
    done = ended("--help", stdout=subprocess.PIPE, PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stderr) == (-signal.SIGINT, b"")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("serve", "--port", "x"), "Invalid value for '--port': 'x' is not a whole number. See"),
        (("stock", "list", "--jsn"), "No such option '--jsn'. Did you mean '--json'? See"),
        (("serve", "--port", "0"), "Invalid value for '--port': 0 is not from 1 to 65535. See"),
        (("reseal", "--rest", "x"), "Invalid value for '--rest': 'x' is not a number. See"),
        (("suppliers", "costs", "--from", "x"), "Invalid value for '--from': 'x' is not a day such as 2026-11-20. See"),
        (("staff", "invite", "a@b.example"), "support, auditor. See"),
        (("reseal", "--rest", "101"), "Invalid value for '--rest': 101.0 is not from 0 to 100. See"),
    ],
)
def test_a_value_that_is_none_or_out_of_range_is_said_plainly(run: Run, arguments: tuple[str, ...], said: str) -> None:
    assert_refused(run(*arguments), said)


def test_a_misspelt_setting_is_named_by_every_command(run: Run, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With LARGESSE_DATABASE_URL misspelt, a command works on the embedded database, which it makes."""
    monkeypatch.setenv("LARGESSE_DATABASE_ULR", "postgresql://user:secret@db.example.com/largesse")
    said = "Warning: LARGESSE_DATABASE_ULR: There is no such setting. Did you mean LARGESSE_DATABASE_URL?\n"
    for command in ("migrate", "keys list --json", "database-url"):
        done = run(*command.split())
        assert (done.exit_code, done.stderr) == (0, said), command
    assert run("check").stderr == "", "it lists all of them"


@pytest.mark.parametrize(
    "arguments",
    [(), ("--processes", "3"), ("--metrics-host", "0.0.0.0"), ("--host", "::", "--metrics-host", "::1")],  # noqa: S104
)
def test_metrics_do_not_take_the_port_of_the_service(run: Run, arguments: tuple[str, ...]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    first = port - 2 if "--processes" in arguments else port
    refused = run("serve", "--port", str(port), "--metrics-port", str(first), *arguments)
    assert_refused(refused, f"--metrics-port {first}", f"takes {port}, the port of the service")


def test_a_process_of_several_that_cannot_serve_metrics_says_so_without_a_trace() -> None:
    """It would fail the same way again, so it is not replaced for ever."""
    code = "from largesse.serving import _serve_in_child as serve; serve('127.0.0.1', 0, 1, None, False, None)"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ports = {
            "LARGESSE_SERVE_METRICS_PORTS": str(taken.getsockname()[1]),
            "LARGESSE_SERVE_METRICS_HOST": "127.0.0.1",
        }
        done = subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, **ports}, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == COULD_NOT_START
    assert json.loads(done.stderr)["event"] == "not_started"
    assert "cannot serve metrics" in json.loads(done.stderr)["reason"]


def test_progress_in_a_pipe_is_a_line_for_each_20_000(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("orders") as show:
        for done in (0, 0, 300, 19_999, 20_001, 20_001, 65_000, 65_001):
            show(done, 70_000)
    assert capsys.readouterr().err == "20,001 of 70,000 orders\n65,000 of 70,000 orders\n"


FULL = Path("/dev/full")


def ended(*arguments: str | bytes, stdout: IO[Any] | int, **environ: str) -> subprocess.CompletedProcess[bytes]:
    """A command that ended as a process of its own, with buffers as operators have them."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"} | environ
    command = [sys.executable, "-m", "largesse", *arguments]
    return subprocess.run(command, env=env, stdout=stdout, stderr=subprocess.PIPE, timeout=60, check=False)


@pytest.mark.skipif(not FULL.is_char_device(), reason="no /dev/full on this machine")
@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["customers", "list", "--csv"], "the output cannot be written: No space left on device"),
        (["--help"], "the output cannot be written: No space left on device"),
        (["customers", "list", "--help"], "the output cannot be written: No space left on device"),
        (["customers", "list", "--json"], "the output cannot be written: No space left on device"),
        (["shipments", "export"], "the list cannot be written: No space left on device. Make room, and repeat"),
    ],
    ids=" ".join,
)
def test_a_full_disk_of_the_output_is_not_the_databases(
    database: str, loaded: dict[str, Any], arguments: list[str], said: str
) -> None:
    with FULL.open("wb") as full:
        done = ended(*arguments, stdout=full)
    assert done.returncode == 1
    assert done.stderr.decode().startswith(f"Error: {said}")
    assert done.stderr.count(b"\n") == 1, done.stderr


def test_a_closed_output_is_refused_before_anything_is_done(database: str, loaded: dict[str, Any], run: Run) -> None:
    command = f'exec "{sys.executable}" -m largesse customers create Initech --plan pro --funding invoiced >&-'
    done = subprocess.run(["/bin/sh", "-c", command], stderr=subprocess.PIPE, timeout=60, check=False)
    assert (done.returncode, done.stderr[:37]) == (1, b"Error: the standard output is closed:")
    assert "Initech" not in run("customers", "list").stdout


def test_a_closed_error_output_fails_no_command(database: str, loaded: dict[str, Any]) -> None:
    for command in ("verify", "reseal"):
        done = subprocess.run(
            ["/bin/sh", "-c", f'exec "{sys.executable}" -m largesse {command} 2>&-'],
            stdout=subprocess.PIPE,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stdout != b"") == (0, True), command


def test_log_lines_are_not_in_the_output(database: str, loaded: dict[str, Any]) -> None:
    mark = "&" if "?" in database else "?"
    done = ended("anchor", "--json", stdout=subprocess.PIPE, LARGESSE_DATABASE_URL=f"{database}{mark}pgbouncer=true")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["entries"]
    assert b"database_role_without_limits" in done.stderr


def test_a_file_that_cannot_be_made_is_named(run: Run, database: str) -> None:
    assert_refused(
        run("shipments", "export", "--output", "none/list.csv"), "Error: none/list.csv cannot be written: No"
    )


@pytest.mark.parametrize("form", ["--csv", "--json"])
def test_what_the_locale_cannot_write_is_written_in_utf8(
    database: str, loaded: dict[str, Any], run: Run, form: str
) -> None:
    run("customers", "create", "谢谢 Ünïcode", "--plan", "pro", "--funding", "invoiced")
    done = ended("customers", "list", form, stdout=subprocess.PIPE, PYTHONIOENCODING="latin-1")
    assert (done.returncode, done.stderr) == (0, b"")
    assert "谢谢 Ünïcode" in done.stdout.decode()


def test_an_argument_that_is_no_text_is_one_line(database: str, loaded: dict[str, Any], run: Run) -> None:
    said = "Error: an argument is not text in UTF-8\n"
    done = ended("keys", "list", "--customer", b"\xe9", stdout=subprocess.PIPE)
    assert (done.returncode, done.stderr.decode()) == (1, said)
    no_text = os.fsdecode(b"acme\xff")  # as a process gets it
    for arguments in (
        ("customers", "set", no_text, "--name", "x"),
        ("budgets", "create", "acme", "B", "--currency", "GBP", "--person", no_text),
    ):
        assert_refused(run(*arguments), said)


def test_a_campaign_that_is_not_there(run: Run, database: str, loaded: dict[str, Any]) -> None:
    for form in ((), ("--json",)):
        assert_refused(run("campaigns", "show", "acme", "7", *form), "There is no campaign 7 in production.")


def test_a_change_of_a_budget_that_changes_nothing(run: Run, database: str, loaded: dict[str, Any]) -> None:
    run("budgets", "create", "acme", "All", "--currency", "GBP", "--role", "member", "--limit", "9")
    assert_refused(run("budgets", "change", "acme", "1"), "say what to change: --name, --limit or --per-gift")


def test_days_of_reminders_may_have_blanks_between(run: Run, database: str, loaded: dict[str, Any]) -> None:
    done = run("unclaimed", "set", "acme", "--remind-after", "3, 10")
    assert "reminders after 3, 10 days" in done.output
    assert_refused(run("unclaimed", "set", "acme", "--claim-by-days", "9" * 5_000), "--claim-by-days must be a whole")


def test_reminders_after_the_claim_by_date_are_refused_as_on_the_page(
    run: Run, database: str, loaded: dict[str, Any]
) -> None:
    assert_refused(run("unclaimed", "set", "acme", "--claim-by-days", "5", "--remind-after", "3,5"), "reminder")
    assert run("unclaimed", "set", "acme", "--remind-after", "3,10").exit_code == 0
    assert_refused(run("unclaimed", "set", "acme", "--claim-by-days", "10"), "reminder")
    assert run("unclaimed", "set", "acme", "--claim-by-days", "11").exit_code == 0


@pytest.mark.parametrize("command", [("suppliers", "list"), ("worker",)], ids=" ".join)
def test_a_file_of_suppliers_that_is_not_there_names_the_setting(
    run: Run, database: str, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setenv("LARGESSE_SUPPLIERS", "none.yaml")
    assert_refused(run(*command), "LARGESSE_SUPPLIERS: none.yaml cannot be read: No such file")
