"""The commands for operators, one file for each noun.

A new command is a file of its name here, with a function with that name. The file is imported when the command runs.
"""

import signal
from functools import cached_property
from importlib import import_module
from pkgutil import iter_modules
from types import FrameType
from typing import ClassVar

import click

from largesse import __version__
from largesse.cli.running import Commands, open_error_output, write_any_character

__all__ = ["main"]

_HELPERS = {"running", "tables"}  # files without a command


class _Main(Commands):
    """All commands. Each is imported only when it is used, so that it starts quickly."""

    # Commands of files that have several commands, or one with another name: the file, and the name of its function.
    FILES: ClassVar = {
        "accounts": "accounts:accounts",
        "anchor": "verify:anchor",
        "approvals": "programmes:approvals",
        "audit": "logs:audit",
        "automations": "programmes:automations",
        "campaigns": "programmes:campaigns",
        "check": "verify:check",
        "database-url": "service:database_url",
        "demo": "service:demo",
        "export": "seed:export",
        "listen": "listen:listen",
        "load": "seed:load",
        "mail": "deliveries:mail",
        "migrate": "service:migrate",
        "orders": "orders:orders",
        "rebuild-reports": "orders:rebuild_reports",
        "receivables": "payments:receivables",
        "requests": "logs:requests",
        "reseal": "key_rotation:reseal",
        "serve": "service:serve",
        "shipments": "fulfilment:shipments",
        "staff": "people:staff",
        "statement": "accounts:statement",
        "stock": "fulfilment:stock",
        "top-up": "payments:top_up_account",
        "top-ups": "payments:top_ups",
        "trigger": "listen:trigger",
        "unclaimed": "orders:unclaimed",
        "users": "people:users",
        "verify": "verify:verify",
        "webhooks": "deliveries:webhooks",
        "worker": "service:worker",
    }

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - as click calls it
        """Returns the names of the commands in the order of the help."""
        return sorted(self._places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - as click calls it
        """Returns the command with that name; None if there is none."""
        if cmd_name not in self._places:
            return None
        file, _, name = self._places[cmd_name].partition(":")
        found = getattr(import_module(f"largesse.cli.{file}"), name)
        assert isinstance(found, click.Command)
        return found

    @cached_property
    def _places(self) -> dict[str, str]:
        """FILES, and the files whose only command has the name of the file."""
        without = {place.partition(":")[0] for place in self.FILES.values()} | _HELPERS
        files = {module.name for module in iter_modules(__path__)} - without
        return self.FILES | {file.replace("_", "-"): f"{file}:{file}" for file in files}


def _terminated(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - as signal.signal calls it
    """Ends the command on a signal in the ordinary way, which also releases the embedded server."""
    raise SystemExit(128 + number)


def _hung_up(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - as signal.signal calls it
    signal.raise_signal(signal.SIGTERM)


@click.group(cls=_Main, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="largesse")
def main() -> None:
    """Largesse: a self-hosted gift ordering service.

    Settings come from LARGESSE_… environment variables; docs/settings.md lists them.
    """
    signal.signal(signal.SIGTERM, _terminated)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # `nohup` ignores it
        signal.signal(signal.SIGHUP, _hung_up)
    open_error_output()
    write_any_character()
