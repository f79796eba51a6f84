"""`database-url`, `migrate`, `serve`, `worker` and `demo`: the commands that run an installation."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from largesse.base.database_address import for_programs
from largesse.base.errors import OperatorError
from largesse.base.logs import configure_logs
from largesse.base.settings import ENVIRONMENTS, Settings, load_settings
from largesse.cli.running import Command, one_line
from largesse.db.embedded import EmbeddedServer, has_cluster
from largesse.db.grants import as_script, is_advice
from largesse.db.migrate import roles_to_make, upgrade
from largesse.db.roles import Role
from largesse.db.session import REQUESTS
from largesse.encryption.vault import load_vault
from largesse.installation import chain_ledger, check_schema, database_address, open_database, open_vault

if TYPE_CHECKING:
    from largesse.connections.listening import Listening


def _address(context: click.Context, option: click.Parameter, value: str) -> str:  # noqa: ARG001 - as click calls it
    """Returns the address of an option. Refuses an empty one, which would mean every address of the machine: a script's mistake."""
    if not value.strip():
        raise click.BadParameter("it must be an address, such as 127.0.0.1.")
    return value


_ROLES = {role.removeprefix("largesse_"): role for role in Role}


_metrics_host = click.option(
    "--metrics-host",
    default="127.0.0.1",
    callback=_address,
    show_default=True,
    help="Address of the metrics. Anybody who can reach it can read them.",
)


@click.command("database-url", cls=Command)
@click.option(
    "--role",
    type=click.Choice(list(_ROLES)),
    default="read",
    show_default=True,
    help="The database role to sign in as.",
)
async def database_url(role: str) -> None:
    """Print the database's address for psql and pg_dump. It may contain a password.

    pg_dump needs `--role owner`. An embedded database runs as long as another process of Largesse does.
    """
    settings = load_settings()
    if settings.database_url is None and not has_cluster(settings.data_dir):
        raise OperatorError("there is no embedded database yet: run `largesse migrate`")
    async with database_address(settings, _ROLES[role]) as url:
        click.echo(for_programs(url, _ROLES[role]))


@click.command(cls=Command)
@click.option(
    "--roles-sql", is_flag=True, help="Change nothing: print the SQL that makes the roles, for an administrator."
)
async def migrate(roles_sql: bool) -> None:
    """Upgrade the database to the current schema, with its roles and their rights, and chain the ledger."""
    settings = load_settings()
    async with database_address(settings, None) as url:
        if roles_sql:
            click.echo(as_script(await roles_to_make(url)), nl=False)
            return
        done = await upgrade(url)
        click.echo(f"The database's schema is at revision {done.revision}.")
        if done.distributed:
            click.echo(f"Tables distributed over the nodes: {', '.join(done.distributed)}.")
        try:
            if chained := await chain_ledger(settings):
                click.echo(f"Entries that were there before and are chained now: {chained:,}.", err=True)
        finally:
            _ask_administrator(done.refused)


