"""Starts a Largesse for a program's own tests, and reports why that failed."""

from __future__ import annotations

import shlex
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from largesse_client.testing import ServerError, running


def test_the_server_ends_with_the_block(largesse_server) -> None:
    """The server of this session answers. That it ends is tested with another one."""
    with largesse_server.client() as largesse:
        assert largesse.me().customer_name == "Acme Ltd"
    assert largesse_server.api_key not in repr(largesse_server)


@pytest.mark.long
def test_a_server_of_ones_own(pytestconfig: pytest.Config) -> None:
    command = shlex.split(pytestconfig.getoption("--largesse-command") or "")
    with running(command, settings={"LARGESSE_ENVIRONMENT": "staging"}) as server:
        with server.client() as largesse:
            assert largesse.me().environment == "staging"
        port = int(server.base_url.rpartition(":")[2])
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5)


def test_no_such_command() -> None:
    with pytest.raises(ServerError, match="cannot be run"), running(["/no/such/largesse"]):
        pass


def test_a_command_that_ends(tmp_path: Path) -> None:
    with (
        pytest.raises(ServerError, match="no world today"),
        running([sys.executable, "-c", "raise SystemExit('no world today')"]),
    ):
        pass


def test_a_command_that_says_nothing() -> None:
    with (
        pytest.raises(
            ServerError, match=r"not ready after 0\.3 s\. If this machine is slow.*--largesse-start-timeout=0\.6 "
        ),
        running([sys.executable, "-c", "import time; time.sleep(60)"], start_timeout_s=0.3),
    ):
        pass


@pytest.mark.parametrize(("option", "limit"), [((), "0.2"), (("--largesse-start-timeout=0.1",), "0.1")])
def test_the_limit_of_a_start_can_be_set(tmp_path: Path, option: tuple[str, ...], limit: str) -> None:
    """By the option, else by pytest's settings."""
    (tmp_path / "test_it.py").write_text("def test_it(largesse_server): pass")
    (tmp_path / "pytest.ini").write_text("[pytest]\nlargesse_start_timeout = 0.2")
    command = f"--largesse-command={sys.executable} -c 'import time; time.sleep(60)'"
    run = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", command, *option]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert f"was not ready after {limit} s. If this machine is slow, allow more" in done.stdout
