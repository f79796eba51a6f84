"""Runs commands: asynchronously, on the installation's database, with one-line errors. Also reads arguments and writes output."""

import asyncio
import errno
import os
import re
import stat
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TextIO, TypeVar

import click
import structlog

from largesse.audit.service import Acting, by_command
from largesse.base import clock
from largesse.base.amounts import UnreadableAmount, read_amount
from largesse.base.email import EmailError, normalise_email
from largesse.base.errors import OperatorError, Problem
from largesse.base.settings import load_settings
from largesse.base.text import trimmed, unfit
from largesse.customers.actor import Actor, command_actor
from largesse.customers.customer_store import find_customer
from largesse.db.pool import DATABASE_FAILED, Connection, Database, in_one_line
from largesse.db.scope import OPERATOR
from largesse.installation import chains_of, check_schema, open_database, open_vault

# Errors of a disk that is full or cannot be written. Other errors of the system are about the database.
NOT_WRITTEN = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS}

Default = TypeVar("Default")
ID = click.IntRange(1, 2_147_483_647)
HELP = "From when on: 2026-11-20 or 2026-11-20T08:30, in UTC unless it says otherwise (+01:00)."


def read_since(text: str) -> datetime:
    """Returns the instant of --since. Raises OperatorError if it is malformed or lies in the future."""
    try:
        since = datetime.fromisoformat(text.strip())
        since = since.replace(tzinfo=UTC) if since.tzinfo is None else since.astimezone(UTC)
    except (ValueError, OverflowError):
        raise OperatorError("--since must be an instant such as 2026-11-20 or 2026-11-20T08:30+01:00") from None
    if since > clock.now():
        raise OperatorError("--since must not lie in the future")
    return since


def read_name(text: str, most: int, *, argument: str = "NAME") -> str:
    """Returns a name of at most `most` characters, without blanks around it. Raises OperatorError, which names the argument."""
    name = trimmed(text)
    if not 0 < len(name) <= most:
        raise OperatorError(f"{argument} must have 1 to {most} characters")
    if (held := unfit(name)) is not None:
        raise OperatorError(f"{argument} must not contain {held}")
    return name


def read_email(text: str) -> str:
    """Returns the e-mail address of the argument EMAIL in its normal form. Raises OperatorError."""
    try:
        return normalise_email(text.strip())
    except EmailError as error:
        raise OperatorError(f"EMAIL is not an e-mail address: {str(error).removesuffix('.')}") from None


def read_printable(text: str, most: int, *, argument: str) -> str:
    """Returns a text of at most `most` printable characters, without blanks around it. Raises OperatorError, which names the argument."""
    typed = text.strip()
    if not 0 < len(typed) <= most or not typed.isprintable():
        raise OperatorError(f"{argument} must have 1 to {most} printable characters")
    return typed


def read_limit(option: str, text: str | None, currency: str, otherwise: Default) -> int | Default | None:
    """Returns a limit in minor units. Returns None for the text `none`, and `otherwise` if the option is missing. Raises OperatorError."""
    if text is None:
        return otherwise
    if text.strip().lower() == "none":
        return None
    try:
        return read_amount(text, currency)
    except UnreadableAmount as error:
        raise OperatorError(f"{option}: {error} Or type `none`.") from None


def private_file(path: Path) -> TextIO:
    """Opens the file at `path` for writing, so that only its owner can read it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):  # others may have been able to read an existing file
        os.fchmod(descriptor, 0o600)
    return os.fdopen(descriptor, "w", encoding="utf-8", newline="")


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """Yields a function that shows how many of how many are done.

    It rewrites one line on a terminal. Otherwise it prints a line for each 20,000.
    """
    is_terminal = sys.stderr.isatty()
    shown = 0

    def show(done: int, total: int) -> None:
        nonlocal shown
        if is_terminal:
            click.echo(f"\r{done:,} of {total:,} {what}", nl=False, err=True)
        elif done // 20_000 > shown:
            shown = done // 20_000
            click.echo(f"{done:,} of {total:,} {what}", err=True)

    yield show
    if is_terminal:
        click.echo("\r\x1b[K", nl=False, err=True)


@contextmanager
def one_line() -> Iterator[None]:
    """Prints an operator's mistake in one line, and exits with 1."""
    try:
        yield
    except OperatorError as error:
        raise click.ClickException(str(error)) from None
    except Problem as error:
        raise click.ClickException(error.detail) from None
    except BrokenPipeError:
        raise  # the reader of the output has gone
    except OSError as error:
        if error.filename is None and error.errno not in NOT_WRITTEN:
            raise click.ClickException(f"the database cannot be reached: {in_one_line(error)}") from None
        if error.filename is None:
            drop_output()
        raise click.ClickException(f"{error.filename or 'the output'} cannot be written: {error.strerror}") from None
    except DATABASE_FAILED as error:
        raise click.ClickException(f"the database answered: {in_one_line(error)}") from None
    except KeyboardInterrupt:
        raise click.Abort from None