def _ask_administrator(refused: Sequence[str]) -> None:
    """Prints the statements that the login may not run, for an administrator of the database. Exits with 1 if the upgrade needs them."""
    if not refused:
        return
    if all(is_advice(statement) for statement in refused):
        click.echo(
            "Everything is upgraded. The login here may not set some limits. Have an administrator run this in the "
            f"database with psql, where your hoster allows it:\n\n{as_script(refused)}",
            err=True,
            nl=False,
        )
        return
    click.echo(
        "The upgrade is not finished: the login here may not make all roles and rights.\n"
        "1. Have an administrator of the database run the SQL below in it with psql. Processes of this release may run meanwhile, those of an older one may not.\n"
        "2. Run `largesse migrate` again: it goes on from here.\n"
        f"\n{as_script(refused)}",
        err=True,
        nl=False,
    )
    sys.exit(1)


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, callback=_address, help="Address to listen on.")
@click.option("--port", default=8000, show_default=True, type=click.IntRange(1, 65535), help="Port to listen on.")
@click.option("--environment", type=click.Choice(ENVIRONMENTS), help="Instead of LARGESSE_ENVIRONMENT.")
@click.option("--processes", default=1, show_default=True, type=click.IntRange(1, 64), help="Serving processes.")
@click.option("--with-worker", is_flag=True, help="Also deliver webhooks and mail from here.")
@click.option(
    "--metrics-port",
    type=click.IntRange(1, 65535),
    help="Serve Prometheus metrics on this port; further processes on the ports that follow.",
)
@_metrics_host
@click.option(
    "--reuse-port",
    is_flag=True,
    help="Share the port with other serving processes (SO_REUSEPORT), so that the next can start before this one ends.",
)
def serve(
    host: str,
    port: int,
    environment: str | None,
    processes: int,
    with_worker: bool,
    metrics_port: int | None,
    metrics_host: str,
    reuse_port: bool,
) -> None:
    """Serve the API, the claim page and the docs.

    Listens on a socket from systemd (see largesse-serve.socket), if there is one, instead of --host and --port.
    """
    from largesse.doctor.settings import warn_of_doubtful_settings, warn_of_unknown_settings
    from largesse.serving import serve as serve_app

    if environment is not None:
        os.environ["LARGESSE_ENVIRONMENT"] = environment
    with one_line(), ExitStack() as sockets:
        settings = load_settings()
        configure_logs(settings.log_format)
        warn_of_unknown_settings()
        listening = _listening(host, port, shared=reuse_port)
        if listening.opened is not None:
            sockets.enter_context(listening.opened)
        if metrics_port is not None:
            _require_other_ports(listening, metrics_host, range(metrics_port, metrics_port + processes))
        with _hold(settings):
            if settings.database_url is not None:
                load_vault(settings)  # reports a missing or malformed key without a database
            warn = partial(warn_of_doubtful_settings, settings, delivers=with_worker)
            if processes > 1:
                asyncio.run(_check_ready(settings))
                warn()
            serve_app(
                settings,
                listening=listening,
                processes=processes,
                with_worker=with_worker,
                metrics_port=metrics_port,
                metrics_host=metrics_host,
                on_start=warn,
            )


def _listening(host: str, port: int, *, shared: bool) -> Listening:
    """Returns where to listen. Raises OperatorError if that is not possible."""
    from largesse.connections.listening import Listening, bound_socket, inherited_socket, require_free

    inherited = inherited_socket(os.environ)
    if inherited is not None:
        if shared:
            raise OperatorError("--reuse-port cannot be combined with a socket from systemd: leave it out")
        return Listening(*_address_of(inherited, host, port), inherited)
    if shared or host == "::":  # uvicorn's own socket would be only for IPv6
        return Listening(host, port, bound_socket(host, port, shared=shared), shared=shared)
    require_free(host, port)
    return Listening(host, port)


def _require_other_ports(listening: Listening, metrics_host: str, ports: range) -> None:
    """Raises OperatorError if one of the ports of the metrics is the port of the service."""
    hosts = {listening.host, metrics_host}
    if listening.port in ports and (len(hosts) == 1 or hosts & {"0.0.0.0", "::"}):  # noqa: S104 - every address
        raise OperatorError(
            f"--metrics-port {ports[0]} takes {listening.port}, the port of the service"
            + (f": {len(ports)} processes serve their metrics on {ports[0]} to {ports[-1]}" if len(ports) > 1 else "")
        )


def _address_of(inherited: socket.socket, host: str, port: int) -> tuple[str, int]:
    """Returns the address of a socket from systemd. Raises OperatorError if the command names another address."""
    listens: tuple[str, int] = inherited.getsockname()[:2]
    context = click.get_current_context()
    for name, said, there in (("host", host, listens[0]), ("port", port, listens[1])):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE and said != there:
            raise OperatorError(
                f"--{name} is {said}, but systemd handed over a socket that listens on {listens[0]}:{listens[1]}: "
                "change ListenStream= of the socket's unit, or leave the option out"
            )
    return listens


@click.command()
@click.option("--metrics-port", type=click.IntRange(1, 65535), help="Serve Prometheus metrics on this port.")
@_metrics_host
def worker(metrics_port: int | None, metrics_host: str) -> None:
    """Deliver webhooks and mail, and do maintenance. You can run several.

    After SIGTERM it finishes the work under way, releases its leases, and ends.
    """
    import uvloop

    from largesse.base.metrics_server import serve_metrics
    from largesse.doctor.settings import warn_of_unknown_settings

    with one_line():
        settings = load_settings()
        configure_logs(settings.log_format)
        warn_of_unknown_settings()
        if metrics_port is not None:
            serve_metrics([metrics_port], metrics_host)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_work(settings))


