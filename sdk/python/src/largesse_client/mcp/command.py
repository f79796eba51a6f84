"""`largesse-mcp`, the command."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys

from largesse_client.errors import InvalidArgument
from largesse_client.mcp.settings import SETTINGS, SettingError, read_settings


def main() -> None:
    """Runs the command."""
    arguments = _parser().parse_args()
    try:
        settings = read_settings(os.environ)
        from largesse_client.mcp import serving

        if arguments.http:
            asyncio.run(serving.serve_http(settings, arguments.host, arguments.port))
        else:
            asyncio.run(serving.serve_stdio(settings))
    except (SettingError, InvalidArgument) as error:
        sys.exit(f"largesse-mcp: {error}")
    except ModuleNotFoundError as error:
        sys.exit(f"largesse-mcp: {error.name} is missing: install largesse-client with its extra `mcp`")
    except KeyboardInterrupt:
        pass


def _parser() -> argparse.ArgumentParser:
    listed = "\n".join(f"  {name:<28} {text}" for name, text in SETTINGS.items())
    parser = argparse.ArgumentParser(
        "largesse-mcp",
        description="Largesse for assistants: a server of the Model Context Protocol, over stdio unless told otherwise.",
        epilog=f"environment:\n{listed}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--http", action="store_true", help="serve streamable HTTP at /mcp, for clients that have the token"
    )
    parser.add_argument("--host", type=host, default="127.0.0.1", help="where to listen for HTTP (127.0.0.1)")
    parser.add_argument("--port", type=port, metavar="PORT", default=8765, help="the port for HTTP (8765)")
    return parser


def host(text: str) -> str:
    """Reads a host. Raises ArgumentTypeError for an empty one, which would mean all addresses of the machine."""
    if not text.strip():
        raise argparse.ArgumentTypeError("must be an address such as 127.0.0.1")
    return text


def port(text: str) -> int:
    """Reads a port. Raises ArgumentTypeError unless it is from 1 to 65535."""
    port = int(text)
    if not 1 <= port <= 65_535:
        raise argparse.ArgumentTypeError(f"must be from 1 to 65535, not {port}")
    return port
