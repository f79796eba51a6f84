"""What commands show and write beside their answer: progress, and files for their owner alone."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import click


def private_file(path: Path) -> TextIO:
    """The file at `path`, for its owner's eyes."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    return os.fdopen(descriptor, "w", encoding="utf-8", newline="")


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
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
