"""The commands an operator types."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from decimal import Decimal, InvalidOperation
from functools import wraps
from pathlib import Path
from types import FrameType
from typing import Any, TextIO

import asyncpg
import click
import uvloop

from largesse import __version__
from largesse.database import DATABASE_FAILED, Database
from largesse.database.embedded import EmbeddedServer
from largesse.database.migrate import upgrade
from largesse.errors import StartError
from largesse.funding import top_up
from largesse.identity import create_key, delete_key, list_keys
from largesse.logs import configure_logs
from largesse.main import check_schema, database_address, open_database, open_worker
from largesse.money import AmountError, label, to_minor, to_number
from largesse.outbox.metrics import serve_metrics
from largesse.serving import require_free
from largesse.serving import serve as serve_app
from largesse.settings import ENVIRONMENTS, Settings, load_settings


@contextmanager
def _one_line() -> Iterator[None]:
    """What an operator must put right becomes one line and exit 1."""
    try:
        yield
    except StartError as error:
        raise click.ClickException(str(error)) from None
    except BrokenPipeError:
        raise  # whoever read our output has gone
    except DATABASE_FAILED as error:
        raise click.ClickException(f"the database answered: {str(error) or type(error).__name__}") from None
    except KeyboardInterrupt:
        raise click.Abort from None


def _command(function: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Runs an asynchronous command."""

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> None:
        with _one_line():
            asyncio.run(function(*args, **kwargs))

    return run


@asynccontextmanager
async def _current_database() -> AsyncIterator[Database]:
    """The installation's database; StartError unless its schema is the current one."""
    async with open_database(load_settings()) as database:
        await check_schema(database)
        yield database


@contextmanager
def _usage_in_one_line() -> Iterator[None]:
    """Click prints the usage before what is wrong; one line, and where to read on, is clearer."""
    try:
        yield
    except click.exceptions.NoArgsIsHelpError:
        raise
    except click.UsageError as error:
        if error.ctx is not None:
            said = f"{error.format_message()} See `{error.ctx.command_path} --help`."
            raise click.UsageError(said) from None
        raise


