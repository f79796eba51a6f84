"""Reads the sheets of XLSX workbooks in a separate process (`workbook_process`)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from pathlib import Path

import msgspec
import structlog

from largesse.base.fair_turns import FairTurns
from largesse.drafts.sheet import MAX_CHARACTERS, MAX_FILE_BYTES, MAX_ROWS, Sheet, SheetMaker, SheetRefused

_PROGRAM = Path(__file__).with_name("workbook_process.py")
# The environment variables that the interpreter needs; it gets no settings and no secrets.
_ENVIRONMENT = ("LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "SYSTEMROOT")
_TIMEOUT_S = 30.0
_ROWS_A_TURN = 200
ZIP = b"PK\x03\x04"
OLD_WORKBOOK = b"\xd0\xcf\x11\xe0"

_log = structlog.get_logger(__name__)


class _Sheet(msgspec.Struct):
    name: str
    rows: list[tuple[int, list[str]]] = []
    refused: str | None = None
    limit: int = 0


class _Answer(msgspec.Struct):
    sheets: list[_Sheet] = []
    refused: str | None = None
    limit: int = 0


_DECODER = msgspec.json.Decoder(_Answer)


def is_workbook(data: bytes) -> bool:
    """Returns whether a file begins as a workbook, of a supported kind or not."""
    return data.startswith((ZIP, OLD_WORKBOOK))


class Workbooks:
    """Reads workbooks, two at a time and one of each customer."""

    def __init__(self) -> None:
        self._turns: FairTurns[int] = FairTurns(at_once=2, each=1, max_waiting=20)

    async def read(self, customer_id: int, data: bytes) -> dict[str, Sheet | SheetRefused]:
        """Returns the visible sheets that are not blank, by name: each with its rows, or the reason why it cannot be read.

        Raises SheetRefused if none can be read, and Unavailable if too many wait.
        """
        if len(data) > MAX_FILE_BYTES:
            raise SheetRefused("bytes", limit=MAX_FILE_BYTES)
        async with self._turns.turn(customer_id):
            answer = await _ask(data)
        if answer.refused is not None:
            raise SheetRefused(answer.refused, limit=answer.limit)
        if not answer.sheets:
            raise SheetRefused("empty")
        sheets: dict[str, Sheet | SheetRefused] = {}
        for one in answer.sheets:
            try:
                sheets[one.name] = await _made(one)
            except SheetRefused as refusal:
                sheets[one.name] = refusal
        refusals = [one for one in sheets.values() if isinstance(one, SheetRefused)]
        if len(refusals) == len(sheets):
            raise refusals[0]
        return sheets


async def _made(read: _Sheet) -> Sheet:
    """Returns the sheet from the output of the program. Raises SheetRefused."""
    if read.refused is not None:
        raise SheetRefused(read.refused, limit=MAX_ROWS if read.refused == "rows" else read.limit)
    maker = SheetMaker()
    for at, (number, cells) in enumerate(read.rows):
        maker.add(number, cells)
        if at % _ROWS_A_TURN == 0:
            await asyncio.sleep(0)
    return maker.sheet()


async def _ask(data: bytes) -> _Answer:
    """Returns the output of the program for a file, or that the file is broken if the program failed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        str(_PROGRAM),
        str(MAX_ROWS + 1),
        str(MAX_CHARACTERS),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
        start_new_session=True,  # a signal to the terminal's group is for the service
    )
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            said, _ = await process.communicate(data)
    except TimeoutError:
        return _Answer(refused="broken")
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    try:
        return _DECODER.decode(said)
    except msgspec.DecodeError:
        _log.warning("workbook_not_read", status=process.returncode, bytes=len(data))
        return _Answer(refused="broken")
