"""The pytest plugin: `largesse_server` and `largesse`, loaded wherever the package is installed.

It imports nothing until a test asks for one of them.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from largesse_client import Largesse
    from largesse_client.testing import Server


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `--largesse-command` and the ini option `largesse_command`."""
    text = "How to call largesse for the fixture largesse_server, where this interpreter does not have it"
    parser.getgroup("largesse").addoption("--largesse-command", help=text)
    parser.addini("largesse_command", help=text, default="")


@pytest.fixture(scope="session")
def largesse_server(pytestconfig: pytest.Config) -> Iterator[Server]:
    """Runs a real Largesse with the demo's data, shared by all tests of the session."""
    from largesse_client.testing import running

    command = pytestconfig.getoption("--largesse-command") or pytestconfig.getini("largesse_command")
    with running(shlex.split(command)) as server:
        yield server


@pytest.fixture
def largesse(largesse_server: Server) -> Iterator[Largesse]:
    """Returns a client of `largesse_server`."""
    with largesse_server.client() as client:
        yield client
