"""The real command, as assistants start it, called by the official client over each transport.

`mcp` takes seconds to import, so it is imported only where a test needs it, not in each process that collects tests.
"""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from largesse_client import AsyncLargesse
from largesse_client.mcp import read_settings
from largesse_client.testing import Server

if TYPE_CHECKING:
    from mcp import Client

COMMAND = [sys.executable, "-m", "largesse_client.mcp"]
Assistant = Callable[..., AbstractAsyncContextManager["Tools"]]


class Tools:
    """The tools of a server, called by name."""

    def __init__(self, client: Client, url: str = "") -> None:
        self.client = client
        self.url = url

    async def call(self, name: str, **arguments: Any) -> Any:
        """Returns the answer of a tool, which must not be an error."""
        result = await self.client.call_tool(name, arguments)
        assert not result.is_error, result.content
        return result.structured_content

    async def refusal(self, name: str, **arguments: Any) -> str:
        """Returns the text of a tool's error."""
        result = await self.client.call_tool(name, arguments)
        assert result.is_error, result.structured_content
        (content,) = result.content
        assert content.type == "text"
        return content.text


@pytest.fixture
def token() -> str:
    """Returns the token for the server over HTTP."""
    return secrets.token_urlsafe(24)


@pytest.fixture
def environment(largesse_server: Server, tmp_path: Path) -> dict[str, str]:
    """Returns the settings of a server for assistants, with its own state folder."""
    return {
        "LARGESSE_URL": largesse_server.base_url,
        "LARGESSE_API_KEY": largesse_server.api_key,
        "LARGESSE_MCP_STATE_DIR": str(tmp_path / "state"),
    }


@pytest.fixture
def in_process(environment: dict[str, str]) -> Assistant:
    """An assistant without a separate process, which is quicker where the transport makes no difference."""
    from largesse_client.mcp.server import build_server
    from mcp import Client

    @asynccontextmanager
    async def assistant(**given: str) -> AsyncIterator[Tools]:
        settings = read_settings({**environment, **given})
        async with (
            AsyncLargesse(settings.url, settings.api_key) as largesse,
            Client(build_server(largesse, settings)) as client,
        ):
            yield Tools(client)

    return assistant


@pytest.fixture
def over_stdio(environment: dict[str, str]) -> Assistant:
    from mcp import Client, StdioServerParameters

    @asynccontextmanager
    async def assistant(**settings: str) -> AsyncIterator[Tools]:
        server = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:], env={**environment, **settings})
        async with Client(server) as client:
            yield Tools(client)

    return assistant


@pytest.fixture
def over_http(environment: dict[str, str], tmp_path: Path, token: str) -> Assistant:
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    from mcp import Client

    @asynccontextmanager
    async def assistant(**settings: str) -> AsyncIterator[Tools]:
        given = {**os.environ, **environment, "LARGESSE_MCP_TOKEN": token, **settings}
        with serving(given, tmp_path / "http.log") as url:
            headers = {"Authorization": f"Bearer {token}"}
            async with (
                httpx2.AsyncClient(headers=headers, timeout=60) as http,
                Client(streamable_http_client(url, http_client=http)) as client,
            ):
                yield Tools(client, url)

    return assistant


@contextmanager
def serving(environment: dict[str, str], log: Path) -> Iterator[str]:
    """Runs a server over HTTP until the block ends, and returns its address."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with log.open("w") as output:
        process = subprocess.Popen(
            [*COMMAND, "--http", "--port", str(port)], env=environment, stdout=output, stderr=output
        )
    try:
        _wait_for(port, process, log)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait(timeout=30)


@pytest.fixture(params=["stdio", "http"])
def assistant(request: pytest.FixtureRequest) -> Assistant:
    """An assistant's connection: `async with assistant(SETTING=…) as tools`."""
    transport: Assistant = request.getfixturevalue(f"over_{request.param}")
    return transport


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    until_s = time.monotonic() + 60
    while time.monotonic() < until_s:
        assert process.poll() is None, log.read_text()
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError(log.read_text())
