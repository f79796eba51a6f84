"""Where commands print to: a full disk, a closed output, a locale without the characters; and arguments that are no text."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

import pytest
from tests.cli.conftest import Run, assert_refused

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


def test_an_argument_that_is_no_text_is_one_line(database: str, loaded: dict[str, Any]) -> None:
    for arguments in (
        ("customers", "set", b"acme\xff", "--name", "x"),
        ("keys", "list", "--customer", b"\xe9"),
        ("budgets", "create", "acme", "B", "--currency", "GBP", "--person", b"ann\xe9@acme.example"),
    ):
        done = ended(*arguments, stdout=subprocess.PIPE)
        assert (done.returncode, done.stderr) == (1, b"Error: an argument is not text in UTF-8\n")
