"""The commands an operator types, one file for each noun.

A new command is a file here and a line in `FILES`. The file is imported when the command runs.
"""

from __future__ import annotations

import signal
from importlib import import_module
from types import FrameType
from typing import ClassVar

import click

from largesse import __version__
from largesse.cli.running import Commands

__all__ = ["main"]


class _Main(Commands):
    """All commands, each loaded when it is asked for: what one needs is no wait for another."""

    # Its name, the file it is in, and what it is called there.
    FILES: ClassVar = {
        "accounts": "accounts:accounts",
        "anchor": "verify:anchor",
        "audit": "audit:audit",
        "check": "verify:check",
        "customers": "customers:customers",
        "database-url": "service:database_url",
        "demo": "service:demo",
        "keys": "keys:keys",
        "load": "seed:load",
        "mail": "mail:mail",
        "migrate": "service:migrate",
        "orders": "orders:orders",
        "privacy": "privacy:privacy",
        "rebuild-reports": "orders:rebuild_reports",
        "receivables": "receivables:receivables",
        "reseal": "key_rotation:reseal",
        "serve": "service:serve",
        "service-accounts": "service_accounts:service_accounts",
        "shipments": "fulfilment:shipments",
        "statement": "ledger:statement",
        "stock": "fulfilment:stock",
        "top-up": "ledger:top_up_account",
        "top-ups": "top_ups:top_ups",
        "users": "users:users",
        "verify": "verify:verify",
        "worker": "service:worker",
    }

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - as click calls it
        """Their names, as the help lists them."""
        return sorted(self.FILES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - as click calls it
        """The command of that name; None: there is none."""
        if cmd_name not in self.FILES:
            return None
        file, _, name = self.FILES[cmd_name].partition(":")
        found = getattr(import_module(f"largesse.cli.{file}"), name)
        assert isinstance(found, click.Command)
        return found


def _terminated(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - as signal.signal calls it
    """Leaves by the usual way out, on which the embedded server is let go."""
    raise SystemExit(128 + number)


@click.group(cls=_Main, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="largesse")
def main() -> None:
    """Largesse: a self-hosted gift ordering service.

    Settings come from LARGESSE_… environment variables; docs/settings.md lists them.
    """
    signal.signal(signal.SIGTERM, _terminated)