class _Commands(click.Group):
    """A group whose errors, and those of its commands, are one line."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        with _usage_in_one_line():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        with _usage_in_one_line():
            return super().invoke(ctx)


def _terminated(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - as signal.signal calls it
    """Leaves by the usual way out, on which the embedded server is let go."""
    raise SystemExit(128 + number)


@click.group(
    cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, prog_name="largesse")
def main() -> None:
    """Largesse: a self-hosted gift ordering service.

    Settings come from LARGESSE_… environment variables; docs/operations.md lists them.
    """
    signal.signal(signal.SIGTERM, _terminated)


@main.command()
@_command
async def migrate() -> None:
    """Bring the database to the current schema."""
    async with database_address(load_settings()) as url:
        revision = await upgrade(url)
    click.echo(f"The database's schema is at revision {revision}.")


@main.command()
@click.argument("world", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print ids and new API keys as JSON.")
@_command
async def load(world: Path, as_json: bool) -> None:
    """Create or update what the file WORLD describes; safe to repeat.

    The secrets of new API keys are printed once, here.
    """
    from largesse.world import load_world, read_world

    described = read_world(world)
    async with _current_database() as database, database.connection() as connection:
        loaded = await load_world(connection, described)
    if as_json:
        click.echo(loaded.to_json())
        return
    for kind, ids in loaded.ids.items():
        click.echo(f"{len(ids):6} {kind.replace('_', ' ')}")
    for key, secret in loaded.api_keys.items():
        click.echo(f"API key {key}: {secret}  (shown this once)")


@main.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", default=8000, show_default=True, type=click.IntRange(1, 65535), help="Port to listen on."
)
@click.option("--environment", type=click.Choice(ENVIRONMENTS), help="Instead of LARGESSE_ENVIRONMENT.")
@click.option(
    "--processes", default=1, show_default=True, type=click.IntRange(1, 64), help="Serving processes."
)
@click.option("--with-worker", is_flag=True, help="Also deliver webhooks and mail from here.")
@click.option(
    "--metrics-port",
    type=click.IntRange(1, 65535),
    help="Serve Prometheus metrics on this loopback port; further processes on the ports that follow.",
)
def serve(
    host: str,
    port: int,
    environment: str | None,
    processes: int,
    with_worker: bool,
    metrics_port: int | None,
) -> None:
    """Serve the API, the claim page and the docs."""
    if environment is not None:
        os.environ["LARGESSE_ENVIRONMENT"] = environment
    with _one_line():
        settings = load_settings()
        configure_logs(settings.log_format)
        require_free(host, port)
        with _hold(settings):
            asyncio.run(_check_ready(settings))
            serve_app(
                settings,
                host=host,
                port=port,
                processes=processes,
                with_worker=with_worker,
                metrics_port=metrics_port,
            )


@main.command()
@click.option(
    "--metrics-port", type=click.IntRange(1, 65535), help="Serve Prometheus metrics on this loopback port."
)
def worker(metrics_port: int | None) -> None:
    """Deliver webhooks and mail, and keep house; any number may run.

    SIGTERM drains: what is in flight is finished, what was leased is given back.
    """
    with _one_line():
        settings = load_settings()
        configure_logs(settings.log_format)
        if metrics_port is not None:
            serve_metrics([metrics_port])
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_work(settings))


async def _work(settings: Settings) -> None:
    """Works until SIGTERM or SIGINT."""
    ended = asyncio.Event()
    for ending in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(ending, ended.set)
    async with open_worker(settings):
        await ended.wait()


@contextmanager
def _hold(settings: Settings) -> Iterator[None]:
    """Keeps the embedded server, where one is used, from stopping between two uses of it."""
    if settings.database_url is not None:
        yield
        return
    with EmbeddedServer(settings.data_dir):
        yield


async def _check_ready(settings: Settings) -> None:
    """Raises StartError for what would keep the application from starting, before it tries."""
    from largesse.vault import load_vault

    load_vault(settings)
    async with open_database(settings) as database:
        await check_schema(database)


@main.command()
@click.option(
    "--port", default=8000, show_default=True, type=click.IntRange(1, 65535), help="Port to listen on."
)
def demo(port: int) -> None:
    """Try everything: a demo world on an embedded database, in one process, with nothing to configure."""
    from largesse.demo import prepare

    os.environ.setdefault("LARGESSE_PUBLIC_URL", f"http://127.0.0.1:{port}")
    with _one_line():
        settings = load_settings()
        configure_logs("console", logging.WARNING)
        require_free("127.0.0.1", port)
        with _hold(settings):
            welcome = asyncio.run(prepare(settings))
            serve_app(
                settings,
                host="127.0.0.1",
                port=port,
                with_worker=True,
                mailbox=True,
                on_start=lambda: click.echo(welcome),
            )


@main.group(cls=_Commands)
def keys() -> None:
    """Make, list and delete API keys."""


@keys.command("create")
@click.option("--customer", required=True, help="Key of the customer in the world file.")
@click.option("--service-account", required=True, help="Key of the service account it acts as.")
@click.option("--environment", required=True, type=click.Choice(ENVIRONMENTS))
@click.option("--name", required=True, help="What to call the key; unique for the customer.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@_command
async def keys_create(
    customer: str, service_account: str, environment: str, name: str, as_json: bool
) -> None:
    """Make an API key and print its secret, this once."""
    if not 0 < len(name.strip()) <= 100 or not name.isprintable():
        raise StartError("--name must have 1 to 100 printable characters")
    async with _current_database() as database, database.connection() as connection:
        key_id, secret = await create_key(
            connection,
            customer=customer,
            service_account=service_account,
            environment=environment,
            key=name.strip(),
        )
    if as_json:
        click.echo(json.dumps({"id": key_id, "name": name, "secret": secret}))
    else:
        click.echo(f"API key {key_id} ({name}): {secret}\nKeep it: it is not shown again.")


@keys.command("list")
@click.option("--customer", help="Only this customer's.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@_command
async def keys_list(customer: str | None, as_json: bool) -> None:
    """List API keys, without their secrets."""
    async with _current_database() as database, database.connection() as connection:
        records = await list_keys(connection, customer)
    if as_json:
        click.echo(
            json.dumps(
                [
                    {
                        "id": r.id,
                        "customer": r.customer,
                        "name": r.key,
                        "service_account": r.service_account,
                        "environment": r.environment,
                        "created_at": r.created_at.isoformat(),
                        "last_seen_at": r.last_seen_at.isoformat() if r.last_seen_at else None,
                    }
                    for r in records
                ],
                indent=2,
            )
        )
        return
    for r in records:
        seen = f"last seen {r.last_seen_at:%Y-%m-%d %H:%M} UTC" if r.last_seen_at else "never seen"
        click.echo(f"{r.id:6}  {r.customer}/{r.key}  {r.environment}  as {r.service_account}  {seen}")


@keys.command("delete")
@click.argument("key_id", type=click.IntRange(1, 2_147_483_647))
@_command
async def keys_delete(key_id: int) -> None:
    """Delete the API key KEY_ID (see `keys list`); it stops working at once."""
    async with _current_database() as database, database.connection() as connection:
        await delete_key(connection, key_id)
    click.echo(f"API key {key_id} is deleted.")


@main.command("top-up", context_settings={"ignore_unknown_options": True})  # an amount may begin with a minus
@click.argument("account")
@click.argument("amount")
@click.option("--reference", help="Names the top-up; repeating one with the same amount changes nothing.")
@_command
async def top_up_account(account: str, amount: str, reference: str | None) -> None:
    """Credit the funding account ACCOUNT with AMOUNT, in major units of its currency.

    ACCOUNT is an id, a key of the world file, or CUSTOMER/KEY.
    """
    if reference is not None and not 0 < len(reference.strip()) <= 128:
        raise StartError("--reference must have 1 to 128 characters")
    async with _current_database() as database, database.transaction() as connection:
        found = await _find_account(connection, account)
        try:
            amount_minor = to_minor(Decimal(amount), found["currency"])
        except (AmountError, InvalidOperation) as error:
            reason = str(error) if isinstance(error, AmountError) else "must be a number"
            raise StartError(f"AMOUNT {reason}") from None
        balance_minor = await top_up(connection, found["id"], amount_minor, reference)
    click.echo(f"{found['name']} now holds {label(balance_minor, found['currency'])}.")


async def _find_account(connection: asyncpg.Connection, account: str) -> asyncpg.Record:
    """The funding account of an id, a key, or customer/key. Raises StartError for none and for several."""
    customer, _, key = account.rpartition("/")
    rows = await connection.fetch(
        """
        SELECT a.id, a.name, a.currency, c.key AS customer
        FROM accounts a JOIN customers c ON c.id = a.customer_id
        WHERE a.kind = 'funding' AND ((a.key = $1 AND ($2 = '' OR c.key = $2)) OR ($2 = '' AND a.id::text = $1))
        """,
        key,
        customer,
    )
    if not rows:
        raise StartError(f"there is no funding account {account!r}")
    if len(rows) > 1:
        names = ", ".join(f"{row['customer']}/{key} (id {row['id']})" for row in rows)
        raise StartError(f"{account!r} could be any of {names}")
    return rows[0]


@main.group()
def stock() -> None:
    """Import voucher numbers, and see what is left of them."""


@stock.command("import")
@click.argument("product")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--value", help="What each number of the file is worth, where it has no column `value`.")
@_command
async def stock_import(product: str, file: Path, value: str | None) -> None:
    """Add the voucher numbers of the CSV file FILE to the stock of PRODUCT.

    PRODUCT is a key of the world file or an id. FILE has a column `number`, or is a list of numbers without a
    heading; it may have `value` (in major units; needed where the gift has several amounts), `pin` and `use_by`.
    Numbers already in the stock are refused and counted. Gifts that wait are served from the new numbers, the
    oldest first, and their recipients are mailed.
    """
    from largesse.fulfilment import find_stocked, import_vouchers
    from largesse.vault import load_vault

    async with _current_database() as database:
        async with database.connection() as connection:
            stocked = await find_stocked(connection, product)
        with _progress("numbers") as on_progress:
            imported = await import_vouchers(
                database, load_vault(load_settings()), stocked, file, value=value, on_progress=on_progress
            )
    click.echo(
        f"{stocked.name}: numbers added {imported.added:,}, duplicates refused {imported.duplicates:,}, "
        f"waiting gifts served {imported.served:,}."
    )


@stock.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@_command
async def stock_list(as_json: bool) -> None:
    """List the stock of each gift and amount: free, handed out, and how many recipients wait."""
    from largesse.fulfilment import list_stock

    async with _current_database() as database, database.connection() as connection:
        levels = await list_stock(connection)
    if as_json:
        click.echo(
            json.dumps(
                [
                    {
                        "product": level.product,
                        "value": to_number(level.value_minor, level.currency),
                        "currency": level.currency,
                        "free": level.free,
                        "handed_out": level.handed_out,
                        "waiting": level.waiting,
                    }
                    for level in levels
                ],
                indent=2,
            )
        )
        return
    if not levels:
        click.echo("The stock is empty, and nobody waits.")
    for level in levels:
        waiting = f"  {level.waiting:,} WAITING" if level.waiting else ""
        click.echo(
            f"{level.product:24}  {label(level.value_minor, level.currency):>12}  "
            f"{level.free:9,} free  {level.handed_out:9,} handed out{waiting}"
        )


@main.group()
def shipments() -> None:
    """Hand parcels to whoever packs them, and say which are on their way."""


@shipments.command("export")
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), help="A file instead of standard output."
)
@click.option("--again", is_flag=True, help="Everything not shipped yet, exported before or not.")
@click.option("--environment", type=click.Choice(ENVIRONMENTS), help="Instead of LARGESSE_ENVIRONMENT.")
@_command
async def shipments_export(output: Path | None, again: bool, environment: str | None) -> None:
    """Write the parcels to send as CSV, each once. It holds names and addresses: keep it safe."""
    from largesse.fulfilment import export_shipments
    from largesse.vault import load_vault

    settings = load_settings()
    async with _current_database() as database:
        with contextlib.ExitStack() as stack:
            file = stack.enter_context(_private(output)) if output is not None else sys.stdout
            count = await export_shipments(
                database, load_vault(settings), environment or settings.environment, file, again=again
            )
    click.echo(f"Parcels to send: {count:,}.", err=True)


@shipments.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--environment", type=click.Choice(ENVIRONMENTS), help="Instead of LARGESSE_ENVIRONMENT.")
@_command
async def shipments_import(file: Path, environment: str | None) -> None:
    """Mark the parcels of the CSV file FILE as shipped and mail their recipients.

    FILE has the columns `shipment` (the number of the export), `carrier` and `tracking_number`. It is taken whole or
    not at all; a parcel shipped before is left as it is.
    """
    from largesse.fulfilment import import_shipments
    from largesse.vault import load_vault

    settings = load_settings()
    async with _current_database() as database:
        shipped, before = await import_shipments(
            database, load_vault(settings), environment or settings.environment, file
        )
    click.echo(f"Parcels shipped: {shipped:,}; shipped before: {before:,}.")


def _private(path: Path) -> TextIO:
    """The file at `path`, for its owner's eyes."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    return os.fdopen(descriptor, "w", encoding="utf-8", newline="")


@contextmanager
def _progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """Shows how many of how many are done: one line rewritten on a terminal, else a line now and then."""
    is_terminal = sys.stderr.isatty()

    def show(done: int, total: int) -> None:
        if is_terminal:
            click.echo(f"\r{done:,} of {total:,} {what}", nl=False, err=True)
        elif done % 20_000 == 0:
            click.echo(f"{done:,} of {total:,} {what}", err=True)

    yield show
    if is_terminal:
        click.echo("\r\x1b[K", nl=False, err=True)


@main.command()
@click.option("--json", "as_json", is_flag=True, help="Print findings as JSON.")
@_command
async def verify(as_json: bool) -> None:
    """Audit the ledger, balances, orders and codes; exit 1 and list whatever disagrees."""
    from largesse.vault import load_vault
    from largesse.verify import audit

    settings = load_settings()
    async with open_database(settings) as database:
        await check_schema(database)
        report = await audit(database, load_vault(settings))
    click.echo(json.dumps(report.to_json(), indent=2) if as_json else str(report))
    if report.findings:
        sys.exit(1)