class Command(click.Command):
    """A command whose function is asynchronous."""

    def __init__(self, *, callback: Callable[..., Coroutine[Any, Any, None]], **options: Any) -> None:
        def run(**given: Any) -> None:
            _log_to_stderr()
            with one_line():
                _check(given)
                if self.name != "check":  # `check` lists them with its other results
                    _warn_of_unknown_settings()
                asyncio.run(callback(**given))
                sys.stdout.flush()

        super().__init__(callback=run, **options)


def _log_to_stderr() -> None:
    """Writes log lines to the error output, so that they are not in a command's JSON. `serve` and `worker` configure the log later."""
    if not structlog.is_configured():
        structlog.configure(logger_factory=lambda *_: structlog.PrintLogger(sys.stderr))


def _check(given: Mapping[str, Any]) -> None:
    """Raises OperatorError if the output is closed, or if an argument is not UTF-8. File names may have any bytes."""
    if sys.stdout is None:
        raise OperatorError("the standard output is closed: the command could not print anything")
    for value in given.values():
        for text in value if isinstance(value, tuple) else (value,):
            if isinstance(text, str) and any("\ud800" <= character <= "\udfff" for character in text):
                raise OperatorError("an argument is not text in UTF-8")


def _warn_of_unknown_settings() -> None:
    """Warns of variables that look like settings. If LARGESSE_DATABASE_URL is misspelt, a command works on the embedded database."""
    from largesse.doctor.settings import unknown_settings

    for unknown in unknown_settings(os.environ):
        click.echo(f"Warning: {unknown.setting}: {unknown.text}", err=True)


def drop_output() -> None:
    """Discards the rest of the output, so that Python can end although nothing can be written."""
    sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - as long as the process


def open_error_output() -> None:
    """Discards the error output if the caller has closed it. `sys.stderr` is None then, and showing progress would fail."""
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - as long as the process


def write_any_character() -> None:
    """Makes the output accept every character in every locale. Files and pipes are UTF-8. Terminals show a missing character as \\u…."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors="backslashreplace")


@asynccontextmanager
async def current_database() -> AsyncIterator[Database]:
    """Opens the installation's database. Raises OperatorError unless its schema is current."""
    async with open_database(load_settings()) as database:
        await check_schema(database)
        yield database


@asynccontextmanager
async def reading(customer: str | None = None) -> AsyncIterator[Connection]:
    """Opens a connection for a command that only reads. Raises OperatorError as `current_database` does, and for an unknown customer."""
    async with current_database() as database, database.connection(OPERATOR) as connection:
        if customer is not None:
            await find_customer(connection, customer)
        yield connection


@asynccontextmanager
async def acting_operator() -> AsyncIterator[tuple[Database, Actor]]:
    """Opens the installation's database for a command that changes something. The command is the actor of operations.

    Raises OperatorError as `current_database` does, and if the master key is missing.
    """
    settings = load_settings()
    async with open_database(settings) as database:
        await check_schema(database)
        chains = await chains_of(database, await open_vault(database, settings), settings, renew=True)
        acting = Acting(by_command(click.get_current_context().command_path), chains)
        yield database, command_actor(database, acting)


@asynccontextmanager
async def operator_actor(customer: str | None = None, environment: str | None = None) -> AsyncIterator[Actor]:
    """Yields the command as the actor of operations, on behalf of the customer with a key if one is given.

    Raises OperatorError as `acting_operator` does, and for an unknown customer.
    """
    async with acting_operator() as (database, operator):
        if customer is None:
            yield operator
            return
        customer_id = await database.read(OPERATOR, find_customer, customer)
        yield operator.on_behalf_of(customer_id, environment)


def _plainly(said: str) -> str:
    """Returns click's message about an argument, with plainer words for numbers, ranges and days."""
    said = said.replace("a valid integer range", "a whole number").replace("a valid float range", "a number")
    said = said.replace("does not match the format '%Y-%m-%d'", "is not a day such as 2026-11-20")
    said = said if said.endswith((".", "?")) else f"{said}."
    return re.sub(r"is not in the range (\S+)<=x<=(\S+)\.", r"is not from \1 to \2.", said)


@contextmanager
def _usage_in_one_line() -> Iterator[None]:
    """Prints a mistake in the arguments in one line that names the help. Click would print the usage first."""
    try:
        yield
    except click.exceptions.NoArgsIsHelpError:
        raise
    except click.UsageError as error:
        if error.ctx is not None:
            said = f"{_plainly(' '.join(error.format_message().split()))} See `{error.ctx.command_path} --help`."
            raise click.UsageError(said) from None
        raise


class Commands(click.Group):
    """A group of asynchronous commands. Prints its own errors, and those of the commands, in one line."""

    command_class = Command

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Does the same as click, but prints a mistake in the arguments, and a help that cannot be written, in one line."""
        with _usage_in_one_line(), one_line():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Does the same as click, but prints a mistake in a command's own arguments in one line."""
        with _usage_in_one_line(), one_line():
            return super().invoke(ctx)