async def _work(settings: Settings) -> None:
    """Runs the worker until SIGTERM or SIGINT. These also end it while it starts."""
    from largesse.doctor.settings import warn_of_doubtful_settings
    from largesse.main import collect_seldom, open_worker

    ended, opening = asyncio.Event(), asyncio.current_task()

    def end() -> None:
        ended.set()
        if opening is not None:
            opening.cancel()

    for ending in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(ending, end)
    try:
        async with open_worker(settings):
            opening = None
            warn_of_doubtful_settings(settings, delivers=True)
            collect_seldom()
            await ended.wait()
    except asyncio.CancelledError:
        if not ended.is_set():
            raise


@contextmanager
def _hold(settings: Settings) -> Iterator[None]:
    """Keeps the embedded server running, if there is one, between two uses of it."""
    if settings.database_url is not None:
        yield
        return
    with EmbeddedServer(settings.data_dir):
        yield


async def _check_ready(settings: Settings) -> None:
    """Raises OperatorError for an error that would stop every process from starting. Call it before any starts."""
    # With the limits of a serving process: if the database does not answer, this fails soon, and a supervisor starts the process again.
    async with open_database(settings, role=Role.APP, limits=REQUESTS) as database:
        await check_schema(database)
        await open_vault(database, settings)


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, callback=_address, help="Address to listen on.")
@click.option("--port", default=8000, show_default=True, type=click.IntRange(1, 65535), help="Port to listen on.")
@click.option("--no-history", is_flag=True, help="Begin without orders, instead of three months of them.")
def demo(host: str, port: int, no_history: bool) -> None:
    """Try everything: demo data on an embedded database, in one process, with nothing to configure.

    Everybody who can reach it can read its mailbox, codes and PINs. Use another --host than this machine's own only
    on a network that you trust. Test mode has the next port.
    """
    import uvloop

    from largesse.connections.listening import Listening, free_socket, reserved_socket
    from largesse.demo.prepare import prepare, webhook_routes
    from largesse.doctor.settings import warn_of_unknown_settings
    from largesse.serving import DemoExtras
    from largesse.serving import serve as serve_app

    with one_line(), ExitStack() as sockets:
        # Reserves the port now, so that no other process takes it while the history is made.
        opened = sockets.enter_context(reserved_socket(host, port))
        own, test_mode = _settings_of_demo(host, port), None
        settings = load_settings(own)
        if settings.environment == "production":
            test_socket = sockets.enter_context(free_socket(host, port + 1))
            test_port = test_socket.getsockname()[1]
            own.setdefault("LARGESSE_STAGING_PUBLIC_URL", f"http://{_host_of_links(host)}:{test_port}")
            settings = load_settings(own)
            test_mode = load_settings({**own, "LARGESSE_ENVIRONMENT": "staging"}), test_socket
        configure_logs("console", logging.WARNING)
        warn_of_unknown_settings()
        with _hold(settings):
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                welcome = runner.run(prepare(settings, has_history=not no_history, say=click.echo))
            serve_app(
                settings,
                listening=Listening(host, port, opened),
                with_worker=True,
                demo=DemoExtras(webhook_routes(), test_mode),
                on_start=lambda: click.echo(welcome),
            )


def _settings_of_demo(host: str, port: int) -> dict[str, str]:
    """Returns the environment with the demo's own defaults: webhooks may go to this machine."""
    return {
        "LARGESSE_PUBLIC_URL": f"http://{_host_of_links(host)}:{port}",
        "LARGESSE_WEBHOOK_ALLOWED_NETWORKS": "127.0.0.0/8,::1/128",
        **os.environ,
    }


def _host_of_links(host: str) -> str:
    """Returns how this machine reaches a service that listens on `host`."""
    if host in {"0.0.0.0", "::"}:  # noqa: S104 - every address, this machine's own among them
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host
