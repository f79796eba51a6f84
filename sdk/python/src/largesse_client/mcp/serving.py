"""Runs the server: over stdio, for an assistant that starts it, or over HTTP, for several assistants."""

from __future__ import annotations

import uvicorn

from largesse_client import AsyncLargesse
from largesse_client.mcp.bearer import RequireToken
from largesse_client.mcp.server import build_server
from largesse_client.mcp.settings import SETTINGS, SettingError, Settings


async def serve_stdio(settings: Settings) -> None:
    """Serves over stdin and stdout until they are closed."""
    async with AsyncLargesse(settings.url, settings.api_key) as largesse:
        await build_server(largesse, settings).run_stdio_async()


async def serve_http(settings: Settings, host: str, port: int) -> None:
    """Serves `/mcp` for callers with the token, until it is stopped. Raises SettingError if no token is set."""
    if settings.token is None:
        raise SettingError(f"LARGESSE_MCP_TOKEN must be set with --http: {SETTINGS['LARGESSE_MCP_TOKEN']}")
    async with AsyncLargesse(settings.url, settings.api_key) as largesse:
        app = RequireToken(build_server(largesse, settings).streamable_http_app(host=host), settings.token)
        await uvicorn.Server(uvicorn.Config(app, host=host, port=port, log_level="warning")).serve()
