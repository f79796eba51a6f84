"""The commands an operator types, one file for each group of them.

Running an installation: `service` (`migrate`, `serve`, `worker`, `demo`), `world` (`load`), `check`, `verify`. Looking after it:
`customers`, `keys`, `funding` (`top-up`, `accounts`, `statement`), `receivables`, `orders`, `mail`, `stock`, `shipments`.

All share `running` (settings, the database, errors in one line), `tables` (lists for people, `--json` and `--csv`) and `files`
(progress, and files for their owner alone). A new group is a file here and a line below; no SQL stands in this folder.
"""

from __future__ import annotations

import signal
from types import FrameType

import click

from largesse import __version__
from largesse.cli.check import check
from largesse.cli.customers import customers
from largesse.cli.funding import accounts, statement, top_up_account
from largesse.cli.keys import keys
from largesse.cli.mail import mail
from largesse.cli.orders import orders
from largesse.cli.receivables import receivables
from largesse.cli.running import Commands
from largesse.cli.service import demo, migrate, serve, worker
from largesse.cli.shipments import shipments
from largesse.cli.stock import stock
from largesse.cli.verify import verify
from largesse.cli.world import load

__all__ = ["main"]


def _terminated(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - as signal.signal calls it
    """Leaves by the usual way out, on which the embedded server is let go."""
    raise SystemExit(128 + number)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="largesse")
def main() -> None:
    """Largesse: a self-hosted gift ordering service.

    Settings come from LARGESSE_… environment variables; docs/operations.md lists them.
    """
    signal.signal(signal.SIGTERM, _terminated)


for _command in (
    demo,
    migrate,
    load,
    serve,
    worker,
    check,
    customers,
    accounts,
    keys,
    orders,
    statement,
    top_up_account,
    receivables,
    stock,
    shipments,
    mail,
    verify,
):
    main.add_command(_command)
