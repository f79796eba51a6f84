"""The pytest plugin: `largesse_server` and `largesse`, loaded wherever the package is installed.

It imports nothing until a test asks for one of them.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

# `running` has the same default. Not imported from there: that would import the client in every run of pytest.
START_TIMEOUT_S = 180.0

if TYPE_CHECKING:
    from largesse_client import Largesse
    from largesse_client.testing import Server


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `--largesse-command` and `--largesse-start-timeout`, and the ini options of the same names."""
    text = "How to call largesse for the fixture largesse_server, where this interpreter does not have it"
    longest = f"Seconds that the fixture largesse_server may take to start, {START_TIMEOUT_S:g} by default"
    group = parser.getgroup("largesse")
    group.addoption("--largesse-command", help=text)
    group.addoption("--largesse-start-timeout", help=longest, type=float)
    parser.addini("largesse_command", help=text, default="")
    parser.addini("largesse_start_timeout", help=longest, default="")


@pytest.fixture(scope="session")
def largesse_server(pytestconfig: pytest.Config) -> Iterator[Server]:
    """Runs a real Largesse with the demo's data, shared by all tests of the session."""
    from largesse_client.testing import running

    command = pytestconfig.getoption("--largesse-command") or pytestconfig.getini("largesse_command")
    longest_s = pytestconfig.getoption("--largesse-start-timeout") or pytestconfig.getini("largesse_start_timeout")
    with running(shlex.split(command), start_timeout_s=float(longest_s or START_TIMEOUT_S)) as server:
        yield server


@pytest.fixture
def largesse(largesse_server: Server) -> Iterator[Largesse]:
    """Returns a client of `largesse_server`."""
    with largesse_server.client() as client:
        yield client
